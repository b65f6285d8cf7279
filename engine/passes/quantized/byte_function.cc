#include "engine/passes/quantized/byte_function.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/node_runner.h"
#include "ops/quantize.h"

namespace tessera {
namespace {

// Operators whose output element depends on the same element of each operand alone.
bool IsPointwise(const Node& node) {
  static const std::set<std::string_view> kTypes = {
      "Abs",       "Add",      "Ceil",       "Celu", "Clip",        "Div",       "Elu",
      "Erf",       "Exp",      "Floor",      "Gelu", "HardSigmoid", "HardSwish", "Identity",
      "LeakyRelu", "Log",      "Max",        "Min",  "Mish",        "Mul",       "Neg",
      "PRelu",     "Pow",      "Reciprocal", "Relu", "Round",       "Selu",      "Sigmoid",
      "Sign",      "Softplus", "Softsign",   "Sqrt", "Sub",         "Tanh",      "ThresholdedRelu"};
  return kTypes.contains(node.op.type) && node.outputs.size() == 1;
}

TensorInfo ConstantInfo(Tensor tensor) {
  auto shared = std::make_shared<const Tensor>(std::move(tensor));
  return {true, shared->dtype(), shared->shape(), Layout::kRowMajor, shared};
}

}  // namespace

const ByteFunction* ByteFunctions::Find(ValueId value) {
  auto it = known_.find(value);
  if (it == known_.end()) it = known_.emplace(value, Make(value)).first;
  return it->second ? &*it->second : nullptr;
}

std::optional<ByteFunction> ByteFunctions::Make(ValueId value) {
  if (const auto source = graph_.FindQuantized(value)) {
    ByteFunction function{source->bytes, {}};
    for (int byte = 0; byte < 256; ++byte) {
      function.values[static_cast<std::size_t>(byte)] =
          static_cast<float>(byte - source->q.zero_point) * source->q.scale;
    }
    return function;
  }
  const Node* node = graph_.Producer(value);
  return node != nullptr && IsPointwise(*node) ? Evaluate(*node) : std::nullopt;
}

// Runs the node on the 256 values of its operands. Constants have to be scalars: others would
// differ from element to element, or add dimensions.
std::optional<ByteFunction> ByteFunctions::Evaluate(const Node& node) {
  ValueId bytes = kNoValue;
  bool is_scalar = false, has_vector = false;
  std::vector<TensorInfo> inputs;
  for (const ValueId in : node.inputs) {
    if (in == kNoValue) {
      inputs.push_back({});
    } else if (const Tensor* constant = graph_.RealConstant(in)) {
      if (constant->size() != 1 || constant->shape().rank() > 1) return std::nullopt;
      has_vector = has_vector || constant->shape().rank() == 1;
      inputs.push_back(ConstantInfo(constant->Clone()));
    } else if (const ByteFunction* operand = Find(in)) {
      if (bytes != kNoValue && operand->bytes != bytes) return std::nullopt;
      bytes = operand->bytes;
      const Shape* shape = graph_.FindShape(in);
      is_scalar = is_scalar || (shape != nullptr && shape->rank() == 0);
      inputs.push_back(ConstantInfo(Tensor::FromVector<float>(
          {256}, std::vector<float>(operand->values.begin(), operand->values.end()))));
    } else {
      return std::nullopt;
    }
  }
  if (bytes == kNoValue || (is_scalar && has_vector)) return std::nullopt;
  SerialParallel serial;
  const std::vector<Tensor> made =
      NodeRunner(graph_.graph(), node, PlanOptions{{}, true}).Run(inputs, serial);
  if (made[0].dtype() != DType::kFloat32 || made[0].shape() != Shape{256}) return std::nullopt;
  ByteFunction function{bytes, {}};
  std::ranges::copy(made[0].values<const float>(), function.values.begin());
  return function;
}

Tensor QuantizedTable(const ByteFunction& function, Quantization q) {
  Tensor table(DType::kUint8, Shape{256});
  std::ranges::transform(function.values, table.data<std::uint8_t>(), [&](float value) {
    return RoundAndSaturate<std::uint8_t>(value / q.scale, q.zero_point);
  });
  return table;
}

}  // namespace tessera
