#include <limits>

#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"

namespace tessera {
namespace {

struct FusedActivation {
  Epilogue epilogue;
  ValueId slope = kNoValue;
};

// Whether PRelu's slope has one element, or one a channel of NCHW.
bool IsChannelSlope(const Graph& graph, ValueId slope, std::int64_t channels) {
  const Tensor* t = graph.Constant(slope);
  if (t == nullptr || t->dtype() != DType::kFloat32) return false;
  if (t->size() == 1) return true;
  const Shape& s = t->shape();
  return t->size() == channels && s.rank() >= 3 && s[s.rank() - 3] == channels;
}

// `node` as an epilogue of the convolution that makes its first input, if it is one.
std::optional<FusedActivation> AsActivation(const Graph& graph, const Node& node) {
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
    if (!IsChannelSlope(graph, node.inputs[1], graph.value(node.inputs[0]).info.shape[1])) {
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

// The only reader of `node`'s result if that is float32 and not an output of the graph; else -1.
int OnlyReader(const Graph& graph, const Node& node,
               const std::vector<std::vector<int>>& consumers) {
  const ValueId x = node.outputs[0];
  const auto& readers = consumers[static_cast<std::size_t>(x)];
  const bool fits = graph.value(x).info.dtype == DType::kFloat32 && !graph.IsOutput(x);
  return fits && readers.size() == 1 ? readers[0] : -1;
}

// The Sigmoid and the Mul of x * sigmoid(x), given the two readers of x.
bool IsSilu(const Graph& graph, ValueId x, const std::vector<int>& readers,
            const std::vector<std::vector<int>>& consumers, int* mul_index) {
  for (int flip = 0; flip < 2; ++flip) {
    const Node& sigmoid = graph.nodes[static_cast<std::size_t>(readers[flip ? 1 : 0])];
    const Node& mul = graph.nodes[static_cast<std::size_t>(readers[flip ? 0 : 1])];
    if (sigmoid.op.type != "Sigmoid" || mul.op.type != "Mul") continue;
    const ValueId s = sigmoid.outputs[0];
    if (graph.IsOutput(s) || consumers[static_cast<std::size_t>(s)].size() != 1) continue;
    if ((mul.inputs[0] == x && mul.inputs[1] == s) || (mul.inputs[0] == s && mul.inputs[1] == x)) {
      *mul_index = readers[flip ? 0 : 1];
      return true;
    }
  }
  return false;
}

}  // namespace

int FuseActivation(Graph& graph) {
  int rewrites = 0;
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  for (Node& node : graph.nodes) {
    const bool conv = node.op.type == "Conv";
    if (!conv && node.op.type != "Gemm" && node.op.type != "Mul") continue;
    const ValueId x = node.outputs[0];
    if (static_cast<std::size_t>(x) >= consumers.size())
      continue;  // fused already: the Mul of SiLU
    const auto& readers = consumers[static_cast<std::size_t>(x)];
    int last = -1;  // the node whose output the fused one takes over
    FusedActivation fused;
    if (conv && readers.size() == 2 && FusableConv(graph, x, 2, producers, consumers) >= 0 &&
        IsSilu(graph, x, readers, consumers, &last)) {
      fused.epilogue.activation = Activation::kSilu;
    } else if (conv ? FusableConv(graph, x, 1, producers, consumers) >= 0
                    : OnlyReader(graph, node, consumers) >= 0) {
      const Node& reader = graph.nodes[static_cast<std::size_t>(readers[0])];
      if (reader.inputs[0] != x) continue;
      const auto activation = AtNode(graph, reader, [&] { return AsActivation(graph, reader); });
      if (!activation || (!conv && !AsUnary(activation->epilogue))) continue;
      fused = *activation;
      last = readers[0];
    }
    if (last < 0) continue;
    Node& end = graph.nodes[static_cast<std::size_t>(last)];
    const ValueId out = end.outputs[0];
    end.outputs[0] = graph.AddValue(end.op.name + ".fused");  // dead
    if (conv) {
      node = MakeFusedConv(node, fused.epilogue, fused.slope, kNoValue, out);
    } else {
      node.op.type = "Fused" + node.op.type;
      node.def = FindOp(node.op.type);
      WriteEpilogue(fused.epilogue, node.op.attributes);
      node.outputs = {out};
    }
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
