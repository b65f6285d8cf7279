// TIFF by libtiff, in strips.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/tiff_exif.h"
#include "pipeline/tiff_file.h"

namespace tessera {
namespace {

bool IsInteger(std::uint16_t type) {
  return type == kTiffByte || type == kTiffUndefined || type == kTiffShort || type == kTiffLong;
}

bool IsRational(std::uint16_t type) { return type == kTiffRational || type == kTiffSignedRational; }

std::vector<double> Rationals(const TiffDirectories& tiff, const TiffEntry& entry) {
  const auto number = [&](std::size_t i) {
    const auto value = static_cast<std::uint32_t>(tiff.Integer(entry, i));
    if (entry.type == kTiffSignedRational)
      return static_cast<double>(static_cast<std::int32_t>(value));
    return static_cast<double>(value);
  };
  std::vector<double> values;
  for (std::size_t i = 0; i < entry.count; ++i) values.push_back(number(2 * i) / number(2 * i + 1));
  return values;
}

// Nothing if T does not hold one of them.
template <typename T>
std::optional<std::vector<T>> Integers(const TiffDirectories& tiff, const TiffEntry& entry) {
  std::vector<T> values;
  for (std::size_t i = 0; i < entry.count; ++i) {
    const std::uint64_t value = tiff.Integer(entry, i);
    if (value > std::numeric_limits<T>::max()) return std::nullopt;
    values.push_back(static_cast<T>(value));
  }
  return values;
}

// Whether libtiff finds two numbers of 32 bits for a value, which may go through a float. It writes
// others as 0 or as a division by 0.
bool FitsRational(double value, bool is_signed) {
  const double size = std::abs(static_cast<double>(static_cast<float>(value)));
  return (value >= 0 || is_signed) && size < (is_signed ? 0x1p31 : 0x1p32) &&
         (value == 0 || size > 0x1p-31);
}

// Puts tags of an EXIF block into the present directory of a file, as far as libtiff knows them.
class TagCopy {
 public:
  TagCopy(const TiffDirectories& from, TIFF* to) : from_(from), to_(to) {}

  // False if the tag was left out.
  bool Copy(const TiffEntry& entry) const {
    const TIFFField* field = TIFFFindField(to_, entry.tag, TIFF_ANY);
    if (field == nullptr) return false;
    switch (TIFFFieldDataType(field)) {
      case TIFF_ASCII:
        // Up to its end mark, or as long as it is.
        return entry.type == kTiffAscii &&
               TIFFSetField(to_, entry.tag, std::string(entry.value.c_str()).c_str()) == 1;
      case TIFF_BYTE:
      case TIFF_UNDEFINED:
        return SetIntegers<std::uint8_t>(field, entry);
      case TIFF_SHORT:
        return SetIntegers<std::uint16_t>(field, entry);
      case TIFF_LONG:
        return SetIntegers<std::uint32_t>(field, entry);
      case TIFF_RATIONAL:
      case TIFF_SRATIONAL:
        return IsRational(entry.type) && SetRationals(field, Rationals(from_, entry));
      default:
        return false;
    }
  }

 private:
  // libtiff takes a single value itself, several by their address, and an open number of them with
  // that number in front.
  template <typename T>
  bool Set(const TIFFField* field, const std::vector<T>& values) const {
    const std::uint32_t tag = TIFFFieldTag(field);
    const int count = TIFFFieldWriteCount(field);
    if (TIFFFieldPassCount(field) != 0) {
      if (count == TIFF_VARIABLE2)
        return TIFFSetField(to_, tag, static_cast<std::uint32_t>(values.size()), values.data()) ==
               1;
      return values.size() <= 0xFFFF &&
             TIFFSetField(to_, tag, static_cast<int>(values.size()), values.data()) == 1;
    }
    if (count != static_cast<int>(values.size())) return false;
    return count == 1 ? TIFFSetField(to_, tag, values.front()) == 1
                      : TIFFSetField(to_, tag, values.data()) == 1;
  }

  template <typename T>
  bool SetIntegers(const TIFFField* field, const TiffEntry& entry) const {
    if (!IsInteger(entry.type)) return false;
    const auto values = Integers<T>(from_, entry);
    return values && Set(field, *values);
  }

  bool SetRationals(const TIFFField* field, const std::vector<double>& values) const {
    const bool is_signed = TIFFFieldDataType(field) == TIFF_SRATIONAL;
    for (const double value : values)
      if (!FitsRational(value, is_signed)) return false;
    if (TIFFFieldSetGetSize(field) == sizeof(double) || TIFFFieldWriteCount(field) == 1)
      return Set(field, values);
    return Set(field, std::vector<float>(values.begin(), values.end()));
  }

  const TiffDirectories& from_;
  TIFF* to_;
};

class TiffWriter final : public ImageWriter {
 public:
  TiffWriter(const PictureFormat& format, const WriteOptions& options, std::FILE* out)
      : format_(format), file_(out, Mode(format), warnings_) {
    const Metadata& metadata = options.metadata;
    // First, so that their places are known when the picture's own tags are written.
    auto exif = TiffDirectories::Open(TiffInMemory(std::as_bytes(std::span(metadata.exif))));
    std::uint64_t exif_at = 0, gps_at = 0;
    if (exif) {
      exif_at = WriteDirectory(*exif, kTiffExifDirectory, TIFFCreateEXIFDirectory);
      gps_at = WriteDirectory(*exif, kTiffGpsDirectory, TIFFCreateGPSDirectory);
      StartDirectory(TIFFCreateDirectory);
    }

    SetLayout();
    if (exif) {
      if (exif_at != 0) file_.Set(TIFFTAG_EXIFIFD, exif_at);
      if (gps_at != 0) file_.Set(TIFFTAG_GPSIFD, gps_at);
      const TagCopy copy(*exif, file_.get());
      for (const TiffEntry& entry : exif->ReadFirst(IsDescriptiveTag)) Copied(copy, entry);
    }
    if (!exif_fits_) notes_.emplace_back("parts of the EXIF do not fit into TIFF and are left out");
    SetMetadata(metadata);
  }

