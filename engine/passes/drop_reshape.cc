#include "engine/passes/passes.h"

namespace tessera {

int DropReshape(Graph& graph) {
  int rewrites = 0;
  for (const Node& node : graph.nodes) {
    if (node.op.type != "Reshape" && node.op.type != "Expand") continue;
    const ValueId in = node.inputs[0], out = node.outputs[0];
    const TensorInfo &before = graph.value(in).info, &after = graph.value(out).info;
    if (!before.present || !after.present || before.shape != after.shape) continue;
    // An output of the graph has memory of its own.
    if (graph.IsOutput(out)) continue;
    graph.ReplaceUses(out, in);
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
