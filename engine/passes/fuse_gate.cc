// SPAN's parameter-free attention: y = (x + shortcut) * (sigmoid(x) - 0.5), x a convolution's
// output. Wan et al., "Swift Parameter-free Attention Network for Efficient Super-Resolution",
// https://arxiv.org/abs/2311.12770
#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"

namespace tessera {

int FuseGate(Graph& graph) {
  int rewrites = 0;
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  for (Node& mul : graph.nodes) {
    if (mul.op.type != "Mul") continue;
    for (int flip = 0; flip < 2; ++flip) {
      const ValueId sum_id = mul.inputs[flip ? 1 : 0], sub_id = mul.inputs[flip ? 0 : 1];
      const Node* sum = OnlyProducer(graph, sum_id, "Add", producers, consumers);
      const Node* sub = OnlyProducer(graph, sub_id, "Sub", producers, consumers);
      if (sum == nullptr || sub == nullptr || ScalarConstant(graph, sub->inputs[1]) != 0.5f) {
        continue;
      }
      const Node* sigmoid = OnlyProducer(graph, sub->inputs[0], "Sigmoid", producers, consumers);
      if (sigmoid == nullptr) continue;
      const ValueId x = sigmoid->inputs[0];
      if (sum->inputs[0] != x && sum->inputs[1] != x) continue;
      const ValueId shortcut = sum->inputs[sum->inputs[0] == x ? 1 : 0];
      const int conv = FusableConv(graph, x, 2, producers, consumers);
      const Shape& shape = graph.value(x).info.shape;
      // A 0.5 of shape 1x1x1x1x1 would give the result another rank.
      if (shortcut == x || conv < 0 || graph.Constant(shortcut) != nullptr ||
          graph.value(shortcut).info.shape != shape ||
          graph.value(mul.outputs[0]).info.shape != shape) {
        continue;
      }
      const Node& node = graph.nodes[static_cast<std::size_t>(conv)];
      if (node.op.type != "Conv") continue;
      Epilogue epilogue;
      epilogue.combine = Combine::kGate;
      // In the place of the Mul, where the shortcut is certainly there.
      mul = MakeFusedConv(node, epilogue, kNoValue, shortcut, mul.outputs[0]);
      ++rewrites;
      break;
    }
  }
  return rewrites;
}

}  // namespace tessera
