// Reads QuantizeLinear, DequantizeLinear and the operands of quantised operators, and writes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/graph.h"
#include "ops/quantized/quantized_conv.h"

namespace tessera {

// One scale and zero point for all of an 8-bit tensor, as the model has them.
struct ByteParameters {
  DType dtype = DType::kUint8;  // kUint8 or kInt8
  Quantization q;

  // Those of the same numbers as uint8: an int8 value n is the byte n + 128.
  Quantization AsUnsigned() const {
    return {q.scale, dtype == DType::kInt8 ? q.zero_point + 128 : q.zero_point};
  }
};

// From a constant scale (float32, positive and finite) and zero point of one element each;
// `zero_point` may be kNoValue if `dtype` is given. nullopt for all others.
std::optional<ByteParameters> ReadByteParameters(const Graph& graph, ValueId scale,
                                                 ValueId zero_point, std::optional<DType> dtype);

// Those of a QuantizeLinear to 8 bits or a DequantizeLinear of 8 bits; nullopt for other nodes and
// for parameters along an axis or in blocks. Without a zero point the type is uint8.
std::optional<ByteParameters> ReadByteParameters(const Graph& graph, const Node& node);

// Weights int8 [M, ...] with zero point 0, and their scales float32 [1] or [M].
struct IntegerWeights {
  std::shared_ptr<const Tensor> values, scale;
};

// From constants int8 or uint8 of rank 4, scales and zero points (or kNoValue) of one element or
// one for each of dimension 0. nullopt where weight - zero point does not fit into int8.
std::optional<IntegerWeights> ReadIntegerWeights(const Graph& graph, ValueId values, ValueId scale,
                                                 ValueId zero_point);
// From the DequantizeLinear that makes them.
std::optional<IntegerWeights> ReadIntegerWeights(const Graph& graph, const Node& dequantize);

// Whether sums of products of bytes with these weights [M, ...], and biases [M] if there are, are
// int32 whatever the bytes are.
bool SumsFit(const Tensor& weights, const Tensor* bias);

// Larger ones leave no room for the sums of products.
inline constexpr std::int64_t kMostIntegerBias = std::int64_t{1} << 30;

// Real biases [M], rounded, in units of x_scale * scale of the weights. A channel of (almost) no
// weight, in whose unit its bias would be beyond kMostIntegerBias, gets a larger unit, and its
// weights are rounded to that. nullopt unless the number of values is that of output channels and
// all are finite.
std::optional<Tensor> ToIntegerBias(const Tensor& bias, float x_scale, IntegerWeights& weights);

// A node of the engine's own making. Throws Error if there is no operator of that type.
Node MakeNode(std::string_view type, std::string name, int opset, std::vector<ValueId> inputs,
              ValueId output);

// QuantizeLinear and DequantizeLinear per tensor; the zero point lies in the range of `dtype`.
Node MakeQuantize(Graph& graph, ValueId x, Quantization q, DType dtype, ValueId y);
Node MakeDequantize(Graph& graph, ValueId x, Quantization q, DType dtype, ValueId y);

}  // namespace tessera
