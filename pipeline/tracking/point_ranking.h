// From the maps of a tracker's network to the box that the target has.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/tracker_config.h"

namespace tessera {

// One of the points that a network looks from. Lengths are in pixels of the search patch.
struct PointChoice {
  std::int64_t row = -1, column = -1;  // -1: no point has a box and a score that are numbers
  double score = 0;                    // 0 to 1
  double penalty = 0;                  // 0 to 1, for a change of size or proportions; 1: for none
  double rank_margin = 0;              // over the second best point
  double dx = 0, dy = 0;               // of the box's centre, from the patch's middle
  double width = 0, height = 0;

  bool found() const { return row >= 0; }
};

// Point (row, column) lies at ((column - n div 2) * stride, (row - n div 2) * stride) from the
// patch's middle.
class PointRanking {
 public:
  // Maps of side x side points.
  PointRanking(const TrackerConfig& config, std::int64_t side);

  // The point with the highest rank, the first in row-major order if there are several:
  //
  //   rank    = (1 - influence) * penalty * score + influence * hann(row) * hann(column)
  //   penalty = exp(-K * (r(e(box) / e(target)) * r(target's w/h over the box's w/h) - 1)),
  //   r(x)    = max(x, 1/x), e(w, h) = sqrt((w + c * (w + h)) * (h + c * (w + h)))
  //
  // with K the configuration's `penalty` and c its `context`; the target was width x height before,
  // as it would appear in the patch. (SiamRPN, Li et al., CVPR 2018, section 4.3; with points in
  // place of anchors: Ocean, Zhang et al., ECCV 2020.)
  PointChoice Choose(const SiameseNetwork::Maps& maps, double width, double height,
                     double window_influence) const;

 private:
  double Score(const float* classes, std::int64_t point) const;

  const TrackerConfig config_;
  const std::int64_t side_;
  std::vector<double> window_;  // hann(i)
};

}  // namespace tessera
