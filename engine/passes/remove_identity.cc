#include <algorithm>

#include "engine/passes/passes.h"

namespace tessera {

int RemoveIdentity(Graph& graph) {
  int rewrites = 0;
  for (const Node& node : graph.nodes) {
    const bool identity =
        node.op.type == "Identity" ||
        (node.op.type == "Dropout" && (node.outputs.size() == 1 || node.outputs[1] == kNoValue));
    // Dropout in training mode is an error that inference of shapes reports.
    if (!identity || (node.op.type == "Dropout" && node.inputs.size() > 2)) continue;
    const ValueId in = node.inputs[0], out = node.outputs[0];
    // An input of the graph cannot be its output at the same time: something has to copy.
    if (graph.IsOutput(out) && graph.value(in).info.constant == nullptr &&
        std::find(graph.inputs.begin(), graph.inputs.end(), in) != graph.inputs.end()) {
      continue;
    }
    graph.ReplaceUses(out, in);
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
