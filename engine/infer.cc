#include "engine/infer.h"

#include <algorithm>
#include <cstring>

namespace tessera {
namespace {

std::vector<TensorInfo> Infos(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<TensorInfo> infos;
  infos.reserve(ids.size());
  for (ValueId v : ids) infos.push_back(v == kNoValue ? TensorInfo{} : graph.value(v).info);
  return infos;
}

// Shape and Size need only the shape of their input.
bool NeedsShapesOnly(const Node& node) { return node.op.type == "Shape" || node.op.type == "Size"; }

bool IsFoldable(const Graph& graph, const Node& node) {
  if (NeedsShapesOnly(node)) return true;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId v) { return v == kNoValue || graph.Constant(v) != nullptr; });
}

// Computes a foldable node whose shapes are inferred.
void Fold(Graph& graph, const Node& node) {
  const std::vector<TensorInfo> inputs = InputInfos(graph, node);
  const std::vector<TensorInfo> infos = OutputInfos(graph, node);
  std::vector<TensorView> input_views, output_views;
  for (const TensorInfo& info : inputs) {
    input_views.push_back(info.constant ? info.constant->view()
                                        : TensorView{info.dtype, info.layout, info.shape, nullptr});
  }
  std::vector<Tensor> outputs;
  for (const TensorInfo& info : infos) {
    outputs.emplace_back(info.dtype, info.shape);
    output_views.push_back(outputs.back().view());
  }
  if (node.def->is_view) {
    std::memcpy(output_views[0].bytes, input_views[0].bytes, outputs[0].bytes());
  } else {
    PackCache packs;
    const std::unique_ptr<Kernel> kernel =
        node.def->prepare({node.op, inputs, infos, packs, /*reference=*/false});
    SerialParallel serial;
    const AlignedBuffer scratch(kernel->ScratchBytesPerThread());
    kernel->Run({input_views, output_views, serial, scratch.data(), scratch.size()});
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    graph.value(node.outputs[i]).info.constant =
        std::make_shared<const Tensor>(std::move(outputs[i]));
  }
}

// Infers one node whose inputs are known, and folds it if that can be done.
void InferNode(Graph& graph, const Node& node) {
  AtNode(graph, node, [&] {
    const std::vector<TensorInfo> inputs = InputInfos(graph, node);
    std::vector<TensorInfo> outputs(node.outputs.size());
    node.def->infer({node.op, inputs, outputs});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      Require(outputs[i].present, "has no output ", i);
      outputs[i].shape.NumElements();  // refuses shapes whose size overflows
      graph.value(node.outputs[i]).info = outputs[i];
    }
    if (IsFoldable(graph, node)) Fold(graph, node);
  });
}

}  // namespace

std::vector<TensorInfo> InputInfos(const Graph& graph, const Node& node) {
  return Infos(graph, node.inputs);
}

std::vector<TensorInfo> OutputInfos(const Graph& graph, const Node& node) {
  return Infos(graph, node.outputs);
}

void FoldConstants(Graph& graph) {
  for (const Node& node : graph.nodes) {
    const bool inputs_known = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
      return v == kNoValue || graph.value(v).info.present;
    });
    if (inputs_known && IsFoldable(graph, node)) InferNode(graph, node);
  }
  graph.RemoveDeadNodes();
}

void InferShapes(Graph& graph, std::span<const Shape> input_shapes) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    TensorInfo& info = graph.value(graph.inputs[i]).info;
    info = {true, graph.input_decls[i].dtype, input_shapes[i], Layout::kRowMajor, nullptr};
  }
  for (const Node& node : graph.nodes) InferNode(graph, node);
  graph.RemoveDeadNodes();
}

}  // namespace tessera
