#include "engine/quantization/insert_qdq.h"

#include <algorithm>
#include <utility>

#include "ops/conv.h"

namespace tessera {
namespace {

class QdqWriter {
 public:
  QdqWriter(const Graph& graph, const Graph& shapes, const Placement& placement,
            const ActivationParameters& parameters, const WeightsByLayer& weights)
      : graph_(graph),
        shapes_(shapes),
        out_(graph),
        placement_(placement),
        parameters_(parameters),
        weights_(weights) {}

  Graph Write() {
    out_.nodes.clear();
    for (ValueId v : graph_.inputs) QuantizeValue(v);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      Node node = graph_.nodes[n];
      ReadDequantized(node, placement_.quantized[n]);
      if (placement_.quantized[n]) {
        AtNode(graph_, graph_.nodes[n],
               [&] { QuantizeOperands(node, parameters_.at(graph_.nodes[n].inputs[0]).scale); });
      }
      if (const Tensor* factors = ChannelFactors(graph_.nodes[n])) {
        QuantizeChannels(graph_.nodes[n].outputs[0], node.inputs[0], *factors);
        continue;
      }
      out_.nodes.push_back(std::move(node));
      for (ValueId v : graph_.nodes[n].outputs) QuantizeValue(v);
    }
    out_.RemoveDeadNodes();
    return std::move(out_);
  }

 private:
  void AddNode(std::string type, std::vector<ValueId> inputs, ValueId output, int axis = -1) {
    Node node;
    node.op.name = out_.value(output).name;
    node.op.opset = graph_.opset;
    if (axis >= 0) node.op.attributes.Set("axis", std::int64_t{axis});
    node.def = FindOp(type);
    node.op.type = std::move(type);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    out_.nodes.push_back(std::move(node));
  }

  void QuantizeValue(ValueId v) {
    if (v == kNoValue || !placement_.eight_bit[static_cast<std::size_t>(v)]) return;
    const std::string name = graph_.value(v).name;
    const Quantization& q = parameters_.at(v);
    const ValueId scale = AddScale(name, q), zero_point = AddZeroPoint(name, q);
    const ValueId quantized = out_.AddValue(name + ".q"), real = out_.AddValue(name + ".dq");
    AddNode("QuantizeLinear", {v, scale, zero_point}, quantized);
    AddNode("DequantizeLinear", {quantized, scale, zero_point}, real);
    dequantized_[v] = real;
  }

  // Those of a product of a map and a positive factor for each channel that is 8-bit: its scale
  // can have the factors in it.
  const Tensor* ChannelFactors(const Node& node) const {
    const ValueId y = node.outputs[0];
    if (node.op.type != "Mul" || y == kNoValue || graph_.IsOutput(y) ||
        !placement_.eight_bit[static_cast<std::size_t>(y)]) {
      return nullptr;
    }
    const Tensor* factors = graph_.Constant(node.inputs[1]);
    if (factors == nullptr || factors->dtype() != DType::kFloat32 ||
        factors->shape() != Shape{factors->size(), 1, 1} || factors->size() == 1) {
      return nullptr;
    }
    // The other factor has the same channels: none are made by broadcasting.
    const TensorInfo& x = shapes_.value(node.inputs[0]).info;
    if (!x.present || x.shape.rank() != 4 || x.shape[1] != factors->size()) return nullptr;
    const auto values = factors->values<const float>();
    return std::ranges::all_of(values, [](float f) { return f > 0; }) ? factors : nullptr;
  }

  // v = x * factors as 8-bit.
  void QuantizeChannels(ValueId v, ValueId x, const Tensor& factors) {
    const std::string name = graph_.value(v).name;
    const Quantization& q = parameters_.at(v);
    Tensor scales(DType::kFloat32, {factors.size()}), zeros(DType::kUint8, {factors.size()});
    for (std::int64_t c = 0; c < factors.size(); ++c) {
      scales.data<float>()[c] = q.scale / factors.data<float>()[c];
      zeros.data<std::uint8_t>()[c] = static_cast<std::uint8_t>(q.zero_point);
    }
    const ValueId quantized = out_.AddValue(name + ".q"), real = out_.AddValue(name + ".dq");
    AddNode("QuantizeLinear",
            {x, out_.AddConstant(name + ".channel_scales", std::move(scales)),
             out_.AddConstant(name + ".zero_points", std::move(zeros))},
            quantized, 1);
    AddNode("DequantizeLinear", {quantized, AddScale(name, q), AddZeroPoint(name, q)}, real);
    dequantized_[v] = real;
  }

