// Writers of formats that are a header and rows: BMP (its BITMAPINFOHEADER of 1990) and PNM (the
// netpbm manuals of pgm and ppm). OpenCV reads them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/require_system.h"

namespace tessera {
namespace {

constexpr std::int64_t kBmpHeaderBytes = 14 + 40;

// Rows end on a multiple of 4 bytes.
std::int64_t BmpRowBytes(const PictureFormat& picture) {
  return (picture.width * picture.channels + 3) / 4 * 4;
}

// Grey needs a palette.
std::int64_t BmpPixelsOffset(const PictureFormat& picture) {
  return kBmpHeaderBytes + (picture.channels == 1 ? 256 * 4 : 0);
}

void AppendLittleEndian(std::string& bytes, std::int64_t value, int size) {
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 0xFF);
}

std::string BmpHeader(const PictureFormat& picture, const Metadata& metadata) {
  const auto per_metre = [](double density) -> std::int64_t {
    return density > 0 && density < 0x1p31 ? std::llround(density) : 0;
  };
  const Metadata::Density density = metadata.density.value_or(Metadata::Density{});
  std::string header = "BM";
  AppendLittleEndian(header, BmpFileBytes(picture), 4);
  AppendLittleEndian(header, 0, 4);
  AppendLittleEndian(header, BmpPixelsOffset(picture), 4);
  AppendLittleEndian(header, 40, 4);
  AppendLittleEndian(header, picture.width, 4);
  AppendLittleEndian(header, -picture.height, 4);  // from the top
  AppendLittleEndian(header, 1, 2);
  AppendLittleEndian(header, 8 * picture.channels, 2);
  AppendLittleEndian(header, 0, 4);  // not compressed
  AppendLittleEndian(header, 0, 4);
  AppendLittleEndian(header, per_metre(density.x), 4);
  AppendLittleEndian(header, per_metre(density.y), 4);
  AppendLittleEndian(header, 0, 8);
  if (picture.channels == 1)
    for (std::int64_t grey = 0; grey < 256; ++grey) AppendLittleEndian(header, grey * 0x010101, 4);
  return header;
}

class UncompressedWriter : public ImageWriter {
 public:
  void WriteStrip(const Picture& picture, std::int64_t begin, std::int64_t end,
                  const PackedStrip& /*packed*/) override {
    for (std::int64_t y = begin; y < end; ++y) {
      std::copy_n(picture.Row(y), format_.RowBytes(), reinterpret_cast<std::byte*>(row_.data()));
      ToFileOrder();
      Write(row_);
    }
  }
  void Finish() override {}

 protected:
  UncompressedWriter(const PictureFormat& format, std::size_t row_bytes, std::FILE* out)
      : format_(format), row_(row_bytes, '\0'), out_(out) {}

  void Write(const std::string& bytes) {
    RequireSystem(std::fwrite(bytes.data(), 1, bytes.size(), out_) == bytes.size(), "cannot write");
  }
  virtual void ToFileOrder() = 0;

  PictureFormat format_;
  std::string row_;

 private:
  std::FILE* out_;
};

class BmpWriter final : public UncompressedWriter {
 public:
  BmpWriter(const PictureFormat& picture, const WriteOptions& options, std::FILE* out)
      : UncompressedWriter(picture, static_cast<std::size_t>(BmpRowBytes(picture)), out) {
    Write(BmpHeader(picture, options.metadata));
  }

 private:
  void ToFileOrder() override {
    if (format_.channels == 1) return;
    for (std::size_t i = 0; i + 2 < format_.RowBytes(); i += 3) std::swap(row_[i], row_[i + 2]);
  }
};

class PnmWriter final : public UncompressedWriter {
 public:
  PnmWriter(const PictureFormat& picture, std::FILE* out)
      : UncompressedWriter(picture, picture.RowBytes(), out) {
    Write(StrCat(picture.channels == 1 ? "P5" : "P6", "\n", picture.width, " ", picture.height,
                 "\n", picture.MaxValue(), "\n"));
  }

 private:
  void ToFileOrder() override {
    if (format_.bit_depth == 8 || std::endian::native == std::endian::big) return;
    for (std::size_t i = 0; i + 1 < row_.size(); i += 2) std::swap(row_[i], row_[i + 1]);
  }
};

}  // namespace

std::int64_t BmpFileBytes(const PictureFormat& picture) {
  return BmpPixelsOffset(picture) + BmpRowBytes(picture) * picture.height;
}

std::unique_ptr<ImageWriter> MakeBmpWriter(const PictureFormat& picture,
                                           const WriteOptions& options, std::FILE* out) {
  return std::make_unique<BmpWriter>(picture, options, out);
}

std::unique_ptr<ImageWriter> MakePnmWriter(const PictureFormat& picture, std::FILE* out) {
  return std::make_unique<PnmWriter>(picture, out);
}

}  // namespace tessera
