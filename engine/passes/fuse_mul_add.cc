// y = x * scale + shift, whatever is left of these when convolutions have taken theirs.
#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"

namespace tessera {

int FuseMulAdd(Graph& graph) {
  int rewrites = 0;
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  for (Node& add : graph.nodes) {
    if (add.op.type != "Add") continue;
    const TensorInfo& sum = graph.value(add.outputs[0]).info;
    if (sum.dtype != DType::kFloat32) continue;
    for (int flip = 0; flip < 2; ++flip) {
      const ValueId product = add.inputs[flip ? 1 : 0], shift = add.inputs[flip ? 0 : 1];
      const Node* mul = OnlyProducer(graph, product, "Mul", producers, consumers);
      if (mul == nullptr || graph.value(product).info.shape != sum.shape) continue;
      const int x = graph.value(mul->inputs[0]).info.shape == sum.shape ? 0 : 1;
      if (graph.value(mul->inputs[x]).info.shape != sum.shape) continue;
      add.op.type = "MulAdd";
      add.def = FindOp(add.op.type);
      add.inputs = {mul->inputs[x], mul->inputs[1 - x], shift};
      ++rewrites;
      break;
    }
  }
  return rewrites;
}

}  // namespace tessera
