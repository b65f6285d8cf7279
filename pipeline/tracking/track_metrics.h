// How well boxes agree with known ones.
#pragma once

#include <cstdint>
#include <span>

#include "pipeline/tracking/ground_truth.h"
#include "pipeline/tracking/track_record.h"

namespace tessera {

struct TrackMetrics {
  std::int64_t frames = 0;  // that have a known box; if there are none, all else is 0
  double success_auc = 0;   // mean over t = 0, 0.05, ..., 1 of the share with overlap > t
  double precision_20 = 0;  // share with the centre at most 20 pixels away
  double mean_overlap = 0;
};

// The measures of OTB (Wu, Lim, Yang: Online object tracking: a benchmark, CVPR 2013) over the
// records whose frames have a known box.
TrackMetrics Measure(std::span<const TrackRecord> records, const GroundTruth& truth);

}  // namespace tessera
