// What the dot-product convolution's set-up and its per-target code share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/conv.h"
#include "ops/conv_tiling.h"

namespace tessera {

inline constexpr int kDotChannels = 3;  // output channels that are computed together, at most

// Output channels that are computed together, with their weights
// [input block][tap][channel][lanes] at `weights` floats into the packed weights.
struct DotGroup {
  int channels;
  std::int64_t first;
  std::int64_t weights;
};

// Everything about a dot-product convolution that is known before it runs.
struct DotPlan {
  ConvParams params;
  BlockedLayout input;
  ConvTiling tiling;
  std::vector<DotGroup> groups;
  std::shared_ptr<const AlignedBuffer> weights;
  EpilogueOperands operands;
  std::size_t sums_stride;  // of a thread's scratch memory, a row of sums [channel][column]
};

}  // namespace tessera
