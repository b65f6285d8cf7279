// How well boxes agree with known ones.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>

#include "pipeline/tracking/track_record.h"

namespace tessera {

// Known boxes by the number of their frame. Frames where the target is not to be seen (empty boxes,
// values that are no numbers) have none.
using GroundTruth = std::map<std::int64_t, Box>;

// Lines of x, y, w, h, separated by commas, tabs, semicolons or spaces, for frame 0, 1, ...; with
// five columns the first is the number of the frame, with eight they are the corners of a
// quadrilateral (VOT), which stands for the upright box with the same centre and area. A first
// line without numbers is a header. Throws Error, which names file and line.
GroundTruth ReadGroundTruth(const std::filesystem::path& path);

struct TrackMetrics {
  std::int64_t frames = 0;  // that have a known box
  double success_auc = 0;   // mean over t = 0, 0.05, ..., 1 of the share with overlap > t
  double precision_20 = 0;  // share with the centre at most 20 pixels away
  double mean_overlap = 0;
};

// The measures of OTB (Wu, Lim, Yang: Online object tracking: a benchmark, CVPR 2013) over the
// records whose frames have a known box.
TrackMetrics Measure(std::span<const TrackRecord> records, const GroundTruth& truth);

}  // namespace tessera
