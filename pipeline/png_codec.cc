// PNG by libpng.
#include <png.h>
#include <zlib.h>

#include <bit>
#include <cerrno>
#include <csetjmp>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/png_metadata.h"
#include "pipeline/png_strip.h"
#include "pipeline/tiff_tags.h"

namespace tessera {
namespace {

// libpng reports errors by longjmp. Every call into it that may fail happens inside Guard, whose
// callables hold nothing with a destructor.
struct PngErrors {
  std::jmp_buf jump;
  std::string message;
  std::vector<std::string>* warnings = nullptr;

  template <typename F>
  void Guard(F&& call) {
    if (setjmp(jump)) throw Error(message);  // NOLINT(cert-err52-cpp)
    call();
  }
};

[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  auto* errors = static_cast<PngErrors*>(png_get_error_ptr(png));
  errors->message = message;
  std::longjmp(errors->jump, 1);  // NOLINT(cert-err52-cpp)
}

void OnWarning(png_structp png, png_const_charp message) {
  auto* errors = static_cast<PngErrors*>(png_get_error_ptr(png));
  if (errors->warnings != nullptr) errors->warnings->emplace_back(message);
}

void ReadBytes(png_structp png, png_bytep bytes, std::size_t count) {
  auto* file = static_cast<std::FILE*>(png_get_io_ptr(png));
  if (std::fread(bytes, 1, count, file) == count) return;
  png_error(png, std::ferror(file) ? std::strerror(errno) : "the file ends too soon");
}

void WriteBytes(png_structp png, png_bytep bytes, std::size_t count) {
  auto* file = static_cast<std::FILE*>(png_get_io_ptr(png));
  if (std::fwrite(bytes, 1, count, file) == count) return;
  png_error(png, std::strerror(errno));
}

void FlushNothing(png_structp) {}

class PngReader final : public ImageReader {
 public:
  PngReader(FilePtr file, const ReadOptions& options) : file_(std::move(file)) {
    errors_.warnings = &warnings_;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, OnError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      Destroy();
      throw std::bad_alloc();
    }
    try {
      ReadHeader(options);
    } catch (...) {
      Destroy();
      throw;
    }
  }
  ~PngReader() override { Destroy(); }

  std::size_t HeldBytes() const override {
    return interlaced_ ? format_.RowBytes() * static_cast<std::size_t>(format_.height) : 0;
  }

  void ReadRow(std::byte* row) override {
    if (!interlaced_) {
      errors_.Guard([&] { png_read_row(png_, reinterpret_cast<png_bytep>(row), nullptr); });
      return;
    }
    if (next_row_ == 0) ReadInterlaced();
    std::memcpy(row, whole_.Row(next_row_++), format_.RowBytes());
  }

  void Finish() override {
    // Without a place to put them, chunks are skipped.
    errors_.Guard([&] { png_read_end(png_, seekable_ ? nullptr : info_); });
    if (chunk_bytes_ > 0)
      warnings_.emplace_back(
          "what its metadata say behind the pixels is lost: they came by a pipe");
  }

