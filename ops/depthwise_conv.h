// The depthwise convolution in pieces, for kernels that are made of several convolutions too.
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
  // [block][tap][lanes]; null if they are known at run time only.
  std::shared_ptr<const AlignedBuffer> weights;
  EpilogueOperands operands;
  std::int64_t band_rows, bands;  // output rows of a task, and tasks for a block
};
// Weights of a block: those of the plan.
const float* DepthwiseWeights(const DepthwisePlan& plan, std::int64_t block);
// Weights need not be constant.
DepthwisePlan MakeDepthwisePlan(const ConvParams& params, const ConvConstants& constants,
                                PackCache& packs);

// Some output rows of one block, and where they and their input lie.
struct DepthwiseBand {
  std::int64_t block;
  const float* weights;  // of the block, [tap][lanes]
  Range rows;
  const float* in;  // input row in_first of the block; strides in floats
  std::int64_t in_first = 0;
  std::int64_t in_stride;  // from a row to the next
  float* out;              // row rows.begin
  std::int64_t out_stride;
  const float* addend = nullptr;  // of the same row, with the output's stride
};
void RunDepthwiseBand(const DepthwisePlan& plan, const DepthwiseBand& band);

}  // namespace tessera
