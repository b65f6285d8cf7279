// QuantizedConvChain: two or three QuantizedConv's of which each but the first reads the one before
// and is its only reader, computed together. What lies between them is a few rows that never leave
// the caches. The chains: pointwise -> depthwise, depthwise -> pointwise, and pointwise ->
// depthwise -> pointwise (an inverted bottleneck).
//
//   inputs:     X of the first, addend of the last (optional), then for each convolution its
//               weights, their scales, bias and slope as QuantizedConv has them
//   attributes: those of convolution i with "0_", "1_", "2_" before their names
#pragma once

#include <span>
#include <vector>

#include "ops/quantized/quantized_conv.h"

namespace tessera {

inline constexpr std::size_t kChainAddend = 1, kChainOperands = 2, kOperandsOfChained = 4,
                             kMaxChain = 3;

// Attributes of the chain of nodes with these.
Attributes ChainAttributes(std::span<const Attributes* const> convolutions);

// Whether there is a kernel for these convolutions, one after the other.
bool IsQuantizedChain(std::span<const QuantizedConvParams> convolutions);
// Whether it is also faster than one kernel after the other.
bool StreamsWell(std::span<const QuantizedConvParams> convolutions);

// The kernel, for convolutions of which IsQuantizedChain is true. X, the addend and Y are
// channels-last.
std::unique_ptr<Kernel> MakeQuantizedChain(std::span<const QuantizedConvParams> convolutions,
                                           std::span<const QuantizedConvConstants> constants,
                                           PackCache& packs);

}  // namespace tessera
