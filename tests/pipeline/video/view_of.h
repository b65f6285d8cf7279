#pragma once

#include <opencv2/core/mat.hpp>

#include "pipeline/video/frame_source.h"

namespace tessera {

// Of a CV_8UC3.
inline FrameView ViewOf(const cv::Mat& pixels) {
  Frame frame;
  frame.pixels = pixels;
  return frame.view();
}

}  // namespace tessera
