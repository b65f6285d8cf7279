// TIFF by libtiff (TIFF 6.0), a row, a strip or a row of tiles at a time.
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/tiff_exif.h"
#include "pipeline/tiff_file.h"

namespace tessera {
namespace {

TiffSource TiffOf(std::FILE* file) {
  return [file](std::uint64_t at, std::span<std::byte> to) {
    return at <= INT64_MAX && ::fseeko(file, static_cast<off_t>(at), SEEK_SET) == 0 &&
           std::fread(to.data(), 1, to.size(), file) == to.size();
  };
}

// Bytes that one byte of a file can become at the most.
std::size_t MostExpansion(int compression) {
  switch (compression) {
    case COMPRESSION_NONE:
      return 1;
    case COMPRESSION_PACKBITS:
      return 64;
    case COMPRESSION_DEFLATE:
    case COMPRESSION_ADOBE_DEFLATE:
      return 1032;
    case COMPRESSION_LZW:
      return 2731;  // 4096 bytes from 12 bits
    default:
      return 1 << 16;  // more than any other does with a picture
  }
}

// How the samples lie in the file.
struct Layout {
  int bits = 0;     // of a sample
  int samples = 0;  // of a pixel
  int planes = 1;   // 1: samples of a pixel lie together
  int photometric = 0;
  int colours = 0;  // samples that make the colour
  int alpha = -1;   // the sample that is alpha; -1: none is
  bool associated = false;
};

class TiffReader final : public ImageReader {
 public:
  TiffReader(FilePtr stream, const ReadOptions& options)
      : stream_(std::move(stream)),
        exif_(CollectExif(TiffOf(stream_.get()))),
        file_bytes_(FileSize(stream_.get())),
        file_(stream_.get(), "rm", warnings_) {
    const auto width = file_.Value<std::uint32_t>(TIFFTAG_IMAGEWIDTH),
               height = file_.Value<std::uint32_t>(TIFFTAG_IMAGELENGTH);
    CheckInputSize(width, height, options);
    format_ = {.width = width, .height = height};
    ReadLayout();
    if (whole_) {
      format_.channels = 3;
    } else {
      format_.channels = (IsGrey() ? 1 : 3) + (layout_.alpha >= 0 ? 1 : 0);
      format_.bit_depth = layout_.bits <= 8 || IsPalette() ? 8 : 16;
      PrepareLevels();
      PrepareBand();
    }
    ReadMetadata();
    if (TIFFLastDirectory(file_.get()) == 0)
      warnings_.emplace_back("it has several pages: only the first is used");
  }

  int Orientation() const {
    const int orientation = file_.Value<std::uint16_t>(TIFFTAG_ORIENTATION);
    return orientation >= 1 && orientation <= 8 ? orientation : 1;
  }

  std::size_t HeldBytes() const override {
    if (whole_) return static_cast<std::size_t>(format_.width * format_.height) * 4;
    std::size_t bytes = tile_.size();
    for (const auto& plane : band_) bytes += plane.size();
    return bytes + std::min(file_bytes_, LargestRawStrip());
  }

  void ReadRow(std::byte* row) override {
    const std::int64_t y = next_row_++;
    if (whole_) {
      WholeRow(y, reinterpret_cast<std::uint8_t*>(row));
      return;
    }
    if (y % band_rows_ == 0) ReadBand(static_cast<std::uint32_t>(y));
    if (format_.bit_depth == 8)
      ConvertRow(y % band_rows_, reinterpret_cast<std::uint8_t*>(row));
    else
      ConvertRow(y % band_rows_, reinterpret_cast<std::uint16_t*>(row));
  }

 private:
  bool IsGrey() const {
    return layout_.photometric == PHOTOMETRIC_MINISBLACK ||
           layout_.photometric == PHOTOMETRIC_MINISWHITE;
  }
  bool IsPalette() const { return layout_.photometric == PHOTOMETRIC_PALETTE; }
  bool IsCmyk() const { return layout_.photometric == PHOTOMETRIC_SEPARATED; }

