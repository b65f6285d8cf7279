// A depthwise convolution and a pointwise one after it become a ConvPair.
#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"
#include "ops/conv_pair.h"

namespace tessera {
namespace {

ConvParams ParamsOf(const Graph& graph, const Node& conv) {
  return ReadConvParams(conv.op, ConvInputShape(conv.op, graph.value(conv.inputs[0]).info),
                        graph.value(conv.inputs[1]).info.shape);
}

}  // namespace

int StreamDepthwise(Graph& graph) {
  int rewrites = 0;
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  for (Node& second : graph.nodes) {
    if (second.op.type != "Conv" && second.op.type != "FusedConv") continue;
    const int index = FusableConv(graph, second.inputs[0], 1, producers, consumers);
    if (index < 0 || graph.Constant(second.inputs[1]) == nullptr) continue;
    Node& first = graph.nodes[static_cast<std::size_t>(index)];
    // The first one's epilogue has no operands of its own.
    if (first.inputs.size() > kConvSlope ||
        !StreamsWell(ParamsOf(graph, first), ParamsOf(graph, second))) {
      continue;
    }
    Node pair = second;
    pair.op.type = "ConvPair";
    pair.def = FindOp(pair.op.type);
    pair.op.attributes = PairAttributes(first.op.attributes, second.op.attributes);
    pair.inputs.resize(kPairWeights, kNoValue);
    pair.inputs[0] = first.inputs[0];
    pair.inputs.insert(pair.inputs.end(), first.inputs.begin() + 1, first.inputs.end());
    first.outputs[0] = graph.AddValue(first.op.name + ".streamed");  // dead
    second = std::move(pair);
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
