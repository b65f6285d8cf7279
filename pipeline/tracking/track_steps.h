// Single steps of a tracker, for comparisons between implementations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "pipeline/tracking/tracker.h"

namespace tessera {

struct TrackStep {
  std::int64_t frame = 0;
  Tracker::State before;
  Tracker::Step step;
  Tracker::State after;
};

// CSV with the columns frame, cx0, cy0, w0, h0, crop_x, crop_y, crop_side, row, col, score,
// penalty, rank_margin, cx1, cy1, w1, h1 and a header that names them. Numbers are written with the
// digits that it takes to read the same ones again. Errors name the file, those of reading the
// line too; writing is one if the file exists without `overwrite`.
std::vector<TrackStep> ReadSteps(const std::filesystem::path& path);
void WriteSteps(const std::filesystem::path& path, const std::vector<TrackStep>& steps,
                bool overwrite);

}  // namespace tessera
