#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"

namespace tessera {
namespace {

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
      const auto activation = AtNode(
          graph, reader, [&] { return AsActivation(graph, reader, graph.value(x).info.shape[1]); });
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
