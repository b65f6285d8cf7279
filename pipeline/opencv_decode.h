// OpenCV's decoders.
#pragma once

#include <opencv2/core.hpp>
#include <string>

#include "pipeline/picture.h"

namespace tessera {

// Decodes a whole file; channels are in the order BGRA. Throws Error if OpenCV cannot.
cv::Mat DecodeWithOpenCv(std::string& file);

// Throws Error if a Picture has no such samples.
PictureFormat FormatOf(const cv::Mat& picture);

}  // namespace tessera