  void WriteStrip(const Picture& picture, std::int64_t begin, std::int64_t end,
                  const PackedStrip& /*packed*/) override {
    strip_.clear();
    for (std::int64_t y = begin; y < end; ++y)
      strip_.insert(strip_.end(), picture.Row(y), picture.Row(y) + format_.RowBytes());
    const auto strip = static_cast<std::uint32_t>(begin / TiffStripRows(format_));
    const auto size = static_cast<tmsize_t>(strip_.size());
    file_.Check(TIFFWriteEncodedStrip(file_.get(), strip, strip_.data(), size) == size);
  }

  void Finish() override {
    file_.Check(TIFFWriteDirectory(file_.get()) == 1);
    file_.Finish();
  }

 private:
  // Classic TIFF has offsets of 32 bits.
  static const char* Mode(const PictureFormat& format) {
    constexpr std::uint64_t kMaxClassicBytes = 0xF0000000;  // deflate may add a little
    const std::uint64_t bytes =
        std::uint64_t{format.RowBytes()} * static_cast<std::uint64_t>(format.height);
    return bytes <= kMaxClassicBytes ? "w" : "w8";
  }

  bool Copied(const TagCopy& copy, const TiffEntry& entry) {
    const bool copied = copy.Copy(entry);
    exif_fits_ = exif_fits_ && copied;
    return copied;
  }

  // The functions that create one forget the values of the one before without freeing them.
  void StartDirectory(int (*create)(TIFF*)) {
    TIFFFreeDirectory(file_.get());
    file_.Check(create(file_.get()) == 0);
  }

  // Copies the directory that a tag of the first one leads to; its place in the file, or 0.
  std::uint64_t WriteDirectory(TiffDirectories& exif, std::uint16_t pointer, int (*create)(TIFF*)) {
    const auto pointers = exif.ReadFirst([&](std::uint16_t tag) { return tag == pointer; });
    if (pointers.empty()) return 0;
    const auto entries = exif.Read(exif.Integer(pointers.front()), [](std::uint16_t tag) {
      return tag != kTiffInteroperabilityDirectory;
    });
    if (entries.empty()) return 0;
    StartDirectory(create);
    const TagCopy copy(exif, file_.get());
    bool any = false;
    for (const TiffEntry& entry : entries) any = Copied(copy, entry) || any;
    if (!any) return 0;
    std::uint64_t place = 0;
    file_.Check(TIFFWriteCustomDirectory(file_.get(), &place) == 1);
    return place;
  }

  void SetLayout() {
    file_.Set(TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(format_.width));
    file_.Set(TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(format_.height));
    file_.Set(TIFFTAG_SAMPLESPERPIXEL, format_.channels);
    file_.Set(TIFFTAG_BITSPERSAMPLE, format_.bit_depth);
    file_.Set(TIFFTAG_PHOTOMETRIC,
              format_.ColourChannels() == 1 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB);
    file_.Set(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    file_.Set(TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    file_.Set(TIFFTAG_ROWSPERSTRIP, static_cast<std::uint32_t>(TiffStripRows(format_)));
    file_.Set(TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
    file_.Set(TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
    if (format_.HasAlpha()) {
      const std::uint16_t extra = EXTRASAMPLE_UNASSALPHA;
      file_.Set(TIFFTAG_EXTRASAMPLES, 1, &extra);
    }
  }

  void SetMetadata(const Metadata& metadata) {
    const auto set_bytes = [&](std::uint32_t tag, const std::string& bytes) {
      if (!bytes.empty()) file_.Set(tag, static_cast<std::uint32_t>(bytes.size()), bytes.data());
    };
    set_bytes(TIFFTAG_ICCPROFILE, metadata.icc);
    set_bytes(TIFFTAG_XMLPACKET, metadata.xmp);
    if (!metadata.density) return;
    constexpr double kInch = 0.0254;  // metres
    const double x = metadata.density->x * kInch, y = metadata.density->y * kInch;
    if (!FitsRational(x, false) || !FitsRational(y, false)) {
      notes_.emplace_back("the resolution does not fit into TIFF and is left out");
      return;
    }
    file_.Set(TIFFTAG_RESOLUTIONUNIT, RESUNIT_INCH);
    file_.Set(TIFFTAG_XRESOLUTION, x);
    file_.Set(TIFFTAG_YRESOLUTION, y);
  }

  PictureFormat format_;
  std::vector<std::string> warnings_;  // none that matter: what was not understood is left out
  TiffFile file_;
  std::vector<std::byte> strip_;
  bool exif_fits_ = true;
};

}  // namespace

std::int64_t TiffStripRows(const PictureFormat& picture) {
  constexpr std::size_t kStripBytes = std::size_t{1} << 18;
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(kStripBytes / picture.RowBytes()), 1,
                                  picture.height);
}

std::unique_ptr<ImageWriter> MakeTiffWriter(const PictureFormat& picture,
                                            const WriteOptions& options, std::FILE* out) {
  return std::make_unique<TiffWriter>(picture, options, out);
}

}  // namespace tessera
