// QDQ form to QLinearConv.
// https://onnx.ai/onnx/operators/onnx__QLinearConv.html
#include <cmath>
#include <limits>
#include <optional>

#include "engine/passes/conv_fusion.h"
#include "engine/quantization/insert_qdq.h"
#include "ops/conv.h"

namespace tessera {
namespace {

class QLinearFinder {
 public:
  explicit QLinearFinder(const Graph& graph)
      : graph_(graph), producers_(graph.Producers()), consumers_(graph.Consumers()) {}

  // The QLinearConv that gives what this QuantizeLinear gives.
  std::optional<Node> Find(const Node& quantize) const {
    const Node* end = OnlyReadProducer(quantize.inputs[0]);
    if (end == nullptr) return std::nullopt;
    const Node* conv = end;
    if (end->op.type == "Relu" || end->op.type == "Clip") {
      if (!BoundsDoIt(*end, quantize)) return std::nullopt;
      conv = OnlyReadProducer(end->inputs[0]);
    }
    if (conv == nullptr || conv->op.type != "Conv") return std::nullopt;
    const Node *x = Dequantize(conv->inputs[0]), *w = Dequantize(conv->inputs[1]);
    const bool has_bias = conv->inputs.size() > kConvBias;
    const Node* b = has_bias ? Dequantize(conv->inputs[kConvBias]) : nullptr;
    if (x == nullptr || w == nullptr || (has_bias && b == nullptr)) return std::nullopt;
    Node out = *conv;
    out.op.type = "QLinearConv";
    out.def = FindOp(out.op.type);
    out.inputs = x->inputs;
    out.inputs.insert(out.inputs.end(), w->inputs.begin(), w->inputs.end());
    out.inputs.push_back(quantize.inputs[1]);
    out.inputs.push_back(quantize.inputs[2]);
    if (has_bias) out.inputs.push_back(b->inputs[0]);
    out.outputs = quantize.outputs;
    return out;
  }

 private:
  const Node* Producer(ValueId v) const {
    const int n = producers_[static_cast<std::size_t>(v)];
    return n < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(n)];
  }
  const Node* OnlyReadProducer(ValueId v) const {
    const bool once = consumers_[static_cast<std::size_t>(v)].size() == 1 && !graph_.IsOutput(v);
    return once ? Producer(v) : nullptr;
  }
  const Node* Dequantize(ValueId v) const {
    const Node* node = Producer(v);
    return node != nullptr && node->op.type == "DequantizeLinear" ? node : nullptr;
  }

  // Whether values beyond the function's bounds leave the range of uint8 anyway.
  bool BoundsDoIt(const Node& function, const Node& quantize) const {
    float low = 0, high = std::numeric_limits<float>::infinity();
    if (function.op.type == "Clip") {
      low = -high;
      for (std::size_t i = 1; i < function.inputs.size(); ++i) {
        if (function.inputs[i] == kNoValue) continue;
        const std::optional<float> bound = ScalarConstant(graph_, function.inputs[i]);
        if (!bound) return false;
        (i == 1 ? low : high) = *bound;
      }
    }
    const float scale = graph_.Constant(quantize.inputs[1])->data<float>()[0];
    const int zero_point = graph_.Constant(quantize.inputs[2])->data<std::uint8_t>()[0];
    const auto q = [&](float v) { return std::nearbyint(v / scale) + zero_point; };
    return q(low) <= 0 && q(high) >= 255;
  }

  const Graph& graph_;
  const std::vector<int> producers_;
  const std::vector<std::vector<int>> consumers_;
};

}  // namespace

int UseQLinearConv(Graph& graph) {
  const QLinearFinder finder(graph);
  std::vector<std::optional<Node>> found;
  for (const Node& node : graph.nodes) {
    found.push_back(node.op.type == "QuantizeLinear" ? finder.Find(node) : std::nullopt);
  }
  int count = 0;
  for (std::size_t n = 0; n < found.size(); ++n) {
    if (!found[n]) continue;
    graph.nodes[n] = std::move(*found[n]);
    ++count;
  }
  if (count > 0) graph.RemoveDeadNodes();
  return count;
}

}  // namespace tessera
