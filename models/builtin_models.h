// Models that are compiled into the program, so that it works from any folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tessera {

struct BuiltinModel {
  std::string_view name;
  std::string_view description;
  std::string_view licence;  // of the weights, as an SPDX identifier
  int scale;                 // output pixels per input pixel, in each direction
  std::int64_t parameters;
  std::span<const std::byte> onnx;  // the file, aligned to 64 bytes
};

// By scale; of equal ones the first is the more general.
std::span<const BuiltinModel> BuiltinModels();

// Null if there is none of that name.
const BuiltinModel* FindBuiltinModel(std::string_view name);

// What is used when no model is asked for: the first that enlarges least of those that reach
// `scale`, or that enlarges most.
const BuiltinModel& DefaultModel(double scale);

}  // namespace tessera
