// QuantizedDepthToSpace: DepthToSpace of a uint8 tensor to float32, plus an image [N, C, H, W]
// whose pixels are repeated blocksize x blocksize times, if there is one: how networks end that
// learn what enlarging by repetition lacks. Passes make it of DequantizeLinear and DepthToSpace.
//
//   inputs:     X uint8 [N, C * b * b, H, W], row-major or channels-last;
//               image float32 [N, C, H, W] (optional), row-major
//   attributes: "blocksize" b and "mode", as DepthToSpace has them, "x_scale", "x_zero_point"
//   output:     Y float32 [N, C, H * b, W * b], row-major:
//               y = float(x - x_zero_point) * x_scale, then + image, in float32
#pragma once

#include <cstdint>

namespace tessera {

// out[i] = float(bytes[i] - zero_point) * scale + add[i] for i < n; `add` may be null.
void DequantizeAndAdd(const std::uint8_t* bytes, std::int32_t zero_point, float scale,
                      const float* add, float* out, std::int64_t n);

}  // namespace tessera
