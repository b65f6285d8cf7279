// The command line of `quantize`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/quantization/quantizer.h"
#include "pipeline/quantization/calibration.h"
#include "pipeline/tracking/box.h"

namespace tessera {

// Paths that are not given are empty.
struct QuantizeArguments {
  std::string print;  // help or version, to be shown instead of doing anything

  std::filesystem::path model, output;
  std::filesystem::path head, head_output;  // of a tracker
  CalibrationOptions calibration;           // but for the boxes
  // Of a tracker's target: in the first frame, or a file for ReadBox; or all that are known.
  std::optional<Box> box;
  std::filesystem::path box_file, ground_truth;
  bool is_tracker() const { return box || !box_file.empty() || !ground_truth.empty(); }

  QuantizerOptions quantizer;
  std::vector<std::string> excluded;  // nodes, of either network
  std::optional<double> search;       // the most damage

  int threads = 1;
  std::size_t max_memory = 0;  // bytes; 0: DefaultMaxMemory()
  bool overwrite = false, quiet = false;
};

// Throws Error for what cannot be meant.
QuantizeArguments ParseQuantizeArguments(int argc, char** argv);

}  // namespace tessera
