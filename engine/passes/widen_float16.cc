// float16 models are computed in float32: weights are widened once, inputs and the results of
// Cast to float16 when they appear, and outputs narrowed. What an attribute asks for in float16
// (EyeLike) is made in float32. Roundings that the model asks for by a Cast happen; those between
// its float16 nodes do not (the result is more exact than asked for).
#include "engine/passes/passes.h"

namespace tessera {
namespace {

Tensor Widen(const Tensor& half) {
  Tensor wide(DType::kFloat32, half.shape());
  const auto* in = half.data<std::uint16_t>();
  float* out = wide.data<float>();
  for (std::int64_t i = 0; i < half.size(); ++i) out[i] = HalfToFloat(in[i]);
  return wide;
}

constexpr std::int64_t kOnnxFloat = 1, kOnnxFloat16 = 10;  // TensorProto.DataType

Node MakeCast(const Graph& graph, ValueId from, ValueId to, DType dtype) {
  Node cast;
  cast.op.name = graph.value(to).name;
  cast.op.type = "Cast";
  cast.op.opset = graph.opset;
  cast.op.attributes.Set("to", dtype == DType::kFloat16 ? kOnnxFloat16 : kOnnxFloat);
  cast.def = FindOp("Cast");
  cast.inputs = {from};
  cast.outputs = {to};
  return cast;
}

bool MakesFloat16(const Graph& graph, const Node& node) {
  return node.op.type == "EyeLike" &&
         AtNode(graph, node, [&] { return node.op.attributes.Int("dtype", 0); }) == kOnnxFloat16;
}

bool CastsToFloat16(const Graph& graph, const Node& node) {
  return node.op.type == "Cast" &&
         AtNode(graph, node, [&] { return node.op.attributes.Int("to", 0); }) == kOnnxFloat16;
}

}  // namespace

int WidenFloat16(Graph& graph) {
  int rewrites = 0;
  for (Value& value : graph.values) {
    if (!value.info.constant || value.info.dtype != DType::kFloat16) continue;
    value.info.constant = std::make_shared<const Tensor>(Widen(*value.info.constant));
    value.info.dtype = DType::kFloat32;
    ++rewrites;
  }
  for (Node& node : graph.nodes) {
    for (const auto& [name, attribute] : Attributes(node.op.attributes)) {
      const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&attribute);
      if (tensor == nullptr || (*tensor)->dtype() != DType::kFloat16) continue;
      node.op.attributes.Set(name, std::make_shared<const Tensor>(Widen(**tensor)));
      ++rewrites;
    }
    if (MakesFloat16(graph, node)) {
      node.op.attributes.Set("dtype", kOnnxFloat);
      ++rewrites;
    }
  }

  std::vector<Node> nodes;
  // The body of a loop or branch has no declared inputs and outputs: it takes and gives what the
  // graph around it has.
  for (std::size_t i = 0; i < graph.input_decls.size(); ++i) {
    if (graph.input_decls[i].dtype != DType::kFloat16) continue;
    const ValueId in = graph.inputs[i];
    const ValueId wide = graph.AddValue(graph.value(in).name + ".float32");
    graph.ReplaceUses(in, wide);
    nodes.push_back(MakeCast(graph, in, wide, DType::kFloat32));
    ++rewrites;
  }
  for (Node& node : graph.nodes) {
    nodes.push_back(node);
    if (!CastsToFloat16(graph, node)) continue;
    const ValueId half = node.outputs[0];
    const ValueId wide = graph.AddValue(graph.value(half).name + ".float32");
    graph.ReplaceUses(half, wide);
    // ReplaceUses saw graph.nodes only; what was moved already comes before and does not read it.
    nodes.push_back(MakeCast(graph, half, wide, DType::kFloat32));
    ++rewrites;
  }
  for (std::size_t i = 0; i < graph.output_decls.size(); ++i) {
    if (graph.output_decls[i].dtype != DType::kFloat16) continue;
    const ValueId half = graph.AddValue(graph.output_decls[i].name + ".float16");
    nodes.push_back(MakeCast(graph, graph.outputs[i], half, DType::kFloat16));
    graph.outputs[i] = half;
    ++rewrites;
  }
  graph.nodes = std::move(nodes);
  return rewrites;
}

}  // namespace tessera
