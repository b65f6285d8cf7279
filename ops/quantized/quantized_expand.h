// A pointwise convolution of bytes and the depthwise one that alone reads it, computed together a
// vector of channels at a time: the sums of the first become the quads of the second
// (quantized_depthwise.h) without ever lying in memory as bytes of pixels.
#pragma once

#include <cstdint>
#include <memory>

#include "ops/quantized/quantized_depthwise.h"

namespace tessera {

// Tiles of AMX, of 16 pixels of two rows, whose sums are kept, and sums of such a row: few, as the
// L1 cache has to hold quads, pixels and results too.
inline constexpr std::int64_t kTilesKept = 4, kTileSums = 16 * 16;

struct QuantizedExpandPlan {
  ChannelsLastLayout input;
  QuantizedEpilogue epilogue;                    // of the pointwise convolution
  std::int64_t depth;                            // its input channels by four
  std::int64_t weight_rows;                      // the same and zeros: tiles of AMX are of 16
  std::shared_ptr<const AlignedBuffer> weights;  // [block][weight_rows][lane][4]
  AlignedBuffer operands;                        // [block][bias, positive, negative][lane]
  QuantizedDepthwisePlan depthwise;              // with blocks of one plane

  std::int64_t Quads() const;      // in a row, all that windows reach into
  std::int64_t SlotQuads() const;  // the same, or those of whole tiles of pixels if these are more
  std::size_t ScratchBytes() const;
};

// Whether there is a kernel: a 1x1 convolution of one group, and a depthwise one with strides of at
// most 2 and without dilation; uint8 all along, no addend for the first; not on targets without
// vectors.
bool IsQuantizedExpand(const QuantizedConvParams& pointwise, const QuantizedConvParams& depthwise);

QuantizedExpandPlan MakeQuantizedExpandPlan(const QuantizedConvParams& pointwise,
                                            const QuantizedConvConstants& pointwise_constants,
                                            const QuantizedConvParams& depthwise,
                                            const QuantizedConvConstants& depthwise_constants,
                                            PackCache& packs);

// Some output rows of one image. Those of a band are computed from its first to its last, with the
// same scratch memory.
struct QuantizedExpandStep {
  Range rows;                  // of the output
  bool first;                  // of the band
  const std::uint8_t* in;      // the image
  std::uint8_t* out;           // row rows.begin
  const std::uint8_t* addend;  // the same row; null if there is none
  std::byte* scratch;          // ScratchBytes(), aligned to kAlignment
};
void RunQuantizedExpandStep(const QuantizedExpandPlan& plan, const QuantizedExpandStep& step);

}  // namespace tessera
