// Video that has an end.
#pragma once

#include <memory>
#include <opencv2/videoio.hpp>
#include <string>

#include "pipeline/tracking/frame_source.h"

namespace tessera {

// Frames that the capture says it has; 0 if it does not know.
std::int64_t AnnouncedFrames(const cv::VideoCapture& capture);

// `url` is what `capture` was opened by, or empty if it can be read only once; then an end that
// comes too early is not noticed. `shown_name` is the source's in messages.
std::unique_ptr<FrameSource> MakeVideoSource(std::unique_ptr<cv::VideoCapture> capture,
                                             const std::string& url, const std::string& shown_name,
                                             const SourceOptions& options);

}  // namespace tessera
