#include "pipeline/tracking/track_metrics.h"

namespace tessera {

TrackMetrics Measure(std::span<const TrackRecord> records, const GroundTruth& truth) {
  constexpr int kThresholds = 21;
  TrackMetrics sum;
  for (const TrackRecord& record : records) {
    const auto known = truth.find(record.frame);
    if (known == truth.end()) continue;
    const double overlap = Overlap(record.box, known->second);
    int passed = 0;
    while (passed < kThresholds && overlap > passed * 0.05) ++passed;
    ++sum.frames;
    sum.success_auc += static_cast<double>(passed) / kThresholds;
    sum.precision_20 += CentreDistance(record.box, known->second) <= 20 ? 1 : 0;
    sum.mean_overlap += overlap;
  }
  if (sum.frames == 0) return sum;
  const auto frames = static_cast<double>(sum.frames);
  return {sum.frames, sum.success_auc / frames, sum.precision_20 / frames,
          sum.mean_overlap / frames};
}

}  // namespace tessera
