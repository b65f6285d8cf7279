#include "engine/passes/quantized/integer_output.h"

#include <algorithm>
#include <utility>

#include "engine/passes/conv_fusion.h"
#include "engine/passes/quantized/integer_conv.h"
#include "engine/passes/quantized/movers.h"
#include "ops/quantize.h"

namespace tessera {

ValueId IntegerOutputs::Bytes(ValueId real, Quantization q) {
  const Key key{real, q.scale, q.zero_point};
  if (const auto it = made_.find(key); it != made_.end()) return it->second;
  const ValueId bytes = Make(real, q);
  made_[key] = bytes;
  return bytes;
}

ValueId IntegerOutputs::Make(ValueId real, Quantization q) {
  if (const ValueId v = FromFunction(real, q); v != kNoValue) return v;
  const Node* node = view_.Producer(real);
  // Where others read the float value too, it is there to be rounded.
  const bool movable = node != nullptr && IsMover(*node) &&
                       (view_.HasOneReader(real) || view_.FindQuantized(node->inputs[0]));
  ValueId v = kNoValue;
  if (movable) {
    v = FromMover(*node, real, q);
  } else if (node != nullptr && view_.HasOneReader(real)) {
    const std::string& type = node->op.type;
    v = FromConv(real, q);
    if (type == "Add") v = v != kNoValue ? v : FromAdd(real, q);
    if (type == "Relu" || type == "Clip") v = v != kNoValue ? v : FromBoundedAdd(*node, q);
    if (type == "Mul") v = FromGate(*node, q);
    if (type == "MatMul") v = FromMatMul(*node, q);
  }
  if (v != kNoValue) return v;
  v = NewBytes(real);
  view_.Append(MakeQuantize(graph_, view_.Resolve(real), q, DType::kUint8, v));
  return v;
}

ValueId IntegerOutputs::NewBytes(ValueId real) {
  return view_.AddValue(graph_.value(real).name + ".bytes");
}

ValueId IntegerOutputs::FromFunction(ValueId real, Quantization q) {
  const ByteFunction* function = functions_.Find(real);
  if (function == nullptr) return kNoValue;
  const ValueId out = NewBytes(real);
  const std::string name = graph_.value(real).name;
  const ValueId table = graph_.AddConstant(name + ".table", QuantizedTable(*function, q));
  return view_.AppendInteger(
      MakeNode("ByteTable", name, graph_.opset, {function->bytes, table}, out));
}

std::optional<QuantizedValue> IntegerOutputs::BoundedBytes(const Node& node) {
  const auto source = view_.FindQuantized(node.inputs[0]);
  const ByteFunction* function = source ? functions_.Find(node.outputs[0]) : nullptr;
  if (function == nullptr || function->bytes != source->bytes) return std::nullopt;
  const Tensor table = QuantizedTable(*function, source->q);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const int held = table.data<const std::uint8_t>()[byte] - source->q.zero_point;
    if (static_cast<float>(held) * source->q.scale != function->values[byte]) return std::nullopt;
  }
  return QuantizedValue{FromFunction(node.outputs[0], source->q), source->q};
}

ValueId IntegerOutputs::FromConv(ValueId real, Quantization q) {
  const Node* conv = view_.FindConv(real);
  if (conv == nullptr) return kNoValue;
  return view_.AppendInteger(WithBytes(*conv, q, NewBytes(real)));
}

ValueId IntegerOutputs::FromAdd(ValueId real, Quantization q) {
  const Node& add = *view_.Producer(real);
  const ValueId a = add.inputs[0], b = add.inputs[1];
  if (!view_.HaveSameShape(a, b)) return kNoValue;
  const auto of_a = view_.FindQuantized(a), of_b = view_.FindQuantized(b);
  if (!of_a || !of_b) return kNoValue;
  Node node = MakeNode("QuantizedAdd", add.op.name, graph_.opset, {of_a->bytes, of_b->bytes},
                       NewBytes(real));
  WriteQuantization(of_a->q, "a", node.op.attributes);
  WriteQuantization(of_b->q, "b", node.op.attributes);
  WriteQuantization(q, "y", node.op.attributes);
  return view_.AppendInteger(std::move(node));
}

