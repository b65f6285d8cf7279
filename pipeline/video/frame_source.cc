#include "pipeline/video/frame_source.h"

#include <strings.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <thread>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"
#include "pipeline/picture_name.h"
#include "pipeline/video/live_source.h"
#include "pipeline/video/opencv_video.h"
#include "pipeline/video/picture_source.h"
#include "pipeline/video/video_probe.h"
#include "pipeline/video/video_source.h"

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

// Without what is not for everybody's eyes: many cameras want the password in the query.
std::string ShownUrl(const std::string& url) {
  const std::size_t host = url.find("://") + 3;
  const std::size_t query = std::min(url.find('?', host), url.size());
  const std::size_t path = std::min(url.find('/', host), query);
  const std::size_t user_end = url.substr(0, path).rfind('@');
  std::string shown = url.substr(0, host);
  if (user_end == url.npos || user_end < host) {
    shown += url.substr(host, query - host);
  } else {
    shown += "..." + url.substr(user_end, query - user_end);
  }
  return DisplayName(query < url.size() ? shown + "?..." : shown);
}

// A server that is silent for longer is given up, so that nobody waits long for the end.
constexpr std::chrono::milliseconds kServerPatience{3000};

LiveInput MakeLiveInput(const std::string& shown_name,
                        std::function<std::unique_ptr<cv::VideoCapture>()> open,
                        const SourceOptions& options) {
  return {.shown_name = shown_name,
          .open = std::move(open),
          .wait = [options](std::chrono::milliseconds time) {
            constexpr std::chrono::milliseconds kSlice{50};
            for (; time > kSlice && !options.stopped(); time -= kSlice)
              std::this_thread::sleep_for(kSlice);
            std::this_thread::sleep_for(std::min(time, kSlice));
          }};
}

// `device`: an index, or a path.
template <typename Device>
std::unique_ptr<FrameSource> OpenCameraSource(const Device& device, const std::string& shown_name,
                                              const SourceOptions& options) {
  const auto open = [device] { return OpenCamera(device); };
  return MakeLiveSource(open(), MakeLiveInput(shown_name, open, options), options);
}

std::unique_ptr<FrameSource> OpenVideoFile(const std::string& input, const std::string& shown_name,
                                           const struct stat& status,
                                           const SourceOptions& options) {
  const bool is_file = S_ISREG(status.st_mode);  // pipes cannot be read twice
  Require(!is_file || status.st_size > 0, shown_name, ": the file is empty");
  auto capture = OpenVideo(FileUrl(input));
  if (capture == nullptr) {
    throw Error(StrCat(shown_name, ": ",
                       is_file ? WhyUnreadable(FileUrl(input), options.stop) : "is no video"));
  }
  return MakeVideoSource(
      std::move(capture),
      {.shown_name = shown_name,
       .file = is_file ? input : "",
       .colors = is_file ? ColorsOf(FileUrl(input), options.stop) : ColorCoding()},
      options);
}

std::unique_ptr<FrameSource> OpenUrl(const std::string& url, const std::string& shown_name,
                                     const SourceOptions& options) {
  const auto open = [url] { return OpenStream(url, kServerPatience); };
  const auto began = std::chrono::steady_clock::now();
  auto capture = open();
  if (capture == nullptr) {
    const bool silent = std::chrono::steady_clock::now() - began >= kServerPatience;
    throw Error(
        StrCat(shown_name, ": ", silent ? "no answer comes" : WhyUnreadable(url, options.stop)));
  }
  // A file that a server has.
  if (!url.starts_with("rtsp") && AnnouncedFrames(*capture) > 0)
    return MakeVideoSource(std::move(capture),
                           {.shown_name = shown_name, .patience = kServerPatience}, options);
  return MakeLiveSource(std::move(capture), MakeLiveInput(shown_name, open, options), options);
}

bool IsUrl(const std::string& input) { return input.find("://") != input.npos; }

}  // namespace

std::string ShownInput(const std::string& input) {
  if (StatusOf(input)) return DisplayName(input);
  if (IsUrl(input)) return ShownUrl(input);
  const std::optional<int> index = CameraIndex(input);
  return index ? StrCat("camera ", *index) : DisplayName(input);
}

std::unique_ptr<FrameSource> OpenFrameSource(const std::string& input,
                                             const SourceOptions& options) {
  CheckOptions(options);
  Require(!input.empty(), "the input has an empty name");
  SilenceVideoLibraries();
  const std::string shown_name = ShownInput(input);
  if (const auto status = StatusOf(input)) {
    if (S_ISDIR(status->st_mode))
      return MakePictureSource(PicturesOfFolder(input), shown_name, options);
    if (S_ISCHR(status->st_mode)) return OpenCameraSource(input, shown_name, options);
    // FFmpeg reads animated GIFs.
    if (HasPictureExtension(input) && !HasExtension(input, ".gif"))
      return MakePictureSource({input}, shown_name, options);
    return OpenVideoFile(input, shown_name, *status, options);
  }
  if (IsUrl(input)) return OpenUrl(input, shown_name, options);
  if (const auto index = CameraIndex(input)) return OpenCameraSource(*index, shown_name, options);
  if (input.find('%') != input.npos) {
    PatternPictures pictures = PicturesOfPattern(input);
    return MakePictureSource(std::move(pictures.files), shown_name, options, pictures.left_out);
  }
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(input, error);
  Require(status.type() == std::filesystem::file_type::not_found, shown_name, ": ",
          error.message());
  throw Error(StrCat(shown_name, ": there is no such file or folder"));
}

}  // namespace tessera
