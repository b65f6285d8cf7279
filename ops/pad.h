// What others have to know of Pad.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ops/op.h"

namespace tessera {

// The zeros that a Pad node puts around the spatial axes of inputs[0] [N, C, spatial...], of whose
// shape only the rank counts: first those at the beginnings, then those at the ends, as Conv lists
// its pads. nullopt if the node does anything else, or if its pads are not constant.
std::optional<std::vector<std::int64_t>> SpatialZeroPads(const OpNode& node,
                                                         std::span<const TensorInfo> inputs);

}  // namespace tessera
