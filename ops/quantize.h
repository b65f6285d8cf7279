// Quantisation of rows: reals to integers and back, and integer sums to 8 bits. Shared by all
// quantised operators, so that they round alike.
//
// The specification leaves the precision open; as in ONNX Runtime it is float32 throughout, a value
// is rounded (half to even) before the zero point is added, and the sum saturates. NaN becomes the
// lowest value. https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op.h"

namespace tessera {

using ByteTypes = TypeList<std::int8_t, std::uint8_t>;
using QuantizedTypes = TypeList<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t>;

// The definition: round(value) + zero_point, saturated. `zero_point` is a value of Q.
template <typename Q, typename F>
Q RoundAndSaturate(F value, std::int32_t zero_point) {
  using Limits = std::numeric_limits<Q>;
  const F lowest = static_cast<F>(Limits::min() - zero_point);
  const F highest = static_cast<F>(Limits::max() - zero_point);
  // In this order a NaN, which compares as false, becomes the lowest value.
  value = value > lowest ? value : lowest;
  value = value < highest ? value : highest;
  return static_cast<Q>(static_cast<std::int32_t>(std::nearbyint(value)) + zero_point);
}

// What an integer sum of products is multiplied with: the scales of both operands over that of the
// result.
inline float RequantizeMultiplier(float a_scale, float b_scale, float y_scale) {
  return a_scale * b_scale / y_scale;
}

// Vector kernels. `type` is the quantised elements' type, one of QuantizedTypes unless said
// otherwise.

// out[i] = saturate(round(in[i] / scale) + zero_point) for i < n.
void QuantizeRow(const float* in, float scale, std::int32_t zero_point, DType type, void* out,
                 std::int64_t n);

// out[i] = (in[i] - zero_point) * scale for i < n; `type` may be int32, whose zero point is 0.
void DequantizeRow(const void* in, DType type, float scale, std::int32_t zero_point, float* out,
                   std::int64_t n);

// out[i] = saturate(round((sums[i] + bias) * multiplier[i]) + zero_point) for i < n. Sums wrap
// around. `multiplier` is kStream or kScalar.
void RequantizeRow(const std::int32_t* sums, std::int32_t bias, RowOperand multiplier,
                   std::int32_t zero_point, DType type, void* out, std::int64_t n);
// The same without vectors, by the definition.
void RequantizeRowPlainly(const std::int32_t* sums, std::int32_t bias, RowOperand multiplier,
                          std::int32_t zero_point, DType type, void* out, std::int64_t n);

// Parameters of quantisation as nodes have them. Element i; of a tensor of one element that one.

// A zero point of type ByteTypes or QuantizedTypes or int32; 0 if it is left out.
std::int32_t ZeroPointAt(const TensorView& zero_points, std::int64_t i);
// A float32 or float16 scale.
float ScaleAt(const TensorView& scales, std::int64_t i);

// Input i, or a view of nothing if the node leaves it out.
TensorView InputOrAbsent(const RunContext& context, std::size_t i);

// Throws Error unless input `values` is of a type of ByteTypes, and input `zero_point`, if it is
// there, of the same.
void RequireBytes(const InferContext& context, std::size_t values, std::size_t zero_point);

// Throws Error unless input i, which `name` calls, is a scalar or a vector of one element, and, if
// that is allowed, of `channels`.
void RequirePerTensor(const InferContext& context, std::size_t i, const char* name);
void RequirePerChannel(const InferContext& context, std::size_t i, const char* name,
                       std::int64_t channels);

}  // namespace tessera
