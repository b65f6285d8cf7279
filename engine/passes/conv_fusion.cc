#include "engine/passes/conv_fusion.h"

namespace tessera {

const Node* OnlyProducer(const Graph& graph, ValueId value, std::string_view type,
                         const std::vector<int>& producers,
                         const std::vector<std::vector<int>>& consumers) {
  if (value == kNoValue || graph.IsOutput(value)) return nullptr;
  const auto v = static_cast<std::size_t>(value);
  if (producers[v] < 0 || consumers[v].size() != 1) return nullptr;
  const Node& node = graph.nodes[static_cast<std::size_t>(producers[v])];
  return node.op.type == type ? &node : nullptr;
}

int FusableConv(const Graph& graph, ValueId value, std::size_t uses,
                const std::vector<int>& producers, const std::vector<std::vector<int>>& consumers) {
  if (value == kNoValue || graph.IsOutput(value)) return -1;
  const auto v = static_cast<std::size_t>(value);
  if (producers[v] < 0 || consumers[v].size() != uses) return -1;
  const Node& node = graph.nodes[static_cast<std::size_t>(producers[v])];
  if (node.op.type != "Conv" && node.op.type != "FusedConv") return -1;
  if (graph.Constant(node.inputs[1]) == nullptr) return -1;
  if (node.inputs.size() > kConvBias && node.inputs[kConvBias] != kNoValue &&
      graph.Constant(node.inputs[kConvBias]) == nullptr) {
    return -1;
  }
  // Other element types and 1-D or 3-D convolutions have no fused kernels.
  const TensorInfo& info = graph.value(value).info;
  if (info.dtype != DType::kFloat32 || info.shape.rank() != 4) return -1;
  return producers[v];
}

Node MakeFusedConv(const Node& conv, const Epilogue& epilogue, ValueId slope, ValueId addend,
                   ValueId output) {
  Node fused = conv;
  fused.op.type = "FusedConv";
  fused.def = FindOp(fused.op.type);
  WriteEpilogue(epilogue, fused.op.attributes);
  fused.inputs.resize(kConvAddend + 1, kNoValue);
  if (slope != kNoValue) fused.inputs[kConvSlope] = slope;
  if (addend != kNoValue) fused.inputs[kConvAddend] = addend;
  while (fused.inputs.back() == kNoValue) fused.inputs.pop_back();
  fused.outputs = {output};
  return fused;
}

std::optional<float> ScalarConstant(const Graph& graph, ValueId id) {
  const Tensor* t = graph.Constant(id);
  if (t == nullptr || t->dtype() != DType::kFloat32 || t->size() != 1) return std::nullopt;
  return t->data<float>()[0];
}

}  // namespace tessera
