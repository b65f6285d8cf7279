// OpenCV's captures.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <opencv2/videoio.hpp>
#include <optional>
#include <string>

#include "ops/error.h"

namespace tessera {

// f(); an exception of OpenCV becomes an Error.
template <typename F>
auto CallingOpenCv(F&& f) {
  try {
    return f();
  } catch (const cv::Exception& error) {
    throw Error(StrCat("OpenCV: ", error.err));
  }
}

// Keeps OpenCV and FFmpeg from writing to stderr, unless the environment asks them to
// (OPENCV_LOG_LEVEL, OPENCV_FFMPEG_LOGLEVEL): what goes wrong is told by Errors. Its first call
// changes the environment, so it is for a time when no other thread may read that; calls after
// that do nothing.
void SilenceVideoLibraries();

// A file, through FFmpeg. Null if it cannot be opened; so below.
std::unique_ptr<cv::VideoCapture> OpenVideo(const std::string& url);
// The same from a server. Opening fails, and so does each grab, after `patience` without an answer.
std::unique_ptr<cv::VideoCapture> OpenStream(const std::string& url,
                                             std::chrono::milliseconds patience);
// A camera by its index, or by the path of its device.
std::unique_ptr<cv::VideoCapture> OpenCamera(int index);
std::unique_ptr<cv::VideoCapture> OpenCamera(const std::string& device);

// Grabs the next frame that can be decoded, the one that Retrieve gives then. Returns how many were
// passed over on the way; nullopt if there are no more. OpenCV does not tell the one failure from
// the other: after a thousand in a row, once they have taken `patience`, or when `stop` is true, it
// is the end.
std::optional<int> Grab(cv::VideoCapture& capture, const std::atomic<bool>* stop = nullptr,
                        std::optional<std::chrono::milliseconds> patience = std::nullopt);
// Into `pixels`, CV_8UC3, whose memory is used again if the size is right.
bool Retrieve(cv::VideoCapture& capture, cv::Mat& pixels);

// Frames per second; 0 where the capture does not know, or states what is no rate of a video.
double RateOf(const cv::VideoCapture& capture);

}  // namespace tessera
