// A track as a still picture.
#pragma once

#include <opencv2/core/mat.hpp>
#include <span>

#include "pipeline/tracking/track_record.h"

namespace tessera {

// The way of the centre over the first frame, coloured by time, with the boxes of the first and the
// last record, and below it the score over the frames, with those in which the target was lost
// shaded. `first_frame` is CV_8UC3 and is scaled to a size that can be looked at; `records` are in
// the order of their frames, and may be none. Boxes and scores that are no numbers are left out.
cv::Mat PlotTrack(const cv::Mat& first_frame, std::span<const TrackRecord> records);

}  // namespace tessera
