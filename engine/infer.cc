#include "engine/infer.h"

#include <algorithm>

#include "engine/inline_body.h"
#include "engine/node_runner.h"

namespace tessera {
namespace {

// Shape and Size need only the shape of their input.
bool NeedsShapesOnly(const Node& node) { return node.op.type == "Shape" || node.op.type == "Size"; }

bool InputsAreKnown(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId v) { return v == kNoValue || graph.value(v).info.present; });
}

bool IsFoldable(const Graph& graph, const Node& node) {
  if (NeedsShapesOnly(node)) return true;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId v) { return v == kNoValue || graph.Constant(v) != nullptr; });
}

// Computes a foldable node.
void Fold(Graph& graph, const Node& node) {
  SerialParallel serial;
  std::vector<Tensor> outputs =
      NodeRunner(graph, node, PlanOptions{}).Run(InputInfos(graph, node), serial);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    TensorInfo& info = graph.value(node.outputs[i]).info;
    info = {true, outputs[i].dtype(), outputs[i].shape(), Layout::kRowMajor,
            std::make_shared<const Tensor>(std::move(outputs[i]))};
  }
}

// Infers one node whose inputs are known, and folds it if that can be done. Leaves its outputs
// unknown if their shapes depend on values that are not.
void InferNode(Graph& graph, const Node& node) {
  if (IsFoldable(graph, node)) return Fold(graph, node);
  std::vector<TensorInfo> outputs(node.outputs.size());
  const bool known = AtNode(graph, node, [&] {
    try {
      node.def->infer({node.op, InputInfos(graph, node), outputs});
    } catch (const NeedsValue&) {
      return false;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      Require(outputs[i].present, "has no output ", i);
      outputs[i].shape.NumElements();  // refuses shapes whose size overflows
    }
    return true;
  });
  if (!known) return;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) graph.value(node.outputs[i]).info = outputs[i];
  }
}

// Whether node n is an If with a known condition; if so, its branch takes its place.
bool InlineBranch(Graph& graph, std::size_t n) {
  const Node& node = graph.nodes[n];
  if (node.op.type != "If") return false;
  const Tensor* condition = graph.Constant(node.inputs[0]);
  if (condition == nullptr) return false;
  const bool holds = AtNode(graph, node, [&] { return ConditionHolds(condition->view()); });
  InlineBody(graph, n, holds ? 0 : 1, holds ? 1 : 1 + node.bodies[0]->inputs.size());
  return true;
}

// Folds the nodes that `wanted` holds for, those of bodies too.
void FoldNodes(Graph& graph, bool (*wanted)(const Node&)) {
  for (std::size_t n = 0; n < graph.nodes.size();) {
    if (InlineBranch(graph, n)) continue;
    Node& node = graph.nodes[n++];
    for (std::shared_ptr<const Graph>& body : node.bodies) {
      auto folded = std::make_shared<Graph>(*body);
      FoldNodes(*folded, wanted);
      body = std::move(folded);
    }
    if (wanted(node) && InputsAreKnown(graph, node) && IsFoldable(graph, node)) {
      InferNode(graph, node);
    }
  }
  graph.RemoveDeadNodes();
}

}  // namespace

void FoldConstants(Graph& graph) {
  FoldNodes(graph, [](const Node&) { return true; });
}

void FoldIntegerConstants(Graph& graph) {
  FoldNodes(graph, [](const Node& node) { return node.op.type != "DequantizeLinear"; });
}

void InferShapes(Graph& graph, std::span<const TensorInfo> inputs) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    graph.value(graph.inputs[i]).info = inputs[i];
  }
  for (std::size_t n = 0; n < graph.nodes.size();) {
    if (InlineBranch(graph, n)) continue;
    const Node& node = graph.nodes[n++];
    if (InputsAreKnown(graph, node)) InferNode(graph, node);
  }
  graph.RemoveDeadNodes();
}

void InferShapes(Graph& graph, std::span<const Shape> input_shapes) {
  std::vector<TensorInfo> inputs;
  for (std::size_t i = 0; i < input_shapes.size(); ++i) {
    inputs.push_back(
        {true, graph.input_decls[i].dtype, input_shapes[i], Layout::kRowMajor, nullptr});
  }
  InferShapes(graph, inputs);
}

bool ShapesAreKnown(const Graph& graph, const Node& node) {
  return std::all_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId v) { return v == kNoValue || graph.value(v).info.present; });
}

bool ShapesAreKnown(const Graph& graph) {
  return std::all_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return ShapesAreKnown(graph, node); });
}

}  // namespace tessera
