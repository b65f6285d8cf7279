// Convolutions of quantised values as QuantizedConv.
#pragma once

#include <optional>

#include "engine/passes/quantized/quantized_graph.h"

namespace tessera {

// An old Conv of a dequantised value with dequantised weights, as a QuantizedConv with float32
// output into the same value. nullopt where it cannot be computed so (see ReadIntegerWeights and
// ToIntegerBias).
std::optional<Node> MakeIntegerConv(QuantizedGraph& graph, const Node& conv);

// A QuantizedConv without an activation as one that applies the old node `activation` to its sums
// and writes that one's output; nullopt if the operator has no such activation.
std::optional<Node> AddActivation(QuantizedGraph& graph, const Node& conv, const Node& activation);

// The same for an old Add of its result and of a dequantised value of that shape; after it there is
// no activation any more.
std::optional<Node> AddAddend(QuantizedGraph& graph, const Node& add);

// A QuantizedConv with float32 output as one with a uint8 output of these parameters.
Node WithBytes(const Node& conv, Quantization q, ValueId output);

// Puts an old QLinearConv into the new graph as QuantizedConv; false where it cannot be.
bool RewriteQLinearConv(QuantizedGraph& graph, const Node& node);

}  // namespace tessera
