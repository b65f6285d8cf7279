// From what a user has (pictures, clips, raw numbers) to what a network is calibrated with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/quantization/quantizer.h"
#include "pipeline/quantization/damage.h"
#include "pipeline/quantization/picture_samples.h"
#include "pipeline/tracking/ground_truth.h"

namespace tessera {

// A tracker's networks run on small patches: many are better and do not take long.
inline constexpr int kTrackerSearches = 128;

struct CalibrationOptions {
  // Pictures, folders of them, videos, or raw numbers as ReadRawSamples has them; for a tracker,
  // one input as OpenFrameSource has it. A folder that holds .f32 files stands for these.
  std::vector<std::string> inputs;
  // Tiles, or searches of a tracker, about; default: kSampleTiles, or kTrackerSearches.
  std::optional<int> samples = std::nullopt;
  std::int64_t side = kSampleSide;  // of tiles
  // A tracker's target: known boxes. None: it is no tracker.
  std::optional<GroundTruth> boxes = std::nullopt;
  std::string variant = {};  // as in TrackerFiles
  int threads = 1;
};

struct Calibrations {
  Calibration model;
  std::optional<Calibration> head;
};

// The inputs of a network and, of a tracker with two, its head. Throws FileError for what is wrong
// with an input, Error for what is wrong with the networks, with the options, or does not go
// together.
Calibrations Calibrate(const Graph& model, const Graph* head, const CalibrationOptions& options);

}  // namespace tessera
