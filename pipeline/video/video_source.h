// Video that has an end.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <opencv2/videoio.hpp>
#include <optional>
#include <string>

#include "pipeline/video/frame_source.h"

namespace tessera {

// Frames that the capture says it has; 0 if it does not know.
std::int64_t AnnouncedFrames(const cv::VideoCapture& capture);

// Where a video comes from.
struct VideoInput {
  std::string shown_name;  // in messages
  // Empty if it can be read only once (a pipe) or has a long way to come (a server). Then an end
  // that comes too early is an Error only if the silence before it took longer than `patience`:
  // that OpenCV counted more frames is no proof, and is only noted.
  std::filesystem::path file = {};
  std::optional<std::chrono::milliseconds> patience = std::nullopt;  // with a server
  ColorCoding colors = {};
};

// Goes on from `capture`, of which it takes frame 0 at once. Throws Error, which names the input,
// if there is none.
std::unique_ptr<FrameSource> MakeVideoSource(std::unique_ptr<cv::VideoCapture> capture,
                                             VideoInput input, const SourceOptions& options);

}  // namespace tessera
