// Quantised networks come as DequantizeLinear -> float operators -> QuantizeLinear, or with
// QLinearConv and QLinearMatMul. Here they become operators on uint8. What fits no pattern stays as
// it is: right, but slow.
//
// Nodes are looked at from front to back. A DequantizeLinear makes its result known as bytes; a
// QuantizeLinear asks for the bytes of a float value, and what made that decides how they are
// computed. Float nodes in between stay for as long as somebody reads their results.
#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/passes/passes.h"
#include "engine/passes/quantized/integer_conv.h"
#include "engine/passes/quantized/integer_output.h"
#include "engine/passes/quantized/movers.h"

namespace tessera {
namespace {

bool IsQuantized(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return node.op.type == "DequantizeLinear" || node.op.type.starts_with("QLinear");
  });
}

class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : view_(graph), outputs_(view_) {}

  int Run() {
    for (const Node& node : view_.old_nodes()) {
      if (!Rewrite(node)) view_.Keep(node);
    }
    return view_.Finish();
  }

 private:
  // False: the node has to be kept (too).
  bool Rewrite(const Node& node) {
    if (node.inputs.empty() || node.inputs[0] == kNoValue) return false;  // perhaps an error
    const std::string& type = node.op.type;
    if (type == "QuantizeLinear") return RewriteQuantize(node);
    if (type == "DequantizeLinear") return RewriteDequantize(node);
    if (type == "QLinearConv") return RewriteQLinearConv(view_, node);
    if (type == "QLinearMatMul") return RewriteQLinearMatMul(node);
    if (type == "Conv") return SetConv(MakeIntegerConv(view_, node));
    if (type == "Add") return SetConv(AddAddend(view_, node));
    if (type == "GlobalAveragePool") return RewriteToFloat(node, "QuantizedGlobalAverage");
    if (type == "DepthToSpace" && RewriteToFloat(node, "QuantizedDepthToSpace")) return true;
    if (type == "Relu" || type == "Clip") SetBounded(node);
    return RewriteActivation(node) || RewriteSignedMover(node);
  }

  bool RewriteQuantize(const Node& node) {
    const auto parameters = ReadByteParameters(view_.graph(), node);
    if (!parameters || view_.graph().Constant(node.inputs[0]) != nullptr) return false;
    const ValueId bytes = outputs_.Bytes(node.inputs[0], parameters->AsUnsigned());
    const ValueId out = node.outputs[0];
    if (parameters->dtype == DType::kUint8) {
      view_.Replace(out, bytes);
    } else {
      view_.SetUnsigned(out, bytes);
    }
    return true;
  }

  bool RewriteDequantize(const Node& node) {
    const auto parameters = ReadByteParameters(view_.graph(), node);
    const ValueId in = node.inputs[0], out = node.outputs[0];
    if (!parameters || view_.graph().Constant(in) != nullptr) return false;
    const bool is_signed = parameters->dtype == DType::kInt8;
    const QuantizedValue source = {is_signed ? view_.Unsigned(in) : view_.Resolve(in),
                                   parameters->AsUnsigned()};
    view_.SetDequantized(out, source);
    if (!is_signed) return false;
    view_.Append(MakeDequantize(view_.graph(), source.bytes, source.q, DType::kUint8, out));
    return true;
  }

  // A convolution with float output, which may turn out not to be needed.
  bool SetConv(std::optional<Node> conv) {
    if (!conv) return false;
    view_.AppendInteger(*conv);
    const ValueId out = conv->outputs[0];
    view_.SetConv(out, std::move(*conv));
    return true;
  }

  // Relu, or Clip at multiples of the scale, of dequantised bytes gives dequantised bytes.
  void SetBounded(const Node& node) {
    if (const auto bytes = outputs_.BoundedBytes(node)) {
      view_.SetDequantized(node.outputs[0], *bytes);
    }
  }

  bool RewriteActivation(const Node& node) {
    const ValueId in = node.inputs[0];
    const Node* conv = view_.FindConv(in);
    if (conv == nullptr || !view_.HasOneReader(in)) return false;
    return SetConv(AddActivation(view_, *conv, node));
  }

  // Operators of one image that give float32.
  bool RewriteToFloat(const Node& node, std::string_view type) {
    const auto x = view_.FindQuantized(node.inputs[0]);
    const Shape* shape = view_.FindShape(node.inputs[0]);
    if (!x || shape == nullptr || shape->rank() != 4) return false;
    Node to_float = MakeNode(type, node.op.name, node.op.opset, {x->bytes}, node.outputs[0]);
    for (const char* name : {"blocksize", "mode"}) {  // of DepthToSpace
      const auto& attributes = node.op.attributes;
      const auto it = std::ranges::find(attributes, name, [](const auto& a) { return a.first; });
      if (it != attributes.end()) to_float.op.attributes.Set(name, it->second);
    }
    WriteQuantization(x->q, "x", to_float.op.attributes);
    view_.AppendInteger(std::move(to_float));
    return true;
  }

  // Int8 operands become uint8 where those exist, so that nothing else has to make the former.
  bool RewriteQLinearMatMul(const Node& node) {
    Graph& graph = view_.graph();
    Node matmul = node;
    for (ValueId& in : matmul.inputs) in = view_.Resolve(in);
    for (const std::size_t operand : {0, 3}) {
      const auto p = ReadByteParameters(graph, node.inputs[operand + 1], node.inputs[operand + 2],
                                        std::nullopt);
      const ValueId twin = view_.FindUnsigned(node.inputs[operand]);
      if (!p || p->dtype != DType::kInt8 || twin == kNoValue) continue;
      matmul.inputs[operand] = twin;
      matmul.inputs[operand + 2] = AddZeroPoint(node, p->AsUnsigned());
    }
    const auto y = ReadByteParameters(graph, node.inputs[6], node.inputs[7], std::nullopt);
    if (!y || y->dtype != DType::kInt8) {
      view_.Append(std::move(matmul));
      return true;
    }
    const ValueId out = node.outputs[0];
    const ValueId twin = graph.AddValue(graph.value(out).name + ".unsigned");
    matmul.inputs[7] = AddZeroPoint(node, y->AsUnsigned());
    matmul.outputs = {twin};
    view_.AppendInteger(std::move(matmul));
    view_.SetUnsigned(out, twin);
    return true;
  }

  // Operators that only move int8 values move their twins alike.
  bool RewriteSignedMover(const Node& node) {
    if (!IsMover(node)) return false;
    const std::size_t data_inputs = NumDataInputs(node);
    for (std::size_t i = 0; i < data_inputs; ++i) {
      if (view_.FindUnsigned(node.inputs[i]) == kNoValue) return false;
    }
    Node mover = node;
    for (std::size_t i = 0; i < mover.inputs.size(); ++i) {
      ValueId& in = mover.inputs[i];
      in = i < data_inputs ? view_.FindUnsigned(in) : view_.Resolve(in);
    }
    for (ValueId& out : mover.outputs) {
      if (out != kNoValue) out = view_.AddValue(view_.graph().value(out).name + ".unsigned");
    }
    const std::vector<ValueId> twins = mover.outputs;
    view_.AppendInteger(std::move(mover));
    for (std::size_t i = 0; i < twins.size(); ++i) {
      if (twins[i] != kNoValue) view_.SetUnsigned(node.outputs[i], twins[i]);
    }
    return true;
  }

  ValueId AddZeroPoint(const Node& node, Quantization q) {
    Tensor zero(DType::kUint8, Shape{});
    *zero.data<std::uint8_t>() = static_cast<std::uint8_t>(q.zero_point);
    return view_.graph().AddConstant(node.op.name + ".zero_point", std::move(zero));
  }

  QuantizedGraph view_;
  IntegerOutputs outputs_;
};

}  // namespace

int UseIntegers(Graph& graph) { return IsQuantized(graph) ? Rewriter(graph).Run() : 0; }

}  // namespace tessera
