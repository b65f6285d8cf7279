// One pointwise convolution, pixel by pixel: for kernels that hold rows of pixels of their own (the
// fused chains of ops/quantized/quantized_conv_chain.h).
#pragma once

#include <cstdint>
#include <memory>

#include "ops/quantized/quantized_conv.h"

namespace tessera {

// Packed weights and operands, for the CPU target that was in use when it was made.
struct QuantizedPointwisePlan;

// Of a 1x1 convolution in one group, uint8 to uint8, whose strides and pads do not matter here.
// Throws Error for others.
std::shared_ptr<const QuantizedPointwisePlan> MakeQuantizedPointwisePlan(
    const QuantizedConvParams& params, const QuantizedConvConstants& constants, PackCache& packs);

// QuantizedConv of `pixels` pixels, on one thread, with no other memory than that of the arguments.
// Pixel i has its input channels at in + i * in_pixel_stride and gets its output channels at
// out + i * out_pixel_stride; its addend (null if there is none) is at the same place as the
// output. The strides are at least ChannelsLastLayout::PixelStride of the channels: pixels of
// `in` and `addend` are read up to there (which of these bytes are pads does not matter), those of
// `out` written. `out` overlaps neither `in` nor `addend`.
void RunQuantizedPointwise(const QuantizedPointwisePlan& plan, const std::uint8_t* in,
                           std::int64_t in_pixel_stride, std::int64_t pixels,
                           const std::uint8_t* addend, std::uint8_t* out,
                           std::int64_t out_pixel_stride);

}  // namespace tessera
