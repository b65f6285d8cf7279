// Reshape(MatMul(Transpose(kernel), Reshape(x))), as trackers compare a template with a search
// area, is a pointwise convolution of x; as such it needs no change of layout. Where the product is
// quantised before it is reshaped, that is done after it.
#include "engine/passes/passes.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

// The node of this type that makes `id`, or null.
const Node* Producer(const Graph& graph, ValueId id, std::string_view type,
                     const std::vector<int>& producers) {
  const int node = producers[static_cast<std::size_t>(id)];
  if (node < 0) return nullptr;
  const Node& found = graph.nodes[static_cast<std::size_t>(node)];
  return found.op.type == type ? &found : nullptr;
}

// Whether it exchanges the rows and columns of each of a stack of matrices.
bool IsMatrixTranspose(const Node& transpose) {
  return transpose.op.attributes.Ints("perm") == std::vector<std::int64_t>{0, 2, 1};
}

// Of one scale for all elements.
bool IsPerTensorQuantize(const Graph& graph, const Node& node) {
  return node.op.type == "QuantizeLinear" && graph.value(node.inputs[1]).info.shape.rank() == 0;
}

}  // namespace

int FuseCorrelation(Graph& graph) {
  int rewrites = 0;
  const auto producers = graph.Producers();
  const auto consumers = graph.Consumers();
  const auto is_read_once = [&](ValueId id) {
    return !graph.IsOutput(id) && consumers[static_cast<std::size_t>(id)].size() == 1;
  };
  for (Node& reshape : graph.nodes) {
    if (reshape.op.type != "Reshape") continue;
    ValueId product = reshape.inputs[0];
    Node* quantize = nullptr;
    if (const int i = producers[static_cast<std::size_t>(product)];
        i >= 0 && IsPerTensorQuantize(graph, graph.nodes[static_cast<std::size_t>(i)]) &&
        is_read_once(product)) {
      quantize = &graph.nodes[static_cast<std::size_t>(i)];
      product = quantize->inputs[0];
    }
    const Node* matmul = Producer(graph, product, "MatMul", producers);
    if (matmul == nullptr || !is_read_once(product)) continue;
    const Node* transpose = Producer(graph, matmul->inputs[0], "Transpose", producers);
    const Node* flatten = Producer(graph, matmul->inputs[1], "Reshape", producers);
    if (transpose == nullptr || flatten == nullptr || !IsMatrixTranspose(*transpose)) continue;
    const TensorInfo& kernel = graph.value(transpose->inputs[0]).info;
    const TensorInfo& x = graph.value(flatten->inputs[0]).info;
    const Shape y = graph.value(reshape.outputs[0]).info.shape;
    if (x.dtype != DType::kFloat32 || kernel.shape.rank() != 3 || x.shape.rank() != 4 ||
        kernel.shape[0] != x.shape[0] || kernel.shape[2] % FloatLanes() != 0 ||
        graph.value(matmul->inputs[1]).info.shape !=
            Shape{x.shape[0], x.shape[1], x.shape[2] * x.shape[3]} ||
        y != Shape{x.shape[0], kernel.shape[2], x.shape[2], x.shape[3]}) {
      continue;
    }
    Node node;
    node.op = matmul->op;
    node.op.type = "PixelCorrelation";
    node.def = FindOp(node.op.type);
    node.inputs = {transpose->inputs[0], flatten->inputs[0]};
    if (quantize == nullptr) {
      node.outputs = reshape.outputs;
      reshape = std::move(node);
    } else {
      const ValueId real = graph.AddValue(reshape.op.name + ".real");
      graph.value(real).info = {true, DType::kFloat32, y, Layout::kRowMajor, nullptr};
      node.outputs = {real};
      Node after = *quantize;
      after.inputs[0] = real;
      after.outputs = reshape.outputs;
      *quantize = std::move(node);
      reshape = std::move(after);
    }
    ++rewrites;
  }
  return rewrites;
}

}  // namespace tessera
