#include "engine/inline_body.h"

#include <iterator>
#include <utility>

namespace tessera {

void InlineBody(Graph& graph, std::size_t n, std::size_t body_index, std::size_t first_input) {
  const Node node = std::move(graph.nodes[n]);
  const Graph& body = *node.bodies[body_index];
  std::vector<ValueId> ids(body.values.size(), kNoValue);
  const auto at = [&](ValueId v) -> ValueId& { return ids[static_cast<std::size_t>(v)]; };
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    at(body.inputs[i]) = node.inputs[first_input + i];
  }
  for (std::size_t v = 0; v < body.values.size(); ++v) {
    if (ids[v] != kNoValue) continue;
    ids[v] = graph.AddValue(StrCat(node.op.name, "/", body.values[v].name));
    graph.value(ids[v]).info = body.values[v].info;
  }
  std::vector<Node> nodes = body.nodes;
  for (Node& inner : nodes) {
    inner.op.name = StrCat(node.op.name, "/", inner.op.name);
    for (ValueId& v : inner.inputs) v = v == kNoValue ? v : at(v);
    for (ValueId& v : inner.outputs) v = v == kNoValue ? v : at(v);
  }
  graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(n));
  graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(n),
                     std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.end()));
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) graph.ReplaceUses(node.outputs[i], at(body.outputs[i]));
  }
}

}  // namespace tessera
