// PNG by libpng.
#include <png.h>
#include <zlib.h>

#include <bit>
#include <cerrno>
#include <csetjmp>
#include <cstring>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/png_strip.h"

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

  void ReadRow(std::byte* row) override {
    if (interlaced_) {
      std::memcpy(row, whole_.Row(next_row_++), format_.RowBytes());
      return;
    }
    errors_.Guard([&] { png_read_row(png_, reinterpret_cast<png_bytep>(row), nullptr); });
  }

  void Finish() override {
    errors_.Guard([&] { png_read_end(png_, nullptr); });
  }

 private:
  void ReadHeader(const ReadOptions& options) {
    png_uint_32 width = 0, height = 0;
    int bit_depth = 0, colour_type = 0, interlace = 0;
    errors_.Guard([&] {
      png_set_read_fn(png_, file_.get(), ReadBytes);
      png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
      png_read_info(png_, info_);
      png_get_IHDR(png_, info_, &width, &height, &bit_depth, &colour_type, &interlace, nullptr,
                   nullptr);
    });
    CheckInputSize(width, height, options);
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
    if (interlaced_) ReadInterlaced();
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
  bool interlaced_ = false;
  Picture whole_;
  std::int64_t next_row_ = 0;
};

// Strips are compressed by png_strip.cc; libpng writes what is around them.
class PngWriter final : public ImageWriter {
 public:
  PngWriter(const PictureFormat& format, std::FILE* out) : format_(format) {
    png_ = png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors_, OnError, OnWarning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      Destroy();
      throw std::bad_alloc();
    }
    try {
      WriteHeader(format, out);
    } catch (...) {
      Destroy();
      throw;
    }
  }
  ~PngWriter() override { Destroy(); }

  PackedStrip PackStrip(const Picture& picture, std::int64_t begin,
                        std::int64_t end) const override {
    return PackPngStrip(picture, begin, end);
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
  uLong adler_ = 1;  // of the filtered bytes so far
  PngErrors errors_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

std::unique_ptr<ImageReader> OpenPng(FilePtr file, const ReadOptions& options) {
  return std::make_unique<PngReader>(std::move(file), options);
}

std::unique_ptr<ImageWriter> MakePngWriter(const PictureFormat& picture,
                                           const WriteOptions& /*options*/, std::FILE* out) {
  return std::make_unique<PngWriter>(picture, out);
}

}  // namespace tessera
