// Clips with known boxes: a drawn toy moves over a drawn ground.
#pragma once

#include <cstdint>
#include <opencv2/core/mat.hpp>
#include <vector>

#include "pipeline/tracking/box.h"

namespace tessera {

// Where the toy is in a frame. Between two of them everything changes evenly.
struct ClipKey {
  int frame = 0;
  double cx = 0, cy = 0;  // centre, in pixels; it may lie beyond the frame
  double height = 60;     // of the toy when it stands upright, in pixels
  double degrees = 0;     // turned clockwise
};

struct ClipOptions {
  int width = 320, height = 240;
  int frames = 60;
  std::vector<ClipKey> path = {};  // frames ascend; before the first and after the last it rests
  cv::Rect bar = {};               // covers what is behind it
  int stones = 25;                 // on the ground, and half as many twigs
  int distractors = 0;             // up to 3 resting toys of other colours
  bool grey = false;               // three equal channels
  double noise = 2;                // standard deviation, in levels
  double lighting = 0.06;          // the toy's brightness swings by this share
  std::uint32_t seed = 1;          // of the ground and the noise
};

struct ClipFrame {
  cv::Mat pixels;      // CV_8UC3
  Box box;             // upright, around the whole toy, in the frame or not
  double visible = 0;  // share of the toy that is in the frame and not covered
};

// Equal options give equal frames, in any order.
class SyntheticClip {
 public:
  explicit SyntheticClip(const ClipOptions& options);

  int frames() const { return options_.frames; }

  ClipFrame Render(int frame) const;
  // The same without the toy.
  cv::Mat RenderGround(int frame) const;

 private:
  cv::Mat Finish(cv::Mat pixels, int frame) const;

  ClipOptions options_;
  cv::Mat ground_;  // CV_32FC3, without the bar
};

}  // namespace tessera
