// Quantises a network that is calibrated.
#pragma once

#include <optional>

#include "engine/quantization/quantizer.h"
#include "pipeline/quantization/damage.h"

namespace tessera {

// Throws Error, which names the network, if it is quantised already or has a weight that is no
// finite number.
void RequireFloatNetwork(const Graph& network);

// Quantises all convolutions; with `limit`, as few as it takes stay float to keep the damage within
// it. Measures the damage either way. Throws Error if the network cannot be quantised, or makes no
// finite numbers of the samples.
QuantizedModel QuantizeNetwork(const Graph& network, const Calibration& calibration,
                               std::optional<double> limit, const QuantizerOptions& options,
                               const SearchProgress& progress = {});

}  // namespace tessera
