// Zeros that a Pad puts around a picture are pads of the convolution that reads it.
#include <algorithm>

#include "engine/infer.h"
#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"
#include "ops/pad.h"

namespace tessera {

int FoldPad(Graph& graph) {
  int rewrites = 0;
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  for (Node& conv : graph.nodes) {
    if (!HasFloatWeights(graph, conv)) continue;
    const Node* pad = OnlyProducer(graph, conv.inputs[0], "Pad", producers, consumers);
    if (pad == nullptr) continue;
    const auto zeros = AtNode(graph, *pad, [&] {
      std::vector<TensorInfo> inputs = InputInfos(graph, *pad);
      // The shape is not known yet, but its rank: that of the weights.
      inputs[0].shape = graph.Constant(conv.inputs[1])->shape();
      return SpatialZeroPads(pad->op, inputs);
    });
    if (!zeros) continue;
    const auto [auto_pad, own] = AtNode(graph, conv, [&] {
      const Attributes& a = conv.op.attributes;
      return std::pair(a.String("auto_pad", "NOTSET"), a.Ints("pads"));
    });
    if (auto_pad != "NOTSET" && auto_pad != "VALID") continue;
    if (!own.empty() && own.size() != zeros->size()) continue;  // an error of conv
    std::vector<std::int64_t> pads = *zeros;
    for (std::size_t i = 0; i < own.size(); ++i) pads[i] += own[i];
    conv.op.attributes.Set("auto_pad", "NOTSET");
    conv.op.attributes.Set("pads", pads);
    conv.inputs[0] = pad->inputs[0];
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
