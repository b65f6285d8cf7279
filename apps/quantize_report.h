// What `quantize` has done, as a table.
#pragma once

#include <string>

#include "engine/quantization/quantizer.h"
#include "pipeline/quantization/calibration.h"

namespace tessera {

struct QuantizeReport {
  std::string model;  // file name
  const QuantizedModel* quantized = nullptr;
  DamageUnit unit = DamageUnit::kPercent;
  bool searched = false;                             // the damage of each layer is known
  std::size_t float_bytes = 0, quantized_bytes = 0;  // of the files
};

// A line for each layer (name, type, damage alone if it is known, int8 or float, bytes of weights,
// share of the work, expected speed-up) and what comes of them together.
std::string ToText(const QuantizeReport& report);

}  // namespace tessera
