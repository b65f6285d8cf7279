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
  const std::int64_t limit = MaxDimension(format);
  Require(picture.width <= limit && picture.height <= limit, Name(format), " cannot hold ",
          picture.width, "x", picture.height, " pixels (at most ", limit, " a side)");
  switch (format) {
    case ImageFormat::kPng:
      return MakePngWriter(picture, options, out);
    case ImageFormat::kJpeg:
      return MakeJpegWriter(picture, options, out);
    default:
      return MakeOpenCvWriter(format, picture, options, out);
  }
}

std::int64_t StripRows(ImageFormat format, const PictureFormat& picture) {
  return format == ImageFormat::kPng ? PngStripRows(picture) : 16;
}

std::size_t WriterBytes(ImageFormat format, const PictureFormat& picture) {
  if (format == ImageFormat::kPng || format == ImageFormat::kJpeg) return 0;
  // The picture, and its encoded form.
  return 2 * picture.RowBytes() * static_cast<std::size_t>(picture.height);
}

void WritePicture(const std::filesystem::path& path, ImageFormat format, const Picture& picture,
                  const WriteOptions& options) {
  SerialParallel serial;
  PictureOutput(path, format, picture, options).Commit(serial);
}

}  // namespace tessera
