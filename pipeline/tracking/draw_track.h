// Tracks drawn into frames.
#pragma once

#include <cstddef>
#include <deque>
#include <opencv2/core/mat.hpp>
#include <optional>

#include "pipeline/tracking/track_record.h"

namespace tessera {

// Draws the box, the score and the way of the centre over the last frames into frames. Line width
// and text follow the frame's size; text that is larger than the frame is left out. While the
// target is lost, the box is dashed and of another colour, "lost" stands before the score, and the
// way ends.
class TrackPainter {
 public:
  // `trail` is the number of frames that the way goes back; 0: there is none.
  explicit TrackPainter(std::size_t trail = 50);

  // `frame` is CV_8UC3. To be called for every frame, in order. A box that is no number is not
  // drawn.
  void Paint(const TrackRecord& record, cv::Mat& frame);

 private:
  void PaintTrail(cv::Mat& frame, int width) const;

  std::deque<std::optional<cv::Point2d>> trail_;  // none: the target was lost
  std::size_t limit_;
};

}  // namespace tessera
