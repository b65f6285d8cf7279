// y = conv(x) * scale + shortcut, as residual blocks end (RRDB: scale 0.2).
#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"

namespace tessera {
namespace {

struct ScaledConv {
  int conv = -1;
  float scale = 1;
};

// `id` as a convolution's output, perhaps times a constant.
ScaledConv AsScaledConv(const Graph& graph, ValueId id, const std::vector<int>& producers,
                        const std::vector<std::vector<int>>& consumers) {
  const auto v = static_cast<std::size_t>(id);
  if (producers[v] < 0 || graph.IsOutput(id) || consumers[v].size() != 1) return {};
  const Node& node = graph.nodes[static_cast<std::size_t>(producers[v])];
  if (node.op.type != "Mul") return {FusableConv(graph, id, 1, producers, consumers), 1.0f};
  for (int flip = 0; flip < 2; ++flip) {
    const ValueId x = node.inputs[flip ? 1 : 0];
    const std::optional<float> scale = ScalarConstant(graph, node.inputs[flip ? 0 : 1]);
    if (scale && graph.value(x).info.shape == graph.value(id).info.shape) {
      return {FusableConv(graph, x, 1, producers, consumers), *scale};
    }
  }
  return {};
}

}  // namespace

int FuseResidual(Graph& graph) {
  int rewrites = 0;
  auto producers = graph.Producers();
  auto consumers = graph.Consumers();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op.type != "Add") continue;
    const Node& add = graph.nodes[n];
    const ValueId out = add.outputs[0];
    ScaledConv best;
    ValueId shortcut = kNoValue;
    for (int flip = 0; flip < 2; ++flip) {
      const ValueId x = add.inputs[flip ? 1 : 0], other = add.inputs[flip ? 0 : 1];
      const Shape& shape = graph.value(out).info.shape;
      if (graph.value(x).info.shape != shape || graph.value(other).info.shape != shape ||
          graph.Constant(other) != nullptr) {
        continue;
      }
      const ScaledConv candidate = AsScaledConv(graph, x, producers, consumers);
      // Of two convolutions the later one, so that the other has run by then.
      if (candidate.conv > best.conv) {
        best = candidate;
        shortcut = other;
      }
    }
    if (best.conv < 0) continue;
    const Node conv = graph.nodes[static_cast<std::size_t>(best.conv)];
    Epilogue epilogue = ReadEpilogue(conv.op);
    if (epilogue.combine != Combine::kNone) continue;
    epilogue.combine = Combine::kAdd;
    epilogue.scale = best.scale;
    // Its own place is dead from now on: leaving the old node would cost the analysis above.
    graph.nodes[static_cast<std::size_t>(best.conv)].outputs[0] = graph.AddValue("fused");
    graph.nodes[n] = MakeFusedConv(conv, epilogue, kNoValue, shortcut, out);
    ++rewrites;
    // The convolution has moved to the Add's place.
    producers = graph.Producers();
    consumers = graph.Consumers();
  }
  return rewrites;
}

}  // namespace tessera
