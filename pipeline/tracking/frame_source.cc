#include "pipeline/tracking/frame_source.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <string_view>
#include <thread>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"
#include "pipeline/picture_name.h"
#include "pipeline/tracking/live_source.h"
#include "pipeline/tracking/opencv_video.h"
#include "pipeline/tracking/picture_source.h"
#include "pipeline/tracking/video_probe.h"
#include "pipeline/tracking/video_source.h"

namespace tessera {
namespace {

void CheckOptions(const SourceOptions& options) {
  Require(options.start >= 0, "frames are counted from 0; the first cannot be ", options.start);
  Require(!options.end || *options.end > options.start, "the end of the frames, ",
          options.end.value_or(0), ", is not after their start, ", options.start);
  Require(options.every >= 1, "one of every ", options.every, " frames cannot be taken");
}

bool HasExtension(const std::filesystem::path& path, const char* extension) {
  return ::strcasecmp(path.extension().c_str(), extension) == 0;
}

std::optional<int> CameraIndex(std::string_view input) {
  int index = 0;
  const auto [end, error] = std::from_chars(input.data(), input.data() + input.size(), index);
  if (error != std::errc() || end != input.data() + input.size() || index < 0) return std::nullopt;
  return index;
}

// The name without what is not for everybody's eyes: rtsp://user:password@camera/.
std::string ShownUrl(const std::string& url) {
  const std::size_t host = url.find("://") + 3;
  const std::size_t at = std::min(url.find('/', host), url.size());
  const std::size_t user_end = url.rfind('@', at);
  if (user_end == url.npos || user_end < host) return DisplayName(url);
  return DisplayName(url.substr(0, host) + "..." + url.substr(user_end));
}

LiveInput MakeLiveInput(const std::string& shown_name,
                        std::function<std::unique_ptr<cv::VideoCapture>()> open) {
  return {.shown_name = shown_name, .open = std::move(open), .wait = [](auto time) {
            std::this_thread::sleep_for(time);
          }};
}

// `device`: an index, or a path.
template <typename Device>
std::unique_ptr<FrameSource> OpenCameraSource(const Device& device, const std::string& shown_name,
                                              const SourceOptions& options) {
  const auto open = [device] { return OpenCamera(device); };
  return MakeLiveSource(open(), MakeLiveInput(shown_name, open), options);
}

std::unique_ptr<FrameSource> OpenVideoFile(const std::string& input, const struct stat& status,
                                           const SourceOptions& options) {
  const std::string shown_name = DisplayName(input), url = FileUrl(input);
  const bool is_file = S_ISREG(status.st_mode);  // pipes cannot be read twice
  Require(!is_file || status.st_size > 0, shown_name, ": the file is empty");
  auto capture = OpenVideo(url);
  if (capture == nullptr)
    throw Error(StrCat(shown_name, ": ", is_file ? WhyUnreadable(url) : "is no video"));
  return MakeVideoSource(std::move(capture), is_file ? url : "", shown_name, options);
}

std::unique_ptr<FrameSource> OpenUrl(const std::string& url, const SourceOptions& options) {
  const std::string shown_name = ShownUrl(url);
  auto capture = OpenVideo(url);
  if (capture == nullptr) throw Error(StrCat(shown_name, ": ", WhyUnreadable(url)));
  // A file that a server has.
  if (!url.starts_with("rtsp") && AnnouncedFrames(*capture) > 0)
    return MakeVideoSource(std::move(capture), url, shown_name, options);
  return MakeLiveSource(std::move(capture),
                        MakeLiveInput(shown_name, [url] { return OpenVideo(url); }), options);
}

}  // namespace

std::unique_ptr<FrameSource> OpenFrameSource(const std::string& input,
                                             const SourceOptions& options) {
  CheckOptions(options);
  Require(!input.empty(), "the input has an empty name");
  const std::string shown_name = DisplayName(input);
  if (const auto status = StatusOf(input)) {
    if (S_ISDIR(status->st_mode))
      return MakePictureSource(PicturesOfFolder(input), shown_name, options);
    if (S_ISCHR(status->st_mode)) return OpenCameraSource(input, shown_name, options);
    // FFmpeg reads animated GIFs.
    if (HasPictureExtension(input) && !HasExtension(input, ".gif"))
      return MakePictureSource({input}, shown_name, options);
    return OpenVideoFile(input, *status, options);
  }
  if (input.find("://") != input.npos) return OpenUrl(input, options);
  if (const auto index = CameraIndex(input))
    return OpenCameraSource(*index, StrCat("camera ", *index), options);
  if (input.find('%') != input.npos)
    return MakePictureSource(PicturesOfPattern(input), shown_name, options);
  throw Error(StrCat(shown_name, ": there is no such file or folder"));
}

}  // namespace tessera
