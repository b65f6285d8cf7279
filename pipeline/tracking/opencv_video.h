// OpenCV's captures.
#pragma once

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
// (OPENCV_LOG_LEVEL, OPENCV_FFMPEG_LOGLEVEL): what goes wrong is told by Errors.
void SilenceVideoLibraries();

// A file or stream, through FFmpeg. Null if it cannot be opened; so below.
std::unique_ptr<cv::VideoCapture> OpenVideo(const std::string& url);
// A camera by its index, or by the path of its device.
std::unique_ptr<cv::VideoCapture> OpenCamera(int index);
std::unique_ptr<cv::VideoCapture> OpenCamera(const std::string& device);

// Grabs the next frame that can be decoded, the one that Retrieve gives then. Returns how many were
// passed over on the way; nullopt if there are no more. OpenCV does not tell the one failure from
// the other: after a thousand in a row, or once they have taken `patience`, it is the end.
std::optional<int> Grab(cv::VideoCapture& capture,
                        std::chrono::seconds patience = std::chrono::hours(1));
// Into `pixels`, CV_8UC3, whose memory is used again if the size is right.
bool Retrieve(cv::VideoCapture& capture, cv::Mat& pixels);

// Frames per second; 0 where the capture does not know, or states what is no rate of a video.
double RateOf(const cv::VideoCapture& capture);

}  // namespace tessera
