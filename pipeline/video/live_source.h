// Cameras and streams.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <opencv2/videoio.hpp>
#include <string>

#include "pipeline/video/frame_source.h"

namespace tessera {

// How a live source gets at its frames.
struct LiveInput {
  std::string shown_name;  // in messages
  // Opens it. Null if that does not succeed.
  std::function<std::unique_ptr<cv::VideoCapture>()> open;
  // Waits before it is opened again: shorter if SourceOptions::stop becomes true.
  std::function<void(std::chrono::milliseconds)> wait;
};

// Goes on from `capture`. Frames are numbered from the first that comes. When none comes, the input
// is opened again, SourceOptions::reconnect times without a frame between them; before that it
// waits a quarter of a second, then twice as long each time, up to four seconds. Throws Error,
// which names the input, if `capture` is null; Read does after the last time in vain.
std::unique_ptr<FrameSource> MakeLiveSource(std::unique_ptr<cv::VideoCapture> capture,
                                            LiveInput input, const SourceOptions& options);

}  // namespace tessera
