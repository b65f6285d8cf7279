// Tracks drawn into frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <opencv2/core/mat.hpp>
#include <optional>
#include <vector>

#include "pipeline/tracking/track_record.h"

namespace tessera {

// Draws the box, the score and the way of the centre over the last frames into frames. Line width
// and text follow the frame's size; text that is larger than the frame is left out. While the
// target is lost, the box is dashed and of another colour, "lost" stands before the score, and the
// way ends. It begins anew when the frames' size changes. Each piece of the way is drawn once and
// kept as the list of its pixels: what a frame costs goes with these, not with the frame's size.
class TrackPainter {
 public:
  // `trail` is the number of frames that the way goes back; 0: there is none.
  explicit TrackPainter(std::size_t trail = 50);

  // `frame` is CV_8UC3. To be called for every frame, in order. A box that is no number is not
  // drawn.
  void Paint(const TrackRecord& record, cv::Mat& frame);

 private:
  // A pixel of a frame, and how much of it is covered, of 255.
  struct Covered {
    int x, y;
    std::uint8_t share;
  };

  // Adds the way from the last frame's centre, if both are known.
  void TakeStep(const std::optional<cv::Point2d>& centre, cv::Size frame, int width);
  void PaintTrail(cv::Mat& frame);

  std::vector<std::vector<Covered>> steps_;  // a ring: what each frame's way covers
  std::size_t newest_ = 0;
  std::optional<cv::Point2d> centre_;  // in the last frame; none: the target was lost
  cv::Mat cover_;                      // of the frame's size, all 0 between the calls
};

}  // namespace tessera