  ValueId AddScale(const std::string& name, const Quantization& q) {
    return out_.AddConstant(name + ".scale", Tensor::FromVector<float>({}, {q.scale}));
  }
  ValueId AddZeroPoint(const std::string& name, const Quantization& q) {
    return out_.AddConstant(
        name + ".zero_point",
        Tensor::FromVector<std::uint8_t>({}, {static_cast<std::uint8_t>(q.zero_point)}));
  }

  // Whoever computes in float reads the network's inputs as they come.
  void ReadDequantized(Node& node, bool quantized) const {
    const bool is_8bit =
        quantized || std::ranges::any_of(node.outputs, [&](ValueId v) {
          return v != kNoValue && placement_.eight_bit[static_cast<std::size_t>(v)];
        });
    for (ValueId& v : node.inputs) {
      const auto it = dequantized_.find(v);
      const bool is_input = std::ranges::find(graph_.inputs, v) != graph_.inputs.end();
      if (it != dequantized_.end() && (is_8bit || !is_input)) v = it->second;
    }
  }

  void QuantizeOperands(Node& conv, float x_scale) {
    const std::string& name = conv.op.name;
    const LayerWeights& w = weights_.at(name);
    const std::int64_t channels = w.scales.size();
    Tensor bias_scales(DType::kFloat32, {channels}), zeros(DType::kInt8, {channels});
    for (std::int64_t c = 0; c < channels; ++c) {
      bias_scales.data<float>()[c] = x_scale * w.scales.data<float>()[c];
      zeros.data<std::int8_t>()[c] = 0;
    }
    const ValueId values = out_.AddConstant(name + ".weights.q", w.values.Clone());
    const ValueId scales = out_.AddConstant(name + ".weights.scale", w.scales.Clone());
    const ValueId zero_points = out_.AddConstant(name + ".weights.zero_point", std::move(zeros));
    conv.inputs.resize(2);
    conv.inputs[1] = out_.AddValue(name + ".weights.dq");
    AddNode("DequantizeLinear", {values, scales, zero_points}, conv.inputs[1], 0);
    if (w.bias.empty()) return;
    const ValueId bias = out_.AddConstant(name + ".bias.q", IntegerBias(w, x_scale));
    const ValueId bias_scale = out_.AddConstant(name + ".bias.scale", std::move(bias_scales));
    conv.inputs.push_back(out_.AddValue(name + ".bias.dq"));
    AddNode("DequantizeLinear", {bias, bias_scale}, conv.inputs[kConvBias], 0);
  }

  const Graph& graph_;
  const Graph& shapes_;
  Graph out_;
  const Placement& placement_;
  const ActivationParameters& parameters_;
  const WeightsByLayer& weights_;
  std::map<ValueId, ValueId> dequantized_;
};

}  // namespace

ActivationParameters ChooseParameters(const Graph& graph, const Placement& placement,
                                      const Calibration& calibration, RangeMethod method,
                                      double percentile, double clip_cost) {
  ActivationParameters parameters;
  const auto owner = [&](ValueId v) {
    while (placement.parameters_of[static_cast<std::size_t>(v)] != v) {
      v = placement.parameters_of[static_cast<std::size_t>(v)];
    }
    return v;
  };
  for (std::size_t i = 0; i < placement.eight_bit.size(); ++i) {
    if (!placement.eight_bit[i]) continue;
    const ValueId v = owner(static_cast<ValueId>(i));
    const auto [it, is_new] = parameters.try_emplace(v);
    if (is_new) {
      const bool is_input = std::ranges::find(graph.inputs, v) != graph.inputs.end();
      it->second = QuantizationOfRange(ChooseRange(calibration.histograms.at(v),
                                                   is_input ? RangeMethod::kMinMax : method,
                                                   percentile, clip_cost));
    }
    parameters[static_cast<ValueId>(i)] = it->second;
  }
  return parameters;
}

Graph InsertQdq(const Graph& graph, const Graph& shapes, const Placement& placement,
                const ActivationParameters& parameters, const WeightsByLayer& weights) {
  return QdqWriter(graph, shapes, placement, parameters, weights).Write();
}

}  // namespace tessera
