// What the depthwise convolution's set-up and its per-target code share.
#pragma once

#include <cstdint>
#include <memory>

#include "ops/conv.h"
#include "ops/conv_tiling.h"

namespace tessera {

// Everything about a depthwise convolution that is known before it runs.
struct DepthwisePlan {
  ConvParams params;
  BlockedLayout input, output;
  std::shared_ptr<const AlignedBuffer> weights;  // [block][tap][lanes]
  EpilogueOperands operands;
  std::int64_t band_rows, bands;  // output rows of a task, and tasks for a block
};

}  // namespace tessera
