#include <algorithm>

#include "engine/passes/passes.h"

namespace tessera {

namespace {

// Dropout in training mode is an error that others report.
bool MayTrain(const Graph& graph, const Node& node) {
  if (node.op.type != "Dropout" || node.inputs.size() < 3 || node.inputs[2] == kNoValue)
    return false;
  const Tensor* training_mode = graph.Constant(node.inputs[2]);
  return training_mode == nullptr ||
         ToInt64s(training_mode->view()) != std::vector<std::int64_t>{0};
}

}  // namespace

int RemoveIdentity(Graph& graph) {
  int rewrites = 0;
  for (const Node& node : graph.nodes) {
    const bool identity =
        node.op.type == "Identity" ||
        (node.op.type == "Dropout" && (node.outputs.size() == 1 || node.outputs[1] == kNoValue));
    if (!identity || MayTrain(graph, node)) continue;
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
