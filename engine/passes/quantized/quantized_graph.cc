#include "engine/passes/quantized/quantized_graph.h"

#include <algorithm>

#include "engine/infer.h"
#include "engine/node_runner.h"

namespace tessera {
namespace {

// What int8 values are to DequantizeLinear and QuantizeLinear that change nothing but the type.
constexpr Quantization kSignedBytes{1, 0}, kUnsignedBytes{1, 128};

bool IsOpen(const ValueDecl& decl) {
  return std::ranges::any_of(decl.dims, [](std::int64_t dim) { return dim < 0; });
}

// A size for an input; `batch` and multiples of 32 where the model leaves it open.
Shape ExampleShape(const ValueDecl& decl, std::int64_t batch) {
  Shape shape;
  for (std::size_t d = 0; d < decl.dims.size(); ++d) {
    const std::int64_t open = d == 0 ? batch : 64 + 32 * static_cast<std::int64_t>(d);
    shape.PushBack(decl.dims[d] >= 0 ? decl.dims[d] : open);
  }
  return shape;
}

// 1 where the model leaves it open.
Shape SmallestShape(const ValueDecl& decl) {
  Shape shape;
  for (const std::int64_t dim : decl.dims) shape.PushBack(dim >= 0 ? dim : 1);
  return shape;
}

}  // namespace

QuantizedGraph::QuantizedGraph(Graph& graph) : graph_(graph) {
  producers_ = graph_.Producers();
  consumers_ = graph_.Consumers();
  InferExampleShapes();
  old_nodes_ = std::move(graph_.nodes);
  graph_.nodes.clear();
}

// Two images, so that what is the same for each of them is told from what is equal by chance; some
// networks take one only. Then inputs of size 1, one at a time.
void QuantizedGraph::InferExampleShapes() {
  const std::vector<ValueDecl>& decls = graph_.input_decls;
  const auto has_shape = [](const ValueDecl& decl) {
    return decl.has_shape && decl.dims.size() <= Shape::kMaxRank;
  };
  if (decls.size() != graph_.inputs.size() || !std::ranges::all_of(decls, has_shape)) return;
  for (const std::int64_t batch : {2, 1}) {
    std::vector<Shape> shapes;
    for (const ValueDecl& decl : decls) shapes.push_back(ExampleShape(decl, batch));
    if (!InferExample(shapes)) continue;
    for (std::size_t i = 0; decls.size() > 1 && i < decls.size(); ++i) {
      if (!IsOpen(decls[i])) continue;
      std::vector<Shape> others = shapes;
      others[i] = SmallestShape(decls[i]);
      InferExample(others);
    }
    return;
  }
}

bool QuantizedGraph::InferExample(const std::vector<Shape>& inputs) {
  try {
    Graph example = graph_;
    InferShapes(example, inputs);
    Shapes shapes(graph_.values.size());
    for (std::size_t v = 0; v < shapes.size(); ++v) {
      const TensorInfo& info = example.values[v].info;
      if (info.present) shapes[v] = info.shape;
    }
    examples_.push_back(std::move(shapes));
    return true;
  } catch (const Error&) {
    return false;
  }
}

ValueId QuantizedGraph::Resolve(ValueId value) const {
  const auto it = replaced_.find(value);
  return it == replaced_.end() ? value : it->second;
}

const Node* QuantizedGraph::Producer(ValueId value) const {
  if (value == kNoValue || static_cast<std::size_t>(value) >= producers_.size()) return nullptr;
  const int n = producers_[static_cast<std::size_t>(value)];
  return n < 0 ? nullptr : &old_nodes_[static_cast<std::size_t>(n)];
}

bool QuantizedGraph::HasOneReader(ValueId value) const {
  return static_cast<std::size_t>(value) < consumers_.size() &&
         consumers_[static_cast<std::size_t>(value)].size() == 1 && !graph_.IsOutput(value);
}

const Shape* QuantizedGraph::FindShape(ValueId value) const {
  const auto v = static_cast<std::size_t>(value);
  if (value == kNoValue || examples_.empty() || v >= examples_[0].size()) return nullptr;
  return examples_[0][v] ? &*examples_[0][v] : nullptr;
}

bool QuantizedGraph::Fit(ValueId a, ValueId b, bool (*fit)(const Shape&, const Shape&)) const {
  if (FindShape(a) == nullptr || FindShape(b) == nullptr) return false;
  return std::ranges::all_of(examples_, [&](const Shapes& shapes) {
    const auto &of_a = shapes[static_cast<std::size_t>(a)],
               &of_b = shapes[static_cast<std::size_t>(b)];
    return !of_a || !of_b || fit(*of_a, *of_b);
  });
}

bool QuantizedGraph::HaveSameShape(ValueId a, ValueId b) const {
  return Fit(a, b, [](const Shape& of_a, const Shape& of_b) { return of_a == of_b; });
}

bool QuantizedGraph::IsChannelGate(ValueId gate, ValueId x) const {
  return Fit(gate, x, [](const Shape& of_gate, const Shape& of_x) {
    return of_x.rank() == 4 && of_gate == Shape{of_x[0], of_x[1], 1, 1};
  });
}

const Tensor* QuantizedGraph::RealConstant(ValueId value) {
  if (value == kNoValue) return nullptr;
  const Tensor* constant = graph_.Constant(value);
  if (constant == nullptr) {
    if (const auto it = real_constants_.find(value); it != real_constants_.end()) {
      return &it->second;
    }
    const Node* node = Producer(value);
    if (node == nullptr || node->op.type != "DequantizeLinear") return nullptr;
    for (const ValueId in : node->inputs) {
      if (in != kNoValue && graph_.Constant(in) == nullptr) return nullptr;
    }
    SerialParallel serial;
    std::vector<Tensor> made =
        NodeRunner(graph_, *node, PlanOptions{}).Run(InputInfos(graph_, *node), serial);
    constant = &real_constants_.emplace(value, std::move(made[0])).first->second;
  }
  return constant->dtype() == DType::kFloat32 ? constant : nullptr;
}

void QuantizedGraph::Append(Node node) { graph_.nodes.push_back(std::move(node)); }

void QuantizedGraph::Keep(const Node& node) {
  Node kept = node;
  for (ValueId& in : kept.inputs) in = Resolve(in);
  Append(std::move(kept));
}

ValueId QuantizedGraph::AppendInteger(Node node) {
  const ValueId out = node.outputs[0];
  integer_values_.insert(out);
  Append(std::move(node));
  return out;
}

void QuantizedGraph::Replace(ValueId value, ValueId other) { replaced_[value] = other; }

std::optional<QuantizedValue> QuantizedGraph::FindQuantized(ValueId real) const {
  const auto it = quantized_.find(real);
  return it == quantized_.end() ? std::nullopt : std::optional(it->second);
}

ValueId QuantizedGraph::FindUnsigned(ValueId value) const {
  const auto it = unsigned_.find(value);
  return it == unsigned_.end() ? kNoValue : it->second;
}

ValueId QuantizedGraph::Unsigned(ValueId value) {
  if (const ValueId twin = FindUnsigned(value); twin != kNoValue) return twin;
  const std::string name = graph_.value(value).name;
  const ValueId real = AddValue(name + ".real"), twin = AddValue(name + ".unsigned");
  Append(MakeDequantize(graph_, Resolve(value), kSignedBytes, DType::kInt8, real));
  Append(MakeQuantize(graph_, real, kUnsignedBytes, DType::kUint8, twin));
  unsigned_[value] = twin;
  return twin;
}

void QuantizedGraph::SetUnsigned(ValueId value, ValueId unsigned_value) {
  const ValueId real = AddValue(graph_.value(value).name + ".real");
  Append(MakeDequantize(graph_, unsigned_value, kUnsignedBytes, DType::kUint8, real));
  Append(MakeQuantize(graph_, real, kSignedBytes, DType::kInt8, value));
  unsigned_[value] = unsigned_value;
}

const Node* QuantizedGraph::FindConv(ValueId real) const {
  const auto it = convs_.find(real);
  return it == convs_.end() ? nullptr : &it->second;
}

int QuantizedGraph::Finish() {
  for (ValueId& out : graph_.outputs) out = Resolve(out);
  graph_.RemoveDeadNodes();
  return static_cast<int>(std::ranges::count_if(
      graph_.nodes, [&](const Node& node) { return integer_values_.contains(node.outputs[0]); }));
}

}  // namespace tessera
