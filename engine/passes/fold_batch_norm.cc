// y = (conv(x) - mean) / sqrt(var + eps) * gamma + beta is a convolution with scaled weights.
// https://onnx.ai/onnx/operators/onnx__BatchNormalization.html
#include <cmath>
#include <utility>

#include "engine/passes/passes.h"

namespace tessera {
namespace {

bool IsFloat(const Tensor* t) { return t != nullptr && t->dtype() == DType::kFloat32; }

}  // namespace

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
    if (conv.op.type != "Conv") continue;
    const auto [training, epsilon] = AtNode(graph, bn, [&] {
      const Attributes& a = bn.op.attributes;
      return std::pair(a.Int("training_mode", 0) != 0, a.Float("epsilon", 1e-5f));
    });
    if (training) continue;
    const Tensor* weights = graph.Constant(conv.inputs[1]);
    const bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != kNoValue;
    const Tensor* bias = has_bias ? graph.Constant(conv.inputs[2]) : nullptr;
    const Tensor *gamma = graph.Constant(bn.inputs[1]), *beta = graph.Constant(bn.inputs[2]),
                 *mean = graph.Constant(bn.inputs[3]), *var = graph.Constant(bn.inputs[4]);
    if (!IsFloat(weights) || (has_bias && !IsFloat(bias)) || !IsFloat(gamma) || !IsFloat(beta) ||
        !IsFloat(mean) || !IsFloat(var) || weights->shape().rank() < 3) {
      continue;
    }
    const std::int64_t channels = weights->shape()[0];
    if (gamma->size() != channels || beta->size() != channels || mean->size() != channels ||
        var->size() != channels || (has_bias && bias->size() != channels)) {
      continue;
    }
    Tensor new_weights = weights->Clone();
    Tensor new_bias(DType::kFloat32, {channels});
    const std::int64_t per_channel = weights->shape().NumElements(1, weights->shape().rank());
    for (std::int64_t c = 0; c < channels; ++c) {
      const double scale =
          gamma->data<float>()[c] / std::sqrt(static_cast<double>(var->data<float>()[c]) + epsilon);
      float* w = new_weights.data<float>() + c * per_channel;
      for (std::int64_t i = 0; i < per_channel; ++i) w[i] = static_cast<float>(w[i] * scale);
      const double old_bias = has_bias ? bias->data<float>()[c] : 0.0;
      new_bias.data<float>()[c] =
          static_cast<float>((old_bias - mean->data<float>()[c]) * scale + beta->data<float>()[c]);
    }
    const std::string name = conv.op.name;
    const ValueId w = graph.AddConstant(name + ".weights_bn", std::move(new_weights));
    const ValueId b = graph.AddConstant(name + ".bias_bn", std::move(new_bias));
    conv.inputs = {conv.inputs[0], w, b};
    conv.outputs[0] = bn.outputs[0];
    bn.outputs[0] = x;  // dead: nobody reads the convolution's old output any more
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
