// ConvPair: a convolution and the only reader of its result, another one, computed together. What
// lies between them never leaves the caches.
#pragma once

#include <cstddef>

#include "ops/conv.h"

namespace tessera {

// Inputs are those of FusedConv (epilogue.h), X being the first convolution's and the others the
// second's, then W and B (optional) of the first. Attributes are those of the second, and those of
// the first with "first_" before their names.
inline constexpr std::size_t kPairWeights = kConvAddend + 1, kPairBias = kPairWeights + 1;
Attributes PairAttributes(const Attributes& first, const Attributes& second);

// Whether there is a kernel for this pair, and it is faster than two: a depthwise convolution and
// then a pointwise one with few weights.
bool StreamsWell(const ConvParams& first, const ConvParams& second);

}  // namespace tessera