  void ReadLayout() {
    layout_.bits = file_.Value<std::uint16_t>(TIFFTAG_BITSPERSAMPLE);
    layout_.samples = file_.Value<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL);
    Require(TIFFGetField(file_.get(), TIFFTAG_PHOTOMETRIC, &photometric_) == 1,
            "it does not say what its samples mean (no PhotometricInterpretation)");
    layout_.photometric = photometric_;
    const int sample_format = file_.Value<std::uint16_t>(TIFFTAG_SAMPLEFORMAT);
    const int compression = file_.Value<std::uint16_t>(TIFFTAG_COMPRESSION);
    Require(sample_format != SAMPLEFORMAT_IEEEFP && layout_.photometric != PHOTOMETRIC_LOGL &&
                layout_.photometric != PHOTOMETRIC_LOGLUV,
            "floating-point (HDR) samples are not supported");
    Require(sample_format == SAMPLEFORMAT_UINT || sample_format == SAMPLEFORMAT_VOID,
            "samples of this type are not supported (only unsigned integers)");
    Require(layout_.bits >= 1 && layout_.bits <= 16, "samples of ", layout_.bits,
            " bits are not supported");
    Require(layout_.samples >= 1 && layout_.samples <= 64, "pixels of ", layout_.samples,
            " samples are not supported");
    const bool contiguous = layout_.samples == 1 ||
                            file_.Value<std::uint16_t>(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_CONTIG;
    if (!contiguous) layout_.planes = layout_.samples;

    std::size_t bits = static_cast<std::size_t>(layout_.bits * layout_.samples);
    switch (layout_.photometric) {
      case PHOTOMETRIC_MINISBLACK:
      case PHOTOMETRIC_MINISWHITE:
        layout_.colours = 1;
        break;
      case PHOTOMETRIC_PALETTE:
        layout_.colours = 1;
        ReadPalette();
        break;
      case PHOTOMETRIC_RGB:
        layout_.colours = 3;
        break;
      case PHOTOMETRIC_SEPARATED:
        Require(file_.Value<std::uint16_t>(TIFFTAG_INKSET) == INKSET_CMYK,
                "inks other than cyan, magenta, yellow and black are not supported");
        layout_.colours = 4;
        break;
      case PHOTOMETRIC_YCBCR:
        layout_.colours = 3;
        if (compression == COMPRESSION_JPEG && contiguous && layout_.bits == 8) {
          file_.Set(TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        } else {
          whole_ = true;
          bits = 12;  // chroma may be subsampled
        }
        break;
      case PHOTOMETRIC_CIELAB:
      case PHOTOMETRIC_ICCLAB:
      case PHOTOMETRIC_ITULAB:
        throw Error("CIELAB colours are not supported");
      default:
        throw Error(StrCat("its kind of colours (PhotometricInterpretation ", layout_.photometric,
                           ") is not supported"));
    }
    if (whole_) {
      char reason[1024] = "";
      Require(TIFFRGBAImageOK(file_.get(), reason) == 1, "not supported: ", reason);
    } else {
      Require(layout_.samples >= layout_.colours, "its pixels have ", layout_.samples,
              " samples, its colours take ", layout_.colours);
      ReadAlphaLayout();
    }
    expansion_ = MostExpansion(compression);
    CheckFileSize(file_bytes_,
                  static_cast<std::size_t>(format_.width * format_.height) * bits / 8 / expansion_);
  }

  // A single extra sample of which the file says nothing is alpha in practice.
  void ReadAlphaLayout() {
    std::uint16_t count = 0;
    const std::uint16_t* extra = nullptr;
    TIFFGetFieldDefaulted(file_.get(), TIFFTAG_EXTRASAMPLES, &count, &extra);
    for (int i = 0; i < count && layout_.colours + i < layout_.samples; ++i) {
      const bool associated = extra[i] == EXTRASAMPLE_ASSOCALPHA;
      if (!associated && extra[i] != EXTRASAMPLE_UNASSALPHA && count > 1) continue;
      layout_.alpha = layout_.colours + i;
      layout_.associated = associated;
      return;
    }
    if (count == 0 && layout_.samples == layout_.colours + 1) layout_.alpha = layout_.colours;
  }

  void ReadPalette() {
    Require(layout_.bits <= 8, "palettes of ", layout_.bits, " bits are not supported");
    std::uint16_t* maps[3] = {};
    Require(TIFFGetField(file_.get(), TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]) == 1,
            "it has no colour map");
    const std::size_t size = std::size_t{1} << layout_.bits;
    // Of 16 bits, but some programs write 8.
    const bool narrow = std::all_of(std::begin(maps), std::end(maps), [&](const auto* map) {
      return std::all_of(map, map + size, [](std::uint16_t value) { return value < 256; });
    });
    for (std::size_t c = 0; c < 3; ++c) {
      palette_[c].resize(size);
      for (std::size_t i = 0; i < size; ++i)
        palette_[c][i] = static_cast<std::uint8_t>(narrow ? maps[c][i] : maps[c][i] >> 8);
    }
  }

  // From samples as stored to those of format_.bit_depth.
  void PrepareLevels() {
    const std::uint32_t stored_max = (1u << layout_.bits) - 1;
    const auto max = static_cast<std::uint32_t>(format_.MaxValue());
    levels_.resize(stored_max + 1);
    for (std::uint32_t i = 0; i <= stored_max; ++i)
      levels_[i] =
          static_cast<std::uint16_t>((std::uint64_t{i} * max + stored_max / 2) / stored_max);
  }

