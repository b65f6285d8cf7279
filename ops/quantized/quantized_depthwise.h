// QuantizedConv with as many groups as channels, in pieces, for kernels that are made of several
// convolutions too.
//
// Dot products of four bytes take four taps at a time. So bytes of the same channel are interleaved
// first: a "quad" holds, for each channel, four pixels. Where strides are 1 or 2, quads are the 2x2
// pixels of a grid that begins with the pads; each is interleaved once for all windows that it is
// in, and weights are there for windows that begin at even and at odd rows and columns of the grid,
// with zeros for pixels that are not of the window. Otherwise a quad holds any four taps of one
// output pixel. Pixels outside of the image are x's zero point, so that only the interleaving knows
// of borders.
//
// Channels are cut into blocks of a vector of bytes, the rest into blocks of a half and a quarter.
// In a narrow block a vector holds several neighbouring quads, as many as fill it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/quantized/quantized_conv.h"

namespace tessera {

// Rows of pixels: row y is at data + y % count * stride.
struct ByteRows {
  const std::uint8_t* data;
  std::int64_t stride, count;
};

struct QuantizedDepthwiseBlock {
  std::int64_t channel;  // first
  std::int64_t groups;   // of 16 channels: 1, 2 or 4, and 1 vector of bytes at most
};

// Everything that is known before it runs.
struct QuantizedDepthwisePlan {
  ConvParams params;
  std::int32_t x_zero_point;
  ChannelsLastLayout input, output;
  QuantizedEpilogue epilogue;
  std::shared_ptr<const Tensor> weights;

  bool grid;                            // quads are those of a grid, not taps of one pixel
  std::int64_t rows, cols;              // window in quads
  std::int64_t row_phases, col_phases;  // 2: windows begin at even and odd pixels
  std::int64_t strip_tiles;             // tiles of kDepthwiseTile vectors of output pixels
  std::vector<QuantizedDepthwiseBlock> blocks;
  // [block][row phase][vector 0 to 3][row][col phase][col][lane][4], vectors in quad order
  // (quantized_epilogue-inl.h).
  std::shared_ptr<const AlignedBuffer> packed_weights;
  // [block][bias, positive, negative][4][lane] in quad order
  AlignedBuffer operands;

  std::int64_t PhaseWeightBytes() const;  // of one row phase of one block
  std::size_t ScratchBytes() const;       // for each thread
};

// Whether there is a kernel: one channel a group, more than 4 channels, a kernel of sensible size.
bool IsQuantizedDepthwise(const QuantizedConvParams& params);

// For params of which IsQuantizedDepthwise is true.
QuantizedDepthwisePlan MakeQuantizedDepthwisePlan(const QuantizedConvParams& params,
                                                  const QuantizedConvConstants& constants,
                                                  PackCache& packs);

// Some output rows of one image.
struct QuantizedDepthwiseBand {
  Range rows;                  // of the output
  ByteRows in;                 // those of the input that they depend on
  std::uint8_t* out;           // row rows.begin; null for float
  const std::uint8_t* addend;  // the same row; null if there is none
  float* real_out;             // the image, row-major, if the output is float32
  std::byte* scratch;          // ScratchBytes(), aligned to kAlignment
};
void RunQuantizedDepthwiseBand(const QuantizedDepthwisePlan& plan,
                               const QuantizedDepthwiseBand& band);

// Vectors of output pixels in a tile, and bytes of a plane of interleaved quads, of which there is
// one for each of the four vectors: an odd number of cache lines.
inline constexpr std::int64_t kDepthwiseTile = 4, kDepthwisePlaneVectors = 37;

}  // namespace tessera
