#include "engine/passes/quantized/quantization_nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/quantize.h"

namespace tessera {
namespace {

constexpr double kMostSum = std::numeric_limits<std::int32_t>::max();

bool IsByte(DType dtype) { return dtype == DType::kUint8 || dtype == DType::kInt8; }

constexpr float kLeastScale = std::numeric_limits<float>::min();

bool IsScale(float scale) { return std::isnormal(scale) && scale > 0; }

std::int32_t ByteAt(const Tensor& t, std::int64_t i) {
  return t.dtype() == DType::kInt8 ? std::int32_t{t.data<const std::int8_t>()[i]}
                                   : std::int32_t{t.data<const std::uint8_t>()[i]};
}

// One for each output channel.
std::vector<float> Scales(const IntegerWeights& weights) {
  const auto scales = weights.scale->values<float>();
  if (scales.size() > 1) return {scales.begin(), scales.end()};
  return std::vector<float>(static_cast<std::size_t>(weights.values->shape()[0]), scales[0]);
}

// The weights in other units, none of them smaller.
IntegerWeights WithScales(const IntegerWeights& weights, const std::vector<float>& scales) {
  const std::vector<float> old = Scales(weights);
  Tensor values = weights.values->Clone();
  const std::int64_t depth = values.size() / values.shape()[0];
  for (std::int64_t i = 0; i < values.size(); ++i) {
    const auto c = static_cast<std::size_t>(i / depth);
    std::int8_t& w = values.data<std::int8_t>()[i];
    w = static_cast<std::int8_t>(std::nearbyint(w * (double{old[c]} / double{scales[c]})));
  }
  return {std::make_shared<const Tensor>(std::move(values)),
          std::make_shared<const Tensor>(
              Tensor::FromVector<float>({static_cast<std::int64_t>(scales.size())}, scales))};
}

ValueId AddParameters(Graph& graph, Quantization q, DType dtype, const std::string& name,
                      ValueId* zero_point) {
  Tensor scale(DType::kFloat32, Shape{});
  *scale.data<float>() = q.scale;
  Tensor zero(dtype, Shape{});
  *zero.data<std::uint8_t>() = static_cast<std::uint8_t>(q.zero_point);  // the bits of either type
  *zero_point = graph.AddConstant(name + ".zero_point", std::move(zero));
  return graph.AddConstant(name + ".scale", std::move(scale));
}

}  // namespace

std::optional<ByteParameters> ReadByteParameters(const Graph& graph, ValueId scale,
                                                 ValueId zero_point, std::optional<DType> dtype) {
  const Tensor* s = graph.Constant(scale);
  if (s == nullptr || s->dtype() != DType::kFloat32 || s->size() != 1 || s->shape().rank() > 1 ||
      !IsScale(s->data<const float>()[0])) {
    return std::nullopt;
  }
  ByteParameters p{dtype.value_or(DType::kUint8), {s->data<const float>()[0], 0}};
  if (zero_point != kNoValue) {
    const Tensor* zero = graph.Constant(zero_point);
    if (zero == nullptr || !IsByte(zero->dtype()) || zero->size() != 1) return std::nullopt;
    p.dtype = zero->dtype();
    p.q.zero_point = ByteAt(*zero, 0);
  } else if (!dtype) {
    return std::nullopt;
  }
  return p;
}

std::optional<ByteParameters> ReadByteParameters(const Graph& graph, const Node& node) {
  const bool quantize = node.op.type == "QuantizeLinear";
  if (!quantize && node.op.type != "DequantizeLinear") return std::nullopt;
  const ValueId zero_point = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
  // What type there is without a zero point, the value or an attribute says; most have one.
  if (zero_point == kNoValue && (!quantize || node.op.attributes.Has("output_dtype"))) {
    return std::nullopt;
  }
  return ReadByteParameters(graph, node.inputs[1], zero_point, DType::kUint8);
}

std::optional<IntegerWeights> ReadIntegerWeights(const Graph& graph, ValueId values, ValueId scale,
                                                 ValueId zero_point) {
  const Tensor *w = graph.Constant(values), *s = graph.Constant(scale);
  if (w == nullptr || s == nullptr || !IsByte(w->dtype()) || s->dtype() != DType::kFloat32 ||
      w->shape().rank() != 4 || w->size() == 0) {
    return std::nullopt;
  }
  const std::int64_t channels = w->shape()[0], depth = w->size() / channels;
  if ((s->size() != 1 && s->size() != channels) || s->shape().rank() > 1) return std::nullopt;
  if (!std::ranges::all_of(s->values<float>(), IsScale)) return std::nullopt;
  const Tensor* zero = graph.Constant(zero_point);
  if (zero_point != kNoValue &&
      (zero == nullptr || zero->dtype() != w->dtype() ||
       (zero->size() != 1 && zero->size() != channels) || zero->shape().rank() > 1)) {
    return std::nullopt;
  }
  bool as_they_are = w->dtype() == DType::kInt8;
  Tensor shifted(DType::kInt8, w->shape());
  for (std::int64_t i = 0; i < w->size(); ++i) {
    const std::int32_t z = zero == nullptr ? 0 : ByteAt(*zero, zero->size() == 1 ? 0 : i / depth);
    const std::int32_t value = ByteAt(*w, i) - z;
    if (value < -128 || value > 127) return std::nullopt;
    as_they_are = as_they_are && z == 0;
    shifted.data<std::int8_t>()[i] = static_cast<std::int8_t>(value);
  }
  return IntegerWeights{as_they_are ? graph.value(values).info.constant
                                    : std::make_shared<const Tensor>(std::move(shifted)),
                        graph.value(scale).info.constant};
}

std::optional<IntegerWeights> ReadIntegerWeights(const Graph& graph, const Node& dequantize) {
  if (dequantize.op.type != "DequantizeLinear") return std::nullopt;
  const Tensor* scale = graph.Constant(dequantize.inputs[1]);
  const Tensor* values = graph.Constant(dequantize.inputs[0]);
  if (scale == nullptr || values == nullptr) return std::nullopt;
  const std::int64_t axis = dequantize.op.attributes.Int("axis", 1);
  // Scales of a single element have no axis.
  const bool first = axis == 0 || axis == -std::int64_t{values->shape().rank()};
  if (scale->size() != 1 && !first) return std::nullopt;
  return ReadIntegerWeights(graph, dequantize.inputs[0], dequantize.inputs[1],
                            dequantize.inputs.size() > 2 ? dequantize.inputs[2] : kNoValue);
}

bool SumsFit(const Tensor& weights, const Tensor* bias) {
  const std::int64_t channels = weights.shape()[0], depth = weights.size() / channels;
  const auto* w = weights.data<const std::int8_t>();
  for (std::int64_t c = 0; c < channels; ++c) {
    double most = bias == nullptr ? 0 : bias->data<const std::int32_t>()[c];
    most = std::abs(most);
    for (std::int64_t k = 0; k < depth; ++k) most += 255 * std::abs(int{w[c * depth + k]});
    if (most > kMostSum) return false;
  }
  return true;
}

std::optional<Tensor> ToIntegerBias(const Tensor& bias, float x_scale, IntegerWeights& weights) {
  const std::int64_t channels = weights.values->shape()[0];
  if (bias.dtype() != DType::kFloat32 || bias.size() != channels) return std::nullopt;
  const auto scales = Scales(weights);
  std::vector<float> wanted = scales;
  Tensor integers(DType::kInt32, Shape{channels});
  for (std::int64_t c = 0; c < channels; ++c) {
    const double b = bias.data<const float>()[c];
    float& scale = wanted[static_cast<std::size_t>(c)];
    const double least = std::abs(b) / kMostIntegerBias / x_scale;
    if (least > scale) scale = std::max(static_cast<float>(least), kLeastScale);
    if (!IsScale(scale) || !std::isfinite(b)) return std::nullopt;
    const double value = std::nearbyint(b / (double{x_scale} * scale));
    integers.data<std::int32_t>()[c] = static_cast<std::int32_t>(value);
  }
  if (wanted != scales) weights = WithScales(weights, wanted);
  return integers;
}

Node MakeNode(std::string_view type, std::string name, int opset, std::vector<ValueId> inputs,
              ValueId output) {
  Node node;
  node.op.name = std::move(name);
  node.op.type = type;
  node.op.opset = opset;
  node.def = FindOp(type);
  Require(node.def != nullptr, "no operator ", type);
  node.inputs = std::move(inputs);
  node.outputs = {output};
  return node;
}

Node MakeQuantize(Graph& graph, ValueId x, Quantization q, DType dtype, ValueId y) {
  const std::string name = graph.value(y).name;
  ValueId zero_point = kNoValue;
  const ValueId scale = AddParameters(graph, q, dtype, name, &zero_point);
  return MakeNode("QuantizeLinear", name, graph.opset, {x, scale, zero_point}, y);
}

Node MakeDequantize(Graph& graph, ValueId x, Quantization q, DType dtype, ValueId y) {
  const std::string name = graph.value(y).name;
  ValueId zero_point = kNoValue;
  const ValueId scale = AddParameters(graph, q, dtype, name, &zero_point);
  return MakeNode("DequantizeLinear", name, graph.opset, {x, scale, zero_point}, y);
}

}  // namespace tessera
