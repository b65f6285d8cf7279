#include "engine/passes/quantized/integer_conv.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "engine/passes/conv_fusion.h"

namespace tessera {
namespace {

ValueId AddShared(Graph& graph, std::string name, std::shared_ptr<const Tensor> constant) {
  const ValueId id = graph.AddValue(std::move(name));
  const DType dtype = constant->dtype();
  const Shape shape = constant->shape();
  graph.value(id).info = {true, dtype, shape, Layout::kRowMajor, std::move(constant)};
  return id;
}

ValueId InputOr(const Node& node, std::size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : kNoValue;
}

// The integers of a bias that has been quantised with the product of both scales, as is usual.
std::optional<Tensor> StoredIntegerBias(const QuantizedGraph& view, const Graph& graph,
                                        ValueId bias, float x_scale,
                                        const IntegerWeights& weights) {
  const Node* node = view.Producer(bias);
  if (node == nullptr || node->op.type != "DequantizeLinear") return std::nullopt;
  const Tensor *values = graph.Constant(node->inputs[0]), *scale = graph.Constant(node->inputs[1]);
  const std::int64_t channels = weights.values->shape()[0];
  if (values == nullptr || values->dtype() != DType::kInt32 || values->size() != channels ||
      scale == nullptr || scale->dtype() != DType::kFloat32 ||
      (scale->size() != 1 && scale->size() != channels)) {
    return std::nullopt;
  }
  if (const ValueId zero = InputOr(*node, 2); zero != kNoValue) {
    const Tensor* zeros = graph.Constant(zero);
    if (zeros == nullptr || zeros->dtype() != DType::kInt32 ||
        std::ranges::any_of(zeros->values<std::int32_t>(), [](std::int32_t z) { return z != 0; })) {
      return std::nullopt;  // an error
    }
  }
  // Beyond that they leave no room for the sums of products.
  if (!std::ranges::all_of(values->values<std::int32_t>(), [](std::int64_t value) {
        return std::abs(value) <= kMostIntegerBias;
      })) {
    return std::nullopt;
  }
  const auto at = [](const Tensor& t, std::int64_t c) {
    return t.data<const float>()[t.size() == 1 ? 0 : c];
  };
  for (std::int64_t c = 0; c < channels; ++c) {
    const float expected = x_scale * at(*weights.scale, c);
    if (std::abs(at(*scale, c) - expected) > 1e-6f * expected) return std::nullopt;
  }
  return values->Clone();
}

constexpr std::string_view kConvAttributes[] = {"auto_pad",     "dilations", "group",
                                                "kernel_shape", "pads",      "strides"};

// QuantizedConv with the attributes and the output of `conv`.
Node MakeQuantizedConv(Graph& graph, const Node& conv, QuantizedValue x,
                       const IntegerWeights& weights, ValueId bias) {
  Node node = MakeNode("QuantizedConv", conv.op.name, conv.op.opset,
                       {x.bytes, AddShared(graph, conv.op.name + ".weights", weights.values),
                        AddShared(graph, conv.op.name + ".weight_scale", weights.scale)},
                       conv.outputs[0]);
  for (const auto& [name, value] : conv.op.attributes) {
    if (std::ranges::find(kConvAttributes, name) != std::end(kConvAttributes)) {
      node.op.attributes.Set(name, value);
    }
  }
  WriteQuantization(x.q, "x", node.op.attributes);
  if (bias != kNoValue) node.inputs.push_back(bias);
  return node;
}

// Of one group, or depthwise: for others QuantizedConv has plain loops alone.
bool HasFastKernel(const Node& conv, const Tensor& weights) {
  const std::int64_t groups = conv.op.attributes.Int("group", 1);
  return groups == 1 || (groups == weights.shape()[0] && weights.shape()[1] == 1);
}

bool HasAddend(const Node& conv) { return InputOr(conv, kQuantizedAddend) != kNoValue; }

}  // namespace

std::optional<Node> MakeIntegerConv(QuantizedGraph& view, const Node& conv) {
  Graph& graph = view.graph();
  const auto x = view.FindQuantized(conv.inputs[0]);
  const Node* dequantize = view.Producer(conv.inputs[1]);
  if (!x || dequantize == nullptr) return std::nullopt;
  auto weights = ReadIntegerWeights(graph, *dequantize);
  if (!weights || !HasFastKernel(conv, *weights->values)) return std::nullopt;
  ValueId bias = kNoValue;
  if (const ValueId real = InputOr(conv, kConvBias); real != kNoValue) {
    auto integers = StoredIntegerBias(view, graph, real, x->q.scale, *weights);
    if (!integers) {
      const Tensor* values = view.RealConstant(real);
      if (values == nullptr) return std::nullopt;
      integers = ToIntegerBias(*values, x->q.scale, *weights);
    }
    if (!integers || !SumsFit(*weights->values, &*integers)) return std::nullopt;
    bias = graph.AddConstant(conv.op.name + ".bias", std::move(*integers));
  } else if (!SumsFit(*weights->values, nullptr)) {
    return std::nullopt;
  }
  return MakeQuantizedConv(graph, conv, *x, *weights, bias);
}

std::optional<Node> AddActivation(QuantizedGraph& view, const Node& conv, const Node& activation) {
  const Graph& graph = view.graph();
  const std::int64_t channels = graph.Constant(conv.inputs[kQuantizedWeights])->shape()[0];
  if (conv.op.attributes.Has("activation") || HasAddend(conv)) return std::nullopt;
  const auto fused =
      AtNode(graph, activation, [&] { return AsActivation(graph, activation, channels); });
  if (!fused || !IsIntegerActivation(fused->epilogue.activation)) return std::nullopt;
  Epilogue epilogue = fused->epilogue;
  // Of crossed bounds the upper one wins, as of those of the operator.
  if (epilogue.activation == Activation::kClip)
    epilogue.alpha = std::min(epilogue.alpha, epilogue.beta);
  Node node = conv;
  WriteEpilogue(epilogue, node.op.attributes);
  if (fused->slope != kNoValue) {
    node.inputs.resize(kQuantizedSlope + 1, kNoValue);
    node.inputs[kQuantizedSlope] = fused->slope;
  }
  node.outputs = {activation.outputs[0]};
  return node;
}

std::optional<Node> AddAddend(QuantizedGraph& view, const Node& add) {
  const ValueId a = add.inputs[0], b = add.inputs[1];
  for (const auto& [sum, other] : {std::pair{a, b}, {b, a}}) {
    const Node* conv = view.FindConv(sum);
    const auto addend = view.FindQuantized(other);
    if (conv == nullptr || !addend || HasAddend(*conv) || !view.HasOneReader(sum) ||
        !view.HaveSameShape(a, b)) {
      continue;
    }
    Node node = *conv;
    node.inputs.resize(kQuantizedAddend, kNoValue);
    node.inputs.push_back(addend->bytes);
    WriteQuantization(addend->q, "addend", node.op.attributes);
    node.outputs = {add.outputs[0]};
    return node;
  }
  return std::nullopt;
}

Node WithBytes(const Node& conv, Quantization q, ValueId output) {
  Node node = conv;
  WriteQuantization(q, "y", node.op.attributes);
  node.outputs = {output};
  return node;
}

bool RewriteQLinearConv(QuantizedGraph& view, const Node& node) {
  enum Input : std::size_t { kX, kXScale, kXZero, kW, kWScale, kWZero, kYScale, kYZero, kBias };
  Graph& graph = view.graph();
  const auto parameters = [&](std::size_t scale) {
    return ReadByteParameters(graph, node.inputs[scale], node.inputs[scale + 1], std::nullopt);
  };
  const auto x = parameters(kXScale), y = parameters(kYScale);
  const auto weights =
      ReadIntegerWeights(graph, node.inputs[kW], node.inputs[kWScale], node.inputs[kWZero]);
  const ValueId bias = InputOr(node, kBias);
  if (!x || !y || !weights || !HasFastKernel(node, *weights->values) ||
      graph.Constant(node.inputs[kX]) != nullptr ||
      (bias != kNoValue && graph.Constant(bias) == nullptr)) {
    return false;
  }
  const ValueId bytes =
      x->dtype == DType::kInt8 ? view.Unsigned(node.inputs[kX]) : view.Resolve(node.inputs[kX]);
  const Node conv = MakeQuantizedConv(graph, node, {bytes, x->AsUnsigned()}, *weights, bias);
  const ValueId out = node.outputs[0];
  if (y->dtype == DType::kUint8) {
    view.AppendInteger(WithBytes(conv, y->AsUnsigned(), out));
  } else {
    const ValueId twin = graph.AddValue(graph.value(out).name + ".unsigned");
    view.AppendInteger(WithBytes(conv, y->AsUnsigned(), twin));
    view.SetUnsigned(out, twin);
  }
  return true;
}

}  // namespace tessera
