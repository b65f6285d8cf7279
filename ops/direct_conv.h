// What the direct convolution's set-up and its per-target code share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/conv.h"
#include "ops/conv_tiling.h"

namespace tessera {

// Output blocks that the micro-kernel computes together, with their weights
// [tap][input channel][vectors * lanes] at `weights` floats into the packed weights.
struct DirectGroup {
  int vectors;
  bool half;                 // of several vectors, the last one has channels in its lower half
  std::int64_t first_block;  // of the output
  std::int64_t first_input_block;  // of the convolution group that these blocks belong to
  std::int64_t weights;
};

// Everything about a direct convolution that is known before it runs. Strides are in floats.
struct DirectPlan {
  ConvParams params;
  bool input_blocked, output_blocked;
  bool in_place;          // the micro-kernel reads the input tensor itself; else a copy of the tile
  bool input_given;       // the caller has put the tile's input where the copy would go
  std::int64_t in_lanes;  // channels of an input block: 1 if the input is row-major
  std::int64_t group_channels;  // input channels that one output channel depends on
  BlockedLayout input, output;  // used where they are blocked

  ConvTiling tiling;
  std::int64_t splits;  // tasks that share a tile, each with some of the groups
  std::vector<DirectGroup> groups;

  // Of the input as the micro-kernel reads it.
  std::int64_t row_stride, block_stride;
  std::vector<std::ptrdiff_t> taps;

  std::shared_ptr<const AlignedBuffer> weights;
  EpilogueOperands operands;

  // Parts of a thread's scratch memory, in floats.
  std::size_t input_floats;   // the copy of the input tile
  std::size_t sums_floats;    // a row of sums of one group: [vectors][tile cols][lanes]
  std::size_t planes_floats;  // the same row of one block, transposed (row-major output)

  std::size_t ScratchBytes() const {
    return (input_floats + sums_floats + planes_floats) * sizeof(float);
  }
};

// Whether little lies between the rows of a tensor, so that pointwise convolutions may take all of
// it as one row.
bool IsAsOneRow(const BlockedLayout& tensor);

// `given_rows`, if not 0: each task has so many rows of the output, with what lies between them,
// and the caller puts its input where the copy would go. For pointwise convolutions of blocked
// tensors that are IsAsOneRow.
DirectPlan MakeDirectPlan(const ConvParams& params, const ConvConstants& constants,
                          Layout input_layout, Layout output_layout, PackCache& packs,
                          std::int64_t given_rows = 0);

// One of batch * tiling.NumTiles() * splits tasks.
void RunDirectTask(const DirectPlan& plan, const RunContext& run, std::int64_t task, int thread);

}  // namespace tessera