 private:
  void ReadHeader(const ReadOptions& options) {
    const std::optional<PngScan> scan = ScanPng(file_.get(), warnings_);
    seekable_ = scan.has_value();
    png_uint_32 width = 0, height = 0;
    int bit_depth = 0, colour_type = 0, interlace = 0;
    errors_.Guard([&] {
      png_set_read_fn(png_, file_.get(), ReadBytes);
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      // What has been read is skipped, without a scan it is kept as it comes.
      png_set_keep_unknown_chunks(png_, scan ? PNG_HANDLE_CHUNK_NEVER : PNG_HANDLE_CHUNK_ALWAYS,
                                  reinterpret_cast<png_const_bytep>(kPngMetadataChunks.data()),
                                  static_cast<int>(kPngMetadataChunks.size() / 5));
      png_set_chunk_malloc_max(png_, kMaxPngMetadataBytes);
      if (!scan) png_set_read_user_chunk_fn(png_, this, KeepChunk);
      png_read_info(png_, info_);
      png_get_IHDR(png_, info_, &width, &height, &bit_depth, &colour_type, &interlace, nullptr,
                   nullptr);
    });
    CheckInputSize(width, height, options);
    if (scan) {
      // Deflate makes 258 bytes of two bits at best (RFC 1951, section 3.2.5).
      constexpr std::int64_t kMostExpansion = 1032;
      const auto row_bytes = static_cast<std::int64_t>(png_get_rowbytes(png_, info_)) + 1;
      Require(row_bytes <= scan->image_bytes * kMostExpansion / height, "its header claims ", width,
              "x", height, " pixels, more than ", scan->image_bytes, " bytes of data can hold");
    }
    metadata_ = ParsePngMetadata(scan ? scan->metadata : chunks_, warnings_);
    if (chunk_bytes_ > kMaxPngMetadataBytes) warnings_.emplace_back(kTooMuchPngMetadata);
    chunk_bytes_ = 0;
    interlaced_ = interlace != PNG_INTERLACE_NONE;
    errors_.Guard([&] {
      png_set_expand(png_);  // palettes, narrow grey, tRNS
      if (std::endian::native == std::endian::little) png_set_swap(png_);
      if (interlaced_) png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    format_ = {.width = width,
               .height = height,
               .channels = png_get_channels(png_, info_),
               .bit_depth = png_get_bit_depth(png_, info_)};
    Require(png_get_rowbytes(png_, info_) == format_.RowBytes(), "unexpected PNG row layout");
  }

  static int KeepChunk(png_structp png, png_unknown_chunkp chunk) {
    auto* reader = static_cast<PngReader*>(png_get_user_chunk_ptr(png));
    const std::string_view name(reinterpret_cast<const char*>(chunk->name), 4);
    if (!IsPngMetadata(name)) return 0;
    reader->chunk_bytes_ += chunk->size + sizeof(PngChunk);
    if (reader->chunk_bytes_ > kMaxPngMetadataBytes) return 1;
    try {
      reader->chunks_.push_back(
          {std::string(name), std::string(chunk->data, chunk->data + chunk->size)});
    } catch (const std::bad_alloc&) {
      return -1;
    }
    return 1;
  }

  // Adam7 spreads a row over the whole file: all of it is read at once.
  void ReadInterlaced() {
    whole_ = Picture(format_);
    std::vector<png_bytep> rows(static_cast<std::size_t>(format_.height));
    for (std::size_t y = 0; y < rows.size(); ++y)
      rows[y] = whole_.Row<png_byte>(static_cast<std::int64_t>(y));
    errors_.Guard([&] { png_read_image(png_, rows.data()); });
  }

  void Destroy() {
    png_destroy_read_struct(png_ ? &png_ : nullptr, info_ ? &info_ : nullptr, nullptr);
  }

  FilePtr file_;
  PngErrors errors_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  bool seekable_ = false;
  // If not: the metadata so far, and how many bytes they are, later those behind the pixels.
  std::vector<PngChunk> chunks_;
  std::size_t chunk_bytes_ = 0;
  bool interlaced_ = false;
  Picture whole_;  // if it is interlaced
  std::int64_t next_row_ = 0;
};

// Strips are compressed by png_strip.cc; libpng writes what is around them.
class PngWriter final : public ImageWriter {
 public:
  PngWriter(const PictureFormat& format, const WriteOptions& options, std::FILE* out)
      : format_(format), level_(options.png_level) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors_, OnError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      Destroy();
      throw std::bad_alloc();
    }
    try {
      WriteHeader(format, out);
      for (const PngChunk& chunk : MakePngMetadata(options.metadata))
        WriteChunk(chunk.name.c_str(), chunk.data);
    } catch (...) {
      Destroy();
      throw;
    }
  }
  ~PngWriter() override { Destroy(); }

  PackedStrip PackStrip(const Picture& picture, std::int64_t begin,
                        std::int64_t end) const override {
    return PackPngStrip(picture, begin, end, level_);
  }

  void WriteStrip(const Picture& /*picture*/, std::int64_t begin, std::int64_t end,
                  const PackedStrip& packed) override {
    std::string data;
    // Deflate with a window of 32 KB, no dictionary (RFC 1950).
    if (begin == 0) data = "\x78\x9C";
    data += packed.bytes;
    const std::int64_t bytes = (end - begin) * (static_cast<std::int64_t>(format_.RowBytes()) + 1);
    adler_ = adler32_combine(adler_, packed.checksum, static_cast<z_off_t>(bytes));
    if (end == format_.height) {
      for (const int shift : {24, 16, 8, 0}) data += static_cast<char>(adler_ >> shift & 0xFF);
    }
    WriteChunk("IDAT", data);
  }

  void Finish() override { WriteChunk("IEND", {}); }

 private:
  void WriteHeader(const PictureFormat& format, std::FILE* out) {
    static constexpr int kColourTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                           PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    errors_.Guard([&] {
      png_set_write_fn(png_, out, WriteBytes, FlushNothing);
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_set_IHDR(png_, info_, static_cast<png_uint_32>(format.width),
                   static_cast<png_uint_32>(format.height), format.bit_depth,
                   kColourTypes[format.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                   PNG_FILTER_TYPE_BASE);
      png_write_info(png_, info_);
    });
  }

  void WriteChunk(const char* name, const std::string& data) {
    errors_.Guard([&] {
      png_write_chunk(png_, reinterpret_cast<png_const_bytep>(name),
                      reinterpret_cast<png_const_bytep>(data.data()), data.size());
    });
  }

  void Destroy() { png_destroy_write_struct(png_ ? &png_ : nullptr, info_ ? &info_ : nullptr); }

  PictureFormat format_;
  std::optional<int> level_;
  uLong adler_ = 1;  // of the filtered bytes so far
  PngErrors errors_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

std::unique_ptr<ImageReader> OpenPng(FilePtr file, const ReadOptions& options) {
  auto reader = std::make_unique<PngReader>(std::move(file), options);
  const int orientation = TiffOrientation(std::as_bytes(std::span(reader->metadata().exif)));
  return TurnReader(std::move(reader), orientation);
}

std::unique_ptr<ImageWriter> MakePngWriter(const PictureFormat& picture,
                                           const WriteOptions& options, std::FILE* out) {
  return std::make_unique<PngWriter>(picture, options, out);
}

}  // namespace tessera
