// y = (conv(x) - mean) / sqrt(var + eps) * gamma + beta is a convolution with scaled weights.
// https://onnx.ai/onnx/operators/onnx__BatchNormalization.html
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"

namespace tessera {

int FoldBatchNorm(Graph& graph) {
  int rewrites = 0;
  const auto consumers = graph.Consumers();
  const auto producers = graph.Producers();
  for (Node& bn : graph.nodes) {
    if (bn.op.type != "BatchNormalization" || bn.outputs.size() != 1) continue;
    const ValueId x = bn.inputs[0];
    const int producer = producers[static_cast<std::size_t>(x)];
    if (producer < 0 || consumers[static_cast<std::size_t>(x)].size() != 1 || graph.IsOutput(x)) {
      continue;
    }
    Node& conv = graph.nodes[static_cast<std::size_t>(producer)];
    if (!HasFloatWeights(graph, conv)) continue;
    const auto [training, epsilon] = AtNode(graph, bn, [&] {
      const Attributes& a = bn.op.attributes;
      return std::pair(a.Int("training_mode", 0) != 0, a.Float("epsilon", 1e-5f));
    });
    if (training) continue;
    const std::int64_t channels = graph.Constant(conv.inputs[1])->shape()[0];
    std::array<const float*, 4> parameters{};  // gamma, beta, mean, variance
    bool known = true;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Tensor* t = graph.Constant(bn.inputs[i + 1]);
      known = known && t != nullptr && t->dtype() == DType::kFloat32 && t->size() == channels;
      if (known) parameters[i] = t->data<float>();
    }
    if (!known) continue;
    std::vector<double> scale, shift;
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto at = [&](std::size_t i) { return static_cast<double>(parameters[i][c]); };
      scale.push_back(at(0) / std::sqrt(at(3) + epsilon));
      shift.push_back(at(1) - at(2) * scale.back());
    }
    ScaleOutputs(graph, conv, scale, shift, "_bn");
    conv.outputs[0] = bn.outputs[0];
    bn.outputs[0] = x;  // dead: nobody reads the convolution's old output any more
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
