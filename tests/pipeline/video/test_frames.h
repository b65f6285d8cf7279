// Frames, and videos of them, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <opencv2/core.hpp>
#include <opencv2/videoio.hpp>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/video/frame_sink.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

// A plain colour that tells the frame's number, also when it has been compressed (see NumberIn).
inline cv::Mat NumberedPixels(std::int64_t number, cv::Size size = {64, 48}) {
  const auto level = [](std::int64_t digit) { return 20.0 + 40.0 * static_cast<double>(digit); };
  return {size, CV_8UC3,
          cv::Scalar(level(number % 6), level(number / 6 % 6), level(number / 36 % 6))};
}

// The number that the pixels were made for, below 216.
inline std::int64_t NumberIn(const cv::Mat& pixels) {
  const cv::Scalar mean = cv::mean(pixels);
  const auto digit = [](double level) { return std::lround((level - 20) / 40); };
  return digit(mean[0]) + 6 * digit(mean[1]) + 36 * digit(mean[2]);
}

inline Frame NumberedFrame(std::int64_t number, cv::Size size = {64, 48}) {
  return {.pixels = NumberedPixels(number, size), .number = number, .name = {}};
}

// Frames 0 to count - 1, of the pixels `pixels(i)`, into an output.
template <typename F>
void WriteFrames(const std::filesystem::path& path, std::int64_t count, F&& pixels,
                 const SinkOptions& options = {}) {
  const auto sink = OpenFrameSink(path, options);
  for (std::int64_t i = 0; i < count; ++i)
    sink->Write({.pixels = pixels(i), .number = i, .name = {}});
  sink->Close();
}

inline void WriteNumbered(const std::filesystem::path& path, std::int64_t count,
                          const SinkOptions& options = {}, cv::Size size = {64, 48}) {
  WriteFrames(
      path, count, [&](std::int64_t i) { return NumberedPixels(i, size); }, options);
}

// A video or picture as OpenCV sees it by itself.
struct VideoContent {
  int frames = 0;  // 0: it cannot be read
  double announced_frames = 0;
  double rate = 0;
  cv::Size size;
  std::vector<cv::Mat> pictures;  // if they are kept
};

inline VideoContent ReadVideo(const std::filesystem::path& path, bool keep = false) {
  VideoContent content;
  cv::VideoCapture capture(path.string(), cv::CAP_FFMPEG);
  if (!capture.isOpened()) return content;
  content.announced_frames = capture.get(cv::CAP_PROP_FRAME_COUNT);
  content.rate = capture.get(cv::CAP_PROP_FPS);
  for (cv::Mat frame; capture.read(frame); ++content.frames) {
    content.size = frame.size();
    if (keep) content.pictures.push_back(frame.clone());
  }
  return content;
}

// All that a source gives.
struct ReadFrames {
  std::vector<std::int64_t> numbers;   // as the source says
  std::vector<std::int64_t> contents;  // as the pixels say
  std::vector<double> seconds;
  std::vector<std::string> names;
  std::vector<cv::Size> sizes;
  std::string error;  // that ended it, or ""
  SourceInfo info;
};

inline ReadFrames ReadAllFrames(FrameSource& source) {
  ReadFrames all;
  all.info = source.info();
  try {
    for (Frame frame; source.Read(frame);) {
      all.numbers.push_back(frame.number);
      all.contents.push_back(NumberIn(frame.pixels));
      all.seconds.push_back(frame.seconds);
      all.names.push_back(frame.name);
      all.sizes.push_back(frame.pixels.size());
    }
  } catch (const Error& error) {
    all.error = error.what();
  }
  return all;
}

inline ReadFrames ReadAllFrames(const std::string& input, const SourceOptions& options = {}) {
  return ReadAllFrames(*OpenFrameSource(input, options));
}

// What opening it throws, or "".
inline std::string SourceError(const std::string& input, const SourceOptions& options = {}) {
  try {
    OpenFrameSource(input, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline std::string SinkError(const std::filesystem::path& path, const SinkOptions& options = {}) {
  try {
    OpenFrameSink(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// begin, begin + step, ... below `end`.
inline std::vector<std::int64_t> Range(std::int64_t begin, std::int64_t end,
                                       std::int64_t step = 1) {
  std::vector<std::int64_t> range;
  for (std::int64_t i = begin; i < end; i += step) range.push_back(i);
  return range;
}

}  // namespace tessera
