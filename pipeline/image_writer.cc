#include "pipeline/image_writer.h"

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/picture_output.h"
#include "pipeline/png_strip.h"

namespace tessera {

std::unique_ptr<ImageWriter> MakeImageWriter(ImageFormat format, const PictureFormat& picture,
                                             const WriteOptions& options, std::FILE* out) {
  Require(HeldFormat(format, picture) == picture, Name(format), " cannot hold ", picture.channels,
          " channels of ", picture.bit_depth, " bits");
  RequireHeldSize(format, picture);
  switch (format) {
    case ImageFormat::kPng:
      return MakePngWriter(picture, options, out);
    case ImageFormat::kJpeg:
      return MakeJpegWriter(picture, options, out);
    case ImageFormat::kWebp:
      return MakeWebpWriter(picture, options, out);
    case ImageFormat::kTiff:
      return MakeTiffWriter(picture, options, out);
    case ImageFormat::kBmp:
      return MakeBmpWriter(picture, options, out);
    case ImageFormat::kPnm:
      return MakePnmWriter(picture, out);
  }
  throw Error("no such format");
}

std::int64_t StripRows(ImageFormat format, const PictureFormat& picture) {
  switch (format) {
    case ImageFormat::kPng:
      return PngStripRows(picture);
    case ImageFormat::kTiff:
      return TiffStripRows(picture);
    default:
      return 16;
  }
}

std::size_t WriterBytes(ImageFormat format, const PictureFormat& picture, bool seekable) {
  switch (format) {
    case ImageFormat::kWebp:
      return WebpWriterBytes(picture);
    case ImageFormat::kTiff:
      return seekable ? 0 : picture.RowBytes() * static_cast<std::size_t>(picture.height);
    default:
      return 0;
  }
}

void WritePicture(const std::filesystem::path& path, ImageFormat format, const Picture& picture,
                  const WriteOptions& options) {
  SerialParallel serial;
  PictureOutput(path, format, picture, options).Commit(serial);
}

}  // namespace tessera
