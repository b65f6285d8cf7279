#include "pipeline/image_reader.h"

#include <span>
#include <string>
#include <utility>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/display_name.h"
#include "pipeline/image_format.h"

namespace tessera {

void CheckInputSize(std::int64_t width, std::int64_t height, const ReadOptions& options) {
  Require(width > 0 && height > 0, "its header claims ", width, "x", height, " pixels");
  Require(width <= options.max_pixels / height, "its header claims ", width, "x", height,
          " pixels; the limit is ", options.max_pixels, " in all");
}

void CheckFileSize(std::size_t file_bytes, std::size_t least_bytes) {
  Require(file_bytes >= least_bytes, "the file ends too soon: its pixels take ", least_bytes,
          " bytes, it has ", file_bytes);
}

std::unique_ptr<ImageReader> OpenImage(const std::filesystem::path& path,
                                       const ReadOptions& options) {
  FilePtr file = OpenInput(path);
  const std::string head = Peek(file, kFormatHeadBytes);
  Require(!head.empty(), "the file is empty");
  switch (DecoderOf(std::as_bytes(std::span(head)))) {
    case Decoder::kPng:
      return OpenPng(std::move(file), options);
    case Decoder::kJpeg:
      return OpenJpeg(std::move(file), options);
    case Decoder::kWebp:
      return OpenWebp(std::move(file), options);
    case Decoder::kTiff:
      return OpenTiff(MakeSeekable(std::move(file), kMaxFileInMemory), options);
    case Decoder::kGif:
      return OpenGif(std::move(file), options);
    case Decoder::kOther:
      break;
  }
  return OpenWithOpenCv(std::move(file), options);
}

Picture ReadAll(ImageReader& reader) {
  Picture picture(reader.format());
  for (std::int64_t y = 0; y < picture.height(); ++y) reader.ReadRow(picture.Row(y));
  reader.Finish();
  return picture;
}

PictureFile ReadPicture(const std::filesystem::path& path) {
  return NamingInput(path, [&] {
    const std::unique_ptr<ImageReader> reader = OpenImage(path);
    Picture picture = ReadAll(*reader);
    return PictureFile{std::move(picture), reader->warnings()};
  });
}

}  // namespace tessera
