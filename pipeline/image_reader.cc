#include "pipeline/image_reader.h"

#include <array>
#include <span>
#include <utility>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/display_name.h"
#include "pipeline/image_format.h"
#include "pipeline/require_system.h"

namespace tessera {

void CheckInputSize(std::int64_t width, std::int64_t height, const ReadOptions& options) {
  Require(width > 0 && height > 0, "its header claims ", width, "x", height, " pixels");
  Require(width <= options.max_pixels / height, "its header claims ", width, "x", height,
          " pixels; the limit is ", options.max_pixels, " in all");
}

std::unique_ptr<ImageReader> OpenImage(const std::filesystem::path& path,
                                       const ReadOptions& options) {
  FilePtr file(std::fopen(path.c_str(), "rb"));
  RequireSystem(file != nullptr, "cannot open");
  std::array<std::byte, 16> head;
  const std::size_t size = std::fread(head.data(), 1, head.size(), file.get());
  RequireSystem(!std::ferror(file.get()), "cannot read");
  Require(size > 0, "the file is empty");
  RequireSystem(std::fseek(file.get(), 0, SEEK_SET) == 0, "cannot seek (is it a pipe?)");
  switch (DecoderOf(std::span(head.data(), size))) {
    case Decoder::kPng:
      return OpenPng(std::move(file), options);
    case Decoder::kJpeg:
      return OpenJpeg(std::move(file), options);
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
  return NamingFile(path, [&] {
    const std::unique_ptr<ImageReader> reader = OpenImage(path);
    Picture picture = ReadAll(*reader);
    return PictureFile{std::move(picture), reader->warnings()};
  });
}

}  // namespace tessera
