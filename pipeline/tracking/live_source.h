// Cameras and streams.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <opencv2/videoio.hpp>
#include <string>

#include "pipeline/tracking/frame_source.h"

namespace tessera {

// How a live source gets at its frames.
struct LiveInput {
  std::string shown_name;  // in messages
  // Opens it. Null if that does not succeed.
  std::function<std::unique_ptr<cv::VideoCapture>()> open;
  // Waits before it is opened again.
  std::function<void(std::chrono::milliseconds)> wait;
};

// Goes on from `capture`, or, if that is null, says that it cannot be opened. Frames are numbered
// from the first that comes. When none comes, the input is opened again, SourceOptions::reconnect
// times without a frame between them; before that it waits a quarter of a second, then twice as
// long each time, up to four seconds.
std::unique_ptr<FrameSource> MakeLiveSource(std::unique_ptr<cv::VideoCapture> capture,
                                            LiveInput input, const SourceOptions& options);

}  // namespace tessera