  void PrepareBand() {
    const bool tiled = TIFFIsTiled(file_.get()) != 0;
    std::uint64_t band_bytes = 0;  // of a plane
    if (tiled) {
      tile_width_ = file_.Value<std::uint32_t>(TIFFTAG_TILEWIDTH);
      const auto tile_height = file_.Value<std::uint32_t>(TIFFTAG_TILELENGTH);
      const std::uint64_t tile_bytes = TIFFTileSize64(file_.get());
      Require(tile_width_ > 0 && tile_height > 0 && tile_bytes > 0,
              "the size of its tiles is damaged");
      const std::uint64_t across =
          (static_cast<std::uint64_t>(format_.width) + tile_width_ - 1) / tile_width_;
      CheckFileSize(file_bytes_, tile_bytes / expansion_);
      tile_.resize(tile_bytes);
      band_rows_ = tile_height;
      row_bytes_ = tile_bytes / tile_height * across;
      band_bytes = row_bytes_ * tile_height;
    } else {
      row_bytes_ = TIFFScanlineSize64(file_.get());
      if (layout_.planes > 1) {
        band_rows_ = std::min<std::int64_t>(file_.Value<std::uint32_t>(TIFFTAG_ROWSPERSTRIP),
                                            format_.height);
      }
      Require(row_bytes_ > 0 && band_rows_ > 0, "the size of its strips is damaged");
      band_bytes = row_bytes_ * static_cast<std::uint64_t>(band_rows_);
    }
    CheckFileSize(file_bytes_, band_bytes / expansion_);
    band_.assign(static_cast<std::size_t>(layout_.planes), std::vector<std::uint8_t>(band_bytes));
  }

  std::size_t LargestRawStrip() const {
    return static_cast<std::size_t>(TIFFIsTiled(file_.get()) ? TIFFTileSize64(file_.get())
                                                             : TIFFStripSize64(file_.get()));
  }

  // Rows [y, y + band_rows_) of all planes.
  void ReadBand(std::uint32_t y) {
    for (std::size_t p = 0; p < band_.size(); ++p) {
      const auto plane = static_cast<std::uint16_t>(p);
      if (!tile_.empty()) {
        ReadTiles(y, plane);
      } else if (layout_.planes > 1) {
        const std::uint32_t strip = TIFFComputeStrip(file_.get(), y, plane);
        file_.Check(TIFFReadEncodedStrip(file_.get(), strip, band_[p].data(),
                                         static_cast<tmsize_t>(band_[p].size())) > 0);
      } else {
        file_.Check(TIFFReadScanline(file_.get(), band_[p].data(), y, 0) == 1);
      }
    }
  }

  void ReadTiles(std::uint32_t y, std::uint16_t plane) {
    const std::size_t tile_row = tile_.size() / static_cast<std::size_t>(band_rows_);
    std::uint8_t* to = band_[plane].data();
    for (std::uint32_t x = 0; x < format_.width; x += tile_width_, to += tile_row) {
      const std::uint32_t tile = TIFFComputeTile(file_.get(), x, y, 0, plane);
      file_.Check(TIFFReadEncodedTile(file_.get(), tile, tile_.data(),
                                      static_cast<tmsize_t>(tile_.size())) > 0);
      for (std::size_t row = 0; row < static_cast<std::size_t>(band_rows_); ++row)
        std::memcpy(to + row * row_bytes_, tile_.data() + row * tile_row, tile_row);
      if (tile_width_ > UINT32_MAX - x) break;
    }
  }

  // The sample as it is stored. Narrow ones lie side by side, from the highest bit on.
  std::uint32_t Stored(const std::uint8_t* row, std::size_t index) const {
    if (layout_.bits == 8) return row[index];
    if (layout_.bits == 16) {
      std::uint16_t value;
      std::memcpy(&value, row + 2 * index, 2);
      return value;
    }
    const auto bits = static_cast<std::size_t>(layout_.bits);
    std::uint32_t value = 0;
    for (std::size_t bit = index * bits; bit < (index + 1) * bits; ++bit)
      value = value << 1 | (row[bit / 8] >> (7 - bit % 8) & 1u);
    return value;
  }

