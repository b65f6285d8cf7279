#include "pipeline/image_writer.h"

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/codecs.h"
#include "pipeline/display_name.h"

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
      return MakePngWriter(picture, out);
    case ImageFormat::kJpeg:
      return MakeJpegWriter(picture, options, out);
    default:
      return MakeOpenCvWriter(format, picture, options, out);
  }
}

void WritePicture(const std::filesystem::path& path, ImageFormat format, const Picture& picture,
                  const WriteOptions& options) {
  NamingFile(path, [&] {
    AtomicFile file(path);
    const std::unique_ptr<ImageWriter> writer =
        MakeImageWriter(format, picture.format(), options, file.stream());
    for (std::int64_t y = 0; y < picture.height(); ++y) writer->WriteRow(picture.Row(y));
    writer->Finish();
    file.Commit();
  });
}

}  // namespace tessera
