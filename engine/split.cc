#include "engine/split.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/infer.h"

namespace tessera {
namespace {

// Nodes that depend on value `source` and constants, and on nothing else.
std::vector<bool> NodesAfter(const Graph& graph, ValueId source) {
  std::vector<bool> decided(graph.values.size(), false), after(graph.nodes.size(), false);
  decided[static_cast<std::size_t>(source)] = true;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    bool any = false, all = true;
    for (ValueId v : node.inputs) {
      if (v == kNoValue || graph.Constant(v) != nullptr) continue;
      const bool is_decided = decided[static_cast<std::size_t>(v)];
      any = any || is_decided;
      all = all && is_decided;
    }
    after[n] = any && all;
    if (!after[n]) continue;
    for (ValueId v : node.outputs) {
      if (v != kNoValue) decided[static_cast<std::size_t>(v)] = true;
    }
  }
  return after;
}

// Whether a node only puts elements into another order: passes look for these before the node that
// reads them.
bool Rearranges(const Node& node) { return node.def->is_view || node.op.type == "Transpose"; }

// Leaves to the rest what is better done there.
void GiveBackRearranging(const Graph& graph, std::vector<bool>& first) {
  const auto consumers = graph.Consumers();
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    if (!first[n] || !Rearranges(graph.nodes[n])) continue;
    const auto& readers = consumers[static_cast<std::size_t>(graph.nodes[n].outputs[0])];
    first[n] = std::any_of(readers.begin(), readers.end(),
                           [&](int reader) { return first[static_cast<std::size_t>(reader)]; });
  }
}

ValueDecl Declare(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const Shape& shape = value.info.shape;
  return {value.name, value.info.dtype, {shape.begin(), shape.end()}, true};
}

}  // namespace

GraphParts SplitAfterInput(const Graph& graph, std::size_t input) {
  Require(ShapesAreKnown(graph), graph.file,
          ": cannot be split, as shapes depend on values that only the run knows");
  const ValueId source = graph.inputs[input];
  std::vector<bool> in_first = NodesAfter(graph, source);
  GiveBackRearranging(graph, in_first);

  GraphParts parts{graph, graph};
  parts.first.nodes.clear();
  parts.rest.nodes.clear();
  std::vector<bool> wanted(graph.values.size(), false);  // of the first part, by the rest
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    (in_first[n] ? parts.first : parts.rest).nodes.push_back(graph.nodes[n]);
    if (in_first[n]) continue;
    for (ValueId v : graph.nodes[n].inputs) {
      if (v != kNoValue) wanted[static_cast<std::size_t>(v)] = true;
    }
  }
  for (ValueId v : graph.outputs) wanted[static_cast<std::size_t>(v)] = true;

  std::vector<ValueId> cut;
  const auto cut_at = [&](ValueId v) {
    if (v != kNoValue && wanted[static_cast<std::size_t>(v)]) cut.push_back(v);
  };
  cut_at(source);
  for (const Node& node : parts.first.nodes) {
    std::for_each(node.outputs.begin(), node.outputs.end(), cut_at);
  }

  parts.first.inputs = {source};
  parts.first.outputs = cut;
  std::erase(parts.rest.inputs, source);
  parts.rest.inputs.insert(parts.rest.inputs.end(), cut.begin(), cut.end());
  parts.first.output_decls.clear();
  for (ValueId v : cut) parts.first.output_decls.push_back(Declare(graph, v));
  for (Graph* part : {&parts.first, &parts.rest}) {
    part->input_decls.clear();
    for (ValueId v : part->inputs) part->input_decls.push_back(Declare(graph, v));
    part->RemoveDeadNodes();
  }
  return parts;
}

}  // namespace tessera
