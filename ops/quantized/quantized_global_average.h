// QuantizedGlobalAverage: the means of uint8 images, as float32. Passes make it of
// DequantizeLinear -> GlobalAveragePool.
//
//   input:      X uint8 [N, C, H, W], row-major or channels-last; output: Y float32 [N, C, 1, 1]
//   attributes: "x_scale", "x_zero_point"
//   y = float(sum of x - H * W * x_zero_point) * (x_scale / float(H * W))
//
// The sum is exact, the rest is in float32.
#pragma once

#include <cstdint>

namespace tessera {

// sums[c] = sum of pixels[x * pixel_stride + c] over x < count, for c < channels <= 64. The pixels
// are in Layout::kChannelsLast; `pixels` may point to a channel that is a multiple of 16.
void SumPixels(const std::uint8_t* pixels, std::int64_t pixel_stride, std::int64_t count,
               std::int64_t channels, std::int64_t* sums);

}  // namespace tessera
