// What the planar convolution's set-up and its per-target code share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/conv.h"
#include "ops/conv_tiling.h"

namespace tessera {

inline constexpr int kPlanarChannels = 4;  // output channels that are computed together, at most

// Everything about a planar convolution that is known before it runs. Strides are in floats.
struct PlanarPlan {
  ConvParams params;
  std::int64_t in_group, out_group;  // channels of one group

  ConvTiling tiling;
  // Of the rolling input copy, [input channel of the group][row][phase][column].
  std::int64_t row_stride, plane_stride;
  std::int64_t sums_stride;  // of the sums, [output channel][column]
  // Places of the taps in the copy, for each row of the copy that the first tap may lie in.
  std::vector<std::ptrdiff_t> taps;

  // For each kPlanarChannels (the last: fewer) output channels of each group in order:
  // [tap][input channel of the group][output channel].
  std::shared_ptr<const AlignedBuffer> weights;
  EpilogueOperands operands;

  std::size_t input_floats, sums_floats;  // parts of a thread's scratch memory
};

}  // namespace tessera
