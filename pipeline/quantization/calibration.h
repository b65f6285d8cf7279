// From what a user has (pictures, clips, raw numbers) to what a network is calibrated with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/quantization/quantizer.h"
#include "pipeline/quantization/picture_samples.h"
#include "pipeline/tracking/ground_truth.h"

namespace tessera {

// A tracker's networks run on small patches: many are better and do not take long.
inline constexpr int kTrackerSearches = 64;

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

// In what a damage is measured.
enum class DamageUnit : std::uint8_t {
  kDecibels,  // of PSNR, below that of rounding to 8 bits
  kOverlap,   // share of boxes that do not agree: 1 less the mean overlap
  kPercent,   // root mean square, relative to the values
};

// "45.2 dB", "0.98", "0.3 %": how good what has such a damage is, and what it is called.
std::string QualityText(DamageUnit unit, double damage);
std::string_view QualityName(DamageUnit unit);
std::string_view QualityWord(DamageUnit unit);  // for a column's head

struct Calibration {
  std::vector<Sample> samples = {}, tests = {};  // to calibrate and to measure
  Damage damage = {};
  DamageUnit unit = DamageUnit::kPercent;
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
