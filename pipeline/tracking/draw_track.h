// Tracks as pictures.
#pragma once

#include <cstddef>
#include <opencv2/core/mat.hpp>
#include <span>
#include <vector>

#include "pipeline/tracking/track_record.h"

namespace tessera {

// Draws the box, the score and the way of the centre over the last frames into frames. Line width
// and text follow the frame's size; what is drawn looks different while the target is lost.
class TrackPainter {
 public:
  explicit TrackPainter(std::size_t trail = 50);

  // `frame` is CV_8UC3. To be called for every frame, in order.
  void Paint(const TrackRecord& record, cv::Mat& frame);

 private:
  std::vector<Box> trail_;
  std::size_t limit_;
};

// A still picture of a whole run: the way of the centre over the first frame, and below it the
// score over time, with the parts in which the target was lost.
cv::Mat PlotTrack(const cv::Mat& first_frame, std::span<const TrackRecord> records);

}  // namespace tessera