  template <typename T>
  void ConvertRow(std::int64_t band_row, T* to) const {
    const auto max = static_cast<std::uint32_t>(format_.MaxValue());
    const auto samples = static_cast<std::size_t>(layout_.samples);
    const std::size_t row_at = static_cast<std::size_t>(band_row) * row_bytes_;
    const std::size_t colours = static_cast<std::size_t>(format_.ColourChannels());
    for (std::size_t x = 0; x < static_cast<std::size_t>(format_.width); ++x) {
      const auto stored = [&](std::size_t s) {
        return band_.size() > 1 ? Stored(band_[s].data() + row_at, x)
                                : Stored(band_[0].data() + row_at, x * samples + s);
      };
      const auto level = [&](std::size_t s) -> std::uint32_t { return levels_[stored(s)]; };
      T* pixel = to + x * static_cast<std::size_t>(format_.channels);
      for (std::size_t c = 0; c < colours; ++c) {
        std::uint32_t value = 0;
        if (IsPalette()) {
          value = palette_[c][stored(0)];
        } else if (IsCmyk()) {
          value = ((max - level(c)) * (max - level(3)) + max / 2) / max;
        } else {
          value = level(c);
          if (layout_.photometric == PHOTOMETRIC_MINISWHITE) value = max - value;
        }
        pixel[c] = static_cast<T>(value);
      }
      if (layout_.alpha < 0) continue;
      const std::uint32_t alpha = level(static_cast<std::size_t>(layout_.alpha));
      pixel[colours] = static_cast<T>(alpha);
      if (!layout_.associated || alpha == 0) continue;
      // Our pictures are not premultiplied.
      for (std::size_t c = 0; c < colours; ++c)
        pixel[c] = static_cast<T>(std::min(max, (pixel[c] * max + alpha / 2) / alpha));
    }
  }

  // What libtiff converts to RGB only for a picture as a whole.
  void WholeRow(std::int64_t y, std::uint8_t* to) {
    if (y == 0) {
      raster_.resize(static_cast<std::size_t>(format_.width * format_.height));
      // Its own orientation: nothing is to be turned here.
      file_.Check(TIFFReadRGBAImageOriented(file_.get(), static_cast<std::uint32_t>(format_.width),
                                            static_cast<std::uint32_t>(format_.height),
                                            raster_.data(), Orientation(), 1) == 1);
    }
    const std::uint32_t* from = raster_.data() + y * format_.width;
    for (std::int64_t x = 0; x < format_.width; ++x, to += 3) {
      to[0] = static_cast<std::uint8_t>(TIFFGetR(from[x]));
      to[1] = static_cast<std::uint8_t>(TIFFGetG(from[x]));
      to[2] = static_cast<std::uint8_t>(TIFFGetB(from[x]));
    }
  }

  std::string Bytes(std::uint32_t tag) const {
    std::uint32_t size = 0;
    const char* bytes = nullptr;
    if (TIFFGetField(file_.get(), tag, &size, &bytes) != 1) return {};
    return {bytes, size};
  }

  void ReadMetadata() {
    metadata_.xmp = Bytes(TIFFTAG_XMLPACKET);
    metadata_.icc = Bytes(TIFFTAG_ICCPROFILE);
    if (!metadata_.icc.empty() && (IsCmyk() || whole_)) {
      metadata_.icc.clear();
      warnings_.emplace_back("its colours are converted to RGB without its ICC profile");
    }
    metadata_.exif = std::move(exif_.block);
    if (exif_.damaged) warnings_.emplace_back("parts of its EXIF data are damaged");
    const auto unit = file_.Value<std::uint16_t>(TIFFTAG_RESOLUTIONUNIT);
    const double x = file_.Value<float>(TIFFTAG_XRESOLUTION),
                 y = file_.Value<float>(TIFFTAG_YRESOLUTION);
    const double per_metre = unit == RESUNIT_INCH         ? 1 / 0.0254
                             : unit == RESUNIT_CENTIMETER ? 100
                                                          : 0;
    if (per_metre > 0 && x > 0 && y > 0)
      metadata_.density = Metadata::Density{.x = x * per_metre, .y = y * per_metre};
  }

  FilePtr stream_;
  CollectedExif exif_;
  std::size_t file_bytes_;
  TiffFile file_;
  std::uint16_t photometric_ = 0;
  Layout layout_;
  std::size_t expansion_ = 1;
  std::vector<std::uint8_t> palette_[3];
  std::vector<std::uint16_t> levels_;

  std::vector<std::vector<std::uint8_t>> band_;  // of each plane, band_rows_ rows
  std::int64_t band_rows_ = 1;
  std::size_t row_bytes_ = 0;       // of a plane
  std::vector<std::uint8_t> tile_;  // if the file is tiled
  std::uint32_t tile_width_ = 0;

  bool whole_ = false;
  std::vector<std::uint32_t> raster_;  // if whole_, once the first row is asked for
  std::int64_t next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageReader> OpenTiff(FilePtr file, const ReadOptions& options) {
  auto reader = std::make_unique<TiffReader>(std::move(file), options);
  const int orientation = reader->Orientation();
  return TurnReader(std::move(reader), orientation);
}

}  // namespace tessera
