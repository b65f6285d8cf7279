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
// The quads of a block are in four planes, vectors of which are in quad order (QuadOrder). In a
// narrow block a vector holds several neighbouring quads, as many as fill it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/quantized/quantized_conv.h"

namespace tessera {

// Or blocks are of one vector of int32, in one plane (kernels that make quads themselves).
enum class DepthwiseBlocks { kFourPlanes, kOnePlane };

struct QuantizedDepthwiseBlock {
  std::int64_t channel, channels;  // the first, and how many: 16, 32 or 64; in one plane a vector
};

// Everything that is known before it runs.
struct QuantizedDepthwisePlan {
  ConvParams params;
  std::int32_t x_zero_point;
  ChannelsLastLayout input, output;
  BlockedLayout real_output;  // of a float32 result
  QuantizedEpilogue epilogue;
  std::shared_ptr<const Tensor> weights;

  bool grid;                            // quads are those of a grid, not taps of one pixel
  std::int64_t rows, cols;              // window in quads
  std::int64_t row_phases, col_phases;  // 2: windows begin at even and odd pixels
  std::int64_t strip_tiles;             // tiles of kDepthwiseTile vectors of output pixels
  std::int64_t planes;                  // 1 or 4
  std::vector<QuantizedDepthwiseBlock> blocks;
  // [block][row phase][plane][row][col phase][col][lane][4]
  std::shared_ptr<const AlignedBuffer> packed_weights;
  AlignedBuffer operands;  // [block][bias, positive, negative][plane][lane]

  std::int64_t PhaseWeightBytes() const;  // of one row phase of one block
  std::size_t ScratchBytes() const;       // for each thread
};

// Whether there is a kernel: one channel a group, more than 4 channels, a kernel of sensible size.
bool IsQuantizedDepthwise(const QuantizedConvParams& params);
// Whether its quads are those of a grid.
bool HasQuadGrid(const ConvParams& params);

// For params of which IsQuantizedDepthwise is true.
QuantizedDepthwisePlan MakeQuantizedDepthwisePlan(const QuantizedConvParams& params,
                                                  const QuantizedConvConstants& constants,
                                                  PackCache& packs,
                                                  DepthwiseBlocks = DepthwiseBlocks::kFourPlanes);

// Some output rows of one image.
struct QuantizedDepthwiseBand {
  Range rows;                  // of the output
  const std::uint8_t* in;      // the image
  std::uint8_t* out;           // row rows.begin; null for float
  const std::uint8_t* addend;  // the same row; null if there is none
  float* real_out;             // the image, blocked, if the output is float32
  std::byte* scratch;          // ScratchBytes(), aligned to kAlignment
};
// With blocks of four planes.
void RunQuantizedDepthwiseBand(const QuantizedDepthwisePlan& plan,
                               const QuantizedDepthwiseBand& band);

// Vectors of output pixels in a tile, and bytes of a plane of interleaved quads, of which there is
// one for each of the four vectors: an odd number of cache lines.
inline constexpr std::int64_t kDepthwiseTile = 4, kDepthwisePlaneVectors = 37;

}  // namespace tessera
