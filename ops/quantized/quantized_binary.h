// Arithmetic of two tensors of which at least one is uint8, with a scale and a zero point each
// (ops/quantized/quantized_conv.h). Passes make these of DequantizeLinear -> Add or Mul ->
// QuantizeLinear.
//
// QuantizedAdd, y = clip(a + b):
//   inputs:     A, B uint8 of one shape; output: Y uint8
//   attributes: "a_scale", "a_zero_point", "b_scale", ..., "y_zero_point";
//               "y_min", "y_max": bounds of Y's elements (0 and 255)
//   v = float(a - a_zero_point) * (a_scale / y_scale)
//       + float(b - b_zero_point) * (b_scale / y_scale)
//   y = clamp(round(v) + y_zero_point, y_min, y_max)
//
// QuantizedScale, y = x times one number per channel, as gates of squeeze and excitation have it:
//   inputs:     X uint8 [N, C, H, W], G float32 [N, C, 1, 1]; output: Y uint8
//   attributes: "x_scale", "x_zero_point", "y_scale", "y_zero_point"
//   y = clamp(round(float(x - x_zero_point) * (g * (x_scale / y_scale))) + y_zero_point, 0, 255)
//
// In float32 without fused multiply-adds, to the bit; round() is half to even, and NaN becomes the
// lowest value. Row-major or channels-last.
#pragma once

#include <cstdint>

namespace tessera {

struct QuantizedAddParams {
  std::int32_t a_zero_point, b_zero_point, y_zero_point;
  float a_factor, b_factor;  // scales over y's
  std::int32_t y_min, y_max;
};

// One element, by the definition.
std::uint8_t AddBytes(const QuantizedAddParams& p, std::uint8_t a, std::uint8_t b);
// n elements. `out` may be `a` or `b`.
void AddByteRow(const QuantizedAddParams& p, const std::uint8_t* a, const std::uint8_t* b,
                std::uint8_t* out, std::int64_t n);

struct QuantizedScaleParams {
  std::int32_t x_zero_point, y_zero_point;
  float factor;  // x's scale over y's
};

// out[i] = in[i] times factors[i % period], where G's elements have been multiplied with p.factor,
// for i < n. `period` is 1 or a multiple of 64. `out` may be `in`.
void ScaleByteRow(const QuantizedScaleParams& p, const std::uint8_t* in, const float* factors,
                  std::int64_t period, std::uint8_t* out, std::int64_t n);

}  // namespace tessera