// Rounding keeps the order of numbers: a bound of the sum is one of its bytes.
ValueId IntegerOutputs::FromBoundedAdd(const Node& bound, Quantization q) {
  const ValueId sum = bound.inputs[0];
  const Node* add = view_.Producer(sum);
  if (add == nullptr || add->op.type != "Add" || !view_.HasOneReader(sum)) return kNoValue;
  const auto function = AtNode(graph_, bound, [&] { return AsActivation(graph_, bound, 0); });
  if (!function) return kNoValue;
  ValueId bytes = FromConv(sum, q);
  if (bytes == kNoValue) bytes = FromAdd(sum, q);
  if (bytes == kNoValue) return kNoValue;
  ByteFunction clamp{bytes, {}};
  const float alpha = function->epilogue.alpha;  // 0 for Relu
  for (int byte = 0; byte < 256; ++byte) {
    const float value = std::max(static_cast<float>(byte - q.zero_point) * q.scale, alpha);
    clamp.values[static_cast<std::size_t>(byte)] =
        bound.op.type == "Relu" ? value : std::min(value, function->epilogue.beta);
  }
  const std::string name = graph_.value(bound.outputs[0]).name;
  const ValueId table = graph_.AddConstant(name + ".table", QuantizedTable(clamp, q));
  return view_.AppendInteger(
      MakeNode("ByteTable", name, graph_.opset, {bytes, table}, NewBytes(bound.outputs[0])));
}

ValueId IntegerOutputs::FromGate(const Node& mul, Quantization q) {
  for (const auto& [x, gate] :
       {std::pair{mul.inputs[0], mul.inputs[1]}, {mul.inputs[1], mul.inputs[0]}}) {
    const auto source = view_.FindQuantized(x);
    if (!source || !view_.IsChannelGate(gate, x)) continue;
    Node node = MakeNode("QuantizedScale", mul.op.name, graph_.opset,
                         {source->bytes, view_.Resolve(gate)}, NewBytes(mul.outputs[0]));
    WriteQuantization(source->q, "x", node.op.attributes);
    WriteQuantization(q, "y", node.op.attributes);
    return view_.AppendInteger(std::move(node));
  }
  return kNoValue;
}

ValueId IntegerOutputs::FromMatMul(const Node& matmul, Quantization q) {
  const auto a = view_.FindQuantized(matmul.inputs[0]), b = view_.FindQuantized(matmul.inputs[1]);
  if (!a || !b) return kNoValue;
  std::vector<ValueId> inputs;
  const auto add_parameters = [&](Quantization of, const char* name) {
    Tensor zero(DType::kUint8, Shape{}), scale(DType::kFloat32, Shape{});
    *zero.data<std::uint8_t>() = static_cast<std::uint8_t>(of.zero_point);
    *scale.data<float>() = of.scale;
    inputs.push_back(graph_.AddConstant(matmul.op.name + name + "scale", std::move(scale)));
    inputs.push_back(graph_.AddConstant(matmul.op.name + name + "zero_point", std::move(zero)));
  };
  inputs.push_back(a->bytes);
  add_parameters(a->q, ".a_");
  inputs.push_back(b->bytes);
  add_parameters(b->q, ".b_");
  add_parameters(q, ".y_");
  return view_.AppendInteger(MakeNode("QLinearMatMul", matmul.op.name, graph_.opset,
                                      std::move(inputs), NewBytes(matmul.outputs[0])));
}

ValueId IntegerOutputs::FromMover(const Node& mover, ValueId real, Quantization q) {
  Node node = mover;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    ValueId& in = node.inputs[i];
    in = i < NumDataInputs(mover) ? Bytes(in, q) : view_.Resolve(in);
  }
  ValueId bytes = kNoValue;
  for (ValueId& out : node.outputs) {  // several for Split
    if (out == kNoValue) continue;
    const ValueId old = out;
    out = NewBytes(old);
    made_[{old, q.scale, q.zero_point}] = out;
    if (old == real) bytes = out;
  }
  view_.AppendInteger(std::move(node));
  return bytes;
}

}  // namespace tessera
