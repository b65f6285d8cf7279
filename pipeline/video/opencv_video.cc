#include "pipeline/video/opencv_video.h"

#include <cstdlib>
#include <mutex>
#include <opencv2/core/utils/logger.hpp>
#include <vector>

extern "C" {
#include <libavutil/log.h>
}

namespace tessera {
namespace {

template <typename... Args>
std::unique_ptr<cv::VideoCapture> Open(const Args&... args) {
  return CallingOpenCv([&] {
    auto capture = std::make_unique<cv::VideoCapture>(args...);
    if (!capture->isOpened()) capture.reset();
    return capture;
  });
}

}  // namespace

void SilenceVideoLibraries() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (std::getenv("OPENCV_LOG_LEVEL") == nullptr)
      cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    if (std::getenv("OPENCV_FFMPEG_LOGLEVEL") != nullptr) return;
    // OpenCV sets the level again from this when it opens its first video.
    ::setenv("OPENCV_FFMPEG_LOGLEVEL", std::to_string(AV_LOG_QUIET).c_str(), 0);
    ::av_log_set_level(AV_LOG_QUIET);
  });
}

std::unique_ptr<cv::VideoCapture> OpenVideo(const std::string& url) {
  return Open(url, static_cast<int>(cv::CAP_FFMPEG));
}

std::unique_ptr<cv::VideoCapture> OpenStream(const std::string& url,
                                             std::chrono::milliseconds patience) {
  const int limit = static_cast<int>(patience.count());
  return Open(url, static_cast<int>(cv::CAP_FFMPEG),
              std::vector<int>{cv::CAP_PROP_OPEN_TIMEOUT_MSEC, limit,
                               cv::CAP_PROP_READ_TIMEOUT_MSEC, limit});
}

std::unique_ptr<cv::VideoCapture> OpenCamera(int index) {
  return Open(index, static_cast<int>(cv::CAP_ANY));
}

std::unique_ptr<cv::VideoCapture> OpenCamera(const std::string& device) {
  return Open(device, static_cast<int>(cv::CAP_ANY));
}

std::optional<int> Grab(cv::VideoCapture& capture, const std::atomic<bool>* stop,
                        std::optional<std::chrono::milliseconds> patience) {
  constexpr int kMostFailures = 1000;
  return CallingOpenCv([&]() -> std::optional<int> {
    const auto began = std::chrono::steady_clock::now();
    for (int failures = 0; failures < kMostFailures; ++failures) {
      if (stop != nullptr && *stop) break;
      if (capture.grab()) return failures;
      if (patience && std::chrono::steady_clock::now() - began >= *patience) break;
    }
    return std::nullopt;
  });
}

bool Retrieve(cv::VideoCapture& capture, cv::Mat& pixels) {
  return CallingOpenCv([&] {
    if (!capture.retrieve(pixels) || pixels.empty()) return false;
    Require(pixels.type() == CV_8UC3, "frames are not of 8 bits and three channels");
    return true;
  });
}

double RateOf(const cv::VideoCapture& capture) {
  const double rate = capture.get(cv::CAP_PROP_FPS);
  // The clock of some containers (90000 ticks a second) is given for a rate that is not known.
  return rate > 0 && rate <= 1000 ? rate : 0;
}

}  // namespace tessera
