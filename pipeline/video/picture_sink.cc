#include "pipeline/video/picture_sink.h"

#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"
#include "pipeline/image_writer.h"
#include "pipeline/output_name.h"
#include "pipeline/picture_name.h"
#include "pipeline/video/file_number.h"
#include "pipeline/video/picture_source.h"

namespace tessera {
namespace {

// `pixels`, B, G, R, as a picture, whose memory is used again if it has the size.
void ToPicture(const cv::Mat& pixels, Picture& picture) {
  const PictureFormat format{.width = pixels.cols, .height = pixels.rows};
  if (picture.bytes() == 0 || picture.format() != format) picture = Picture(format);
  for (int y = 0; y < pixels.rows; ++y) {
    const std::uint8_t* src = pixels.ptr(y);
    auto* dst = picture.Row<std::uint8_t>(y);
    for (int x = 0; x < pixels.cols; ++x, src += 3, dst += 3) {
      dst[0] = src[2];
      dst[1] = src[1];
      dst[2] = src[0];
    }
  }
}

std::filesystem::path OrCurrent(const std::filesystem::path& folder) {
  return folder.empty() ? "." : folder;
}

class PictureSink : public FrameSink {
 public:
  PictureSink(std::filesystem::path folder, bool overwrite)
      : folder_(std::move(folder)), overwrite_(overwrite) {
    NamingFile(folder_, [&] { AtomicFile::CheckTarget(folder_ / "frame", true); });
  }

  void Write(const Frame& frame) override {
    if (!std::exchange(prepared_, true)) Prepare();
    const ListedFile file = FileFor(frame);
    ToPicture(frame.pixels, picture_);
    WritePicture(file.output, file.format, picture_, {.overwrite = overwrite_});
  }

  void Close() override {}

 protected:
  virtual ListedFile FileFor(const Frame& frame) = 0;

  const std::filesystem::path folder_;  // "" is the current one

 private:
  void Prepare() {
    std::error_code error;
    std::filesystem::create_directories(OrCurrent(folder_), error);
    Require(!error, DisplayName(folder_), ": cannot create the folder: ", error.message());
    AtomicFile::RemoveStale(folder_);
  }

  bool overwrite_;
  bool prepared_ = false;
  Picture picture_;
};

// Named like the source's pictures, else by the frames' numbers.
class FolderSink : public PictureSink {
 public:
  using PictureSink::PictureSink;

 private:
  ListedFile FileFor(const Frame& frame) override {
    const std::filesystem::path own =
        frame.name.empty() ? numbered_.Of(frame.number) : std::filesystem::path(frame.name);
    ListedFile file = name_.For(own, folder_);
    if (frame.name.empty()) return file;
    // The source may have an a.gif and an a.png, and both become a.png.
    for (int i = 2; !written_.insert(file.output.filename()).second; ++i)
      file.output.replace_filename(
          StrCat(own.stem().native(), "-", i, file.output.extension().native()));
    return file;
  }

  const OutputName name_{ListOptions{}};
  const NumberedName numbered_{"%06d.png"};
  std::set<std::filesystem::path> written_;  // that have names of the source
};

class PatternSink : public PictureSink {
 public:
  PatternSink(const NumberedName& name, ImageFormat format, bool overwrite)
      : PictureSink(name.Of(0).parent_path(), overwrite), name_(name), format_(format) {}

 private:
  ListedFile FileFor(const Frame& frame) override {
    return {.input = {}, .output = name_.Of(frame.number), .format = format_};
  }

  const NumberedName name_;
  ImageFormat format_;
};

void RequireAbsent(const std::filesystem::path& file) {
  NamingFile(file, [&] { AtomicFile::CheckOverwrite(file, false); });
}

// Pictures that may still have to be read must not be replaced.
void CheckSource(const std::filesystem::path& folder, const SinkOptions& options) {
  if (!options.overwrite) return;
  auto source = StatusOf(options.source);
  if (!IsFolder(source) && HasPictureExtension(options.source))
    source = StatusOf(OrCurrent(options.source.parent_path()));
  const auto output = StatusOf(folder);
  Require(!IsFolder(source) || !output || IdOf(*source) != IdOf(*output), DisplayName(folder),
          ": the input's pictures are there");
}

}  // namespace

std::unique_ptr<FrameSink> MakeFolderSink(const std::filesystem::path& folder,
                                          const SinkOptions& options) {
  CheckSource(folder, options);
  if (!options.overwrite && IsFolder(StatusOf(folder))) {
    for (const auto& picture : PicturesOfFolder(folder)) RequireAbsent(picture);
  }
  return std::make_unique<FolderSink>(folder, options.overwrite);
}

std::unique_ptr<FrameSink> MakePatternSink(const std::filesystem::path& pattern,
                                           const SinkOptions& options) {
  const NumberedName name(pattern);
  const std::optional<ImageFormat> format = FormatOfExtension(name.Of(0));
  Require(format.has_value(), DisplayName(pattern),
          ": no picture format has this extension; known are ", KnownExtensions());
  const std::filesystem::path folder = OrCurrent(name.Of(0).parent_path());
  CheckSource(folder, options);
  if (!options.overwrite && IsFolder(StatusOf(folder))) {
    for (const std::int64_t number : name.Existing()) RequireAbsent(name.Of(number));
  }
  return std::make_unique<PatternSink>(name, *format, options.overwrite);
}

}  // namespace tessera
