#include "engine/passes/conv_fusion.h"

#include <limits>
#include <utility>

namespace tessera {
namespace {

// Whether PRelu's slope has one element, or one a channel of NCHW.
bool IsChannelSlope(const Graph& graph, ValueId slope, std::int64_t channels) {
  const Tensor* t = graph.Constant(slope);
  if (t == nullptr || t->dtype() != DType::kFloat32) return false;
  if (t->size() == 1) return true;
  const Shape& s = t->shape();
  return t->size() == channels && s.rank() >= 3 && s[s.rank() - 3] == channels;
}

}  // namespace

const Node* OnlyProducer(const Graph& graph, ValueId value, std::string_view type,
                         const std::vector<int>& producers,
                         const std::vector<std::vector<int>>& consumers) {
  if (value == kNoValue || graph.IsOutput(value)) return nullptr;
  const auto v = static_cast<std::size_t>(value);
  if (producers[v] < 0 || consumers[v].size() != 1) return nullptr;
  const Node& node = graph.nodes[static_cast<std::size_t>(producers[v])];
  return node.op.type == type ? &node : nullptr;
}

int FusableConv(const Graph& graph, ValueId value, std::size_t uses,
                const std::vector<int>& producers, const std::vector<std::vector<int>>& consumers) {
  if (value == kNoValue || graph.IsOutput(value)) return -1;
  const auto v = static_cast<std::size_t>(value);
  if (producers[v] < 0 || consumers[v].size() != uses) return -1;
  const Node& node = graph.nodes[static_cast<std::size_t>(producers[v])];
  if (node.op.type != "Conv" && node.op.type != "FusedConv") return -1;
  if (graph.Constant(node.inputs[1]) == nullptr) return -1;
  if (node.inputs.size() > kConvBias && node.inputs[kConvBias] != kNoValue &&
      graph.Constant(node.inputs[kConvBias]) == nullptr) {
    return -1;
  }
  // Other element types and 1-D or 3-D convolutions have no fused kernels.
  const TensorInfo& info = graph.value(value).info;
  if (info.dtype != DType::kFloat32 || info.shape.rank() != 4) return -1;
  return producers[v];
}

Node MakeFusedConv(const Node& conv, const Epilogue& epilogue, ValueId slope, ValueId addend,
                   ValueId output) {
  Node fused = conv;
  fused.op.type = "FusedConv";
  fused.def = FindOp(fused.op.type);
  WriteEpilogue(epilogue, fused.op.attributes);
  fused.inputs.resize(kConvAddend + 1, kNoValue);
  if (slope != kNoValue) fused.inputs[kConvSlope] = slope;
  if (addend != kNoValue) fused.inputs[kConvAddend] = addend;
  while (fused.inputs.back() == kNoValue) fused.inputs.pop_back();
  fused.outputs = {output};
  return fused;
}

bool HasFloatWeights(const Graph& graph, const Node& conv) {
  const auto is_float = [&](std::size_t i) {
    const Tensor* t = graph.Constant(conv.inputs[i]);
    return t != nullptr && t->dtype() == DType::kFloat32;
  };
  if (conv.op.type != "Conv" || !is_float(1)) return false;
  const Shape& w = graph.Constant(conv.inputs[1])->shape();
  if (w.rank() < 3) return false;
  if (conv.inputs.size() <= kConvBias || conv.inputs[kConvBias] == kNoValue) return true;
  return is_float(kConvBias) && graph.Constant(conv.inputs[kConvBias])->size() == w[0];
}

void ScaleOutputs(Graph& graph, Node& conv, std::span<const double> scale,
                  std::span<const double> shift, std::string_view suffix) {
  const Tensor* bias =
      conv.inputs.size() > kConvBias ? graph.Constant(conv.inputs[kConvBias]) : nullptr;
  Tensor new_weights = graph.Constant(conv.inputs[1])->Clone();
  const std::int64_t channels = new_weights.shape()[0];
  Tensor new_bias(DType::kFloat32, {channels});
  const std::int64_t per_channel = new_weights.shape().NumElements(1, new_weights.shape().rank());
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto i = static_cast<std::size_t>(c);
    float* w = new_weights.data<float>() + c * per_channel;
    for (std::int64_t k = 0; k < per_channel; ++k) w[k] = static_cast<float>(w[k] * scale[i]);
    const double old_bias = bias == nullptr ? 0.0 : static_cast<double>(bias->data<float>()[c]);
    new_bias.data<float>()[c] = static_cast<float>(old_bias * scale[i] + shift[i]);
  }
  const ValueId w =
      graph.AddConstant(StrCat(conv.op.name, ".weights", suffix), std::move(new_weights));
  const ValueId b = graph.AddConstant(StrCat(conv.op.name, ".bias", suffix), std::move(new_bias));
  conv.inputs = {conv.inputs[0], w, b};
}

std::optional<float> ScalarConstant(const Graph& graph, ValueId id) {
  const Tensor* t = graph.Constant(id);
  if (t == nullptr || t->dtype() != DType::kFloat32 || t->size() != 1) return std::nullopt;
  return t->data<float>()[0];
}

std::optional<FusedActivation> AsActivation(const Graph& graph, const Node& node,
                                            std::int64_t channels) {
  const std::string& type = node.op.type;
  const Attributes& a = node.op.attributes;
  FusedActivation out;
  Epilogue& e = out.epilogue;
  if (type == "Relu") {
    e.activation = Activation::kRelu;
  } else if (type == "LeakyRelu") {
    e.activation = Activation::kLeakyRelu;
    e.alpha = a.Float("alpha", 0.01f);
  } else if (type == "PRelu") {
    if (!IsChannelSlope(graph, node.inputs[1], channels)) {
      return std::nullopt;
    }
    e.activation = Activation::kPRelu;
    out.slope = node.inputs[1];
  } else if (type == "Sigmoid") {
    e.activation = Activation::kSigmoid;
  } else if (type == "HardSigmoid") {
    e.activation = Activation::kHardSigmoid;
    e.alpha = a.Float("alpha", 0.2f);
    e.beta = a.Float("beta", 0.5f);
  } else if (type == "HardSwish") {
    e.activation = Activation::kHardSwish;
  } else if (type == "Clip") {
    e.activation = Activation::kClip;
    e.alpha = a.Float("min", std::numeric_limits<float>::lowest());
    e.beta = a.Float("max", std::numeric_limits<float>::max());
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {  // inputs since opset 11
      if (node.inputs[i] == kNoValue) continue;
      const std::optional<float> bound = ScalarConstant(graph, node.inputs[i]);
      if (!bound) return std::nullopt;
      (i == 1 ? e.alpha : e.beta) = *bound;
    }
  } else {
    return std::nullopt;
  }
  return out;
}

}  // namespace tessera
