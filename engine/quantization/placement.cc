#include "engine/quantization/placement.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "engine/passes/conv_fusion.h"

namespace tessera {
namespace {

template <std::size_t n>
bool IsOneOf(std::string_view type, const std::array<std::string_view, n>& types) {
  return std::ranges::find(types, type) != types.end();
}

constexpr std::array<std::string_view, 12> kMovers{
    "Concat",  "DepthToSpace", "SpaceToDepth", "MaxPool", "Reshape", "Flatten",
    "Squeeze", "Unsqueeze",    "Transpose",    "Slice",   "Split",   "Resize"};
constexpr std::array<std::string_view, 14> kFunctions{
    "Relu", "LeakyRelu", "PRelu",    "Clip", "Sigmoid", "HardSigmoid", "HardSwish",
    "Tanh", "Elu",       "Softplus", "Selu", "Mish",    "Gelu",        "Celu"};
// What an 8-bit convolution applies to its sums.
constexpr std::array<std::string_view, 5> kActivations{"Relu", "LeakyRelu", "PRelu", "Clip",
                                                       "HardSwish"};
// Concat's inputs take its parameters if that makes their steps at most so much wider.
constexpr double kWiderStep = 1.25;

class Placer {
 public:
  Placer(const Graph& graph, const Graph& shapes, const std::vector<bool>& layers,
         const Calibration& calibration, QuantizedFormat format)
      : graph_(graph),
        shapes_(shapes),
        calibration_(calibration),
        format_(format),
        producers_(graph.Producers()),
        consumers_(graph.Consumers()) {
    placement_.quantized = layers;
    placement_.eight_bit.assign(graph.values.size(), false);
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      placement_.parameters_of.push_back(static_cast<ValueId>(v));
    }
  }

  Placement Run() {
    // From the outputs to the inputs: a value's readers come first.
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      VisitNode(graph_.nodes[n], placement_.quantized[n]);
    }
    for (const Node& node : graph_.nodes) ShareParameters(node);
    return placement_;
  }

 private:
  bool Is8Bit(ValueId v) const { return placement_.eight_bit[static_cast<std::size_t>(v)]; }
  std::size_t Readers(ValueId v) const {
    return consumers_[static_cast<std::size_t>(v)].size() + (graph_.IsOutput(v) ? 1 : 0);
  }
  const Node* Producer(ValueId v) const {
    const int n = v == kNoValue ? -1 : producers_[static_cast<std::size_t>(v)];
    return n < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(n)];
  }
  const Node* OnlyReader(ValueId v) const {
    if (Readers(v) != 1 || graph_.IsOutput(v)) return nullptr;
    return &graph_.nodes[static_cast<std::size_t>(consumers_[static_cast<std::size_t>(v)][0])];
  }
  bool IsQuantizedConv(const Node* node) const {
    return node != nullptr &&
           placement_.quantized[static_cast<std::size_t>(node - &graph_.nodes[0])];
  }
  const TensorInfo& Info(ValueId v) const { return shapes_.value(v).info; }

  // A convolution's result, or what its activation makes of that.
  bool IsTail(ValueId v) const {
    const Node* node = Producer(v);
    if (IsQuantizedConv(node)) return true;
    return node != nullptr && IsActivation(*node) && IsQuantizedConv(Producer(node->inputs[0]));
  }

  // Whether this function belongs to the convolution before it.
  bool IsActivation(const Node& node) const {
    if (format_ == QuantizedFormat::kQLinear) {
      if (node.op.type != "Relu" && node.op.type != "Clip") return false;
    } else if (!IsOneOf(node.op.type, kActivations)) {
      return false;
    }
    if (node.op.type == "PRelu") {
      const Tensor* slope = graph_.Constant(node.inputs[1]);
      const std::int64_t channels =
          Info(node.inputs[0]).present ? Info(node.inputs[0]).shape[1] : 0;
      if (slope == nullptr) return false;
      const Shape& s = slope->shape();
      const bool by_channel =
          slope->size() == channels && s.rank() >= 3 && s[s.rank() - 3] == channels;
      if (slope->size() != 1 && !by_channel) return false;
    }
    const Node* conv = Producer(node.inputs[0]);
    return conv != nullptr && conv->op.type == "Conv" && OnlyReader(conv->outputs[0]) == &node;
  }

  bool IsMover(const Node& node) const {
    if (!IsOneOf(node.op.type, kMovers)) return false;
    if (node.op.type != "Resize") return true;
    return node.op.attributes.String("mode", "nearest") == "nearest";
  }

  // A function of one tensor, element by element.
  bool IsFunction(const Node& node) const {
    if (!IsOneOf(node.op.type, kFunctions)) return false;
    if (node.op.type != "PRelu") return true;
    const Tensor* slope = graph_.Constant(node.inputs[1]);
    return slope != nullptr && slope->size() == 1;
  }

  // Whether input i is a float32 value that is computed, not a weight.
  bool IsActivationValue(ValueId v) const {
    return v != kNoValue && graph_.Constant(v) == nullptr && Info(v).constant == nullptr &&
           Info(v).present && Info(v).dtype == DType::kFloat32 &&
           calibration_.histograms.contains(v);
  }
  void Want(ValueId v) {
    if (IsActivationValue(v)) placement_.eight_bit[static_cast<std::size_t>(v)] = true;
  }

  bool IsGate(ValueId gate, ValueId map) const {
    if (!Info(gate).present || !Info(map).present) return false;
    const Shape &g = Info(gate).shape, &m = Info(map).shape;
    return g.rank() == 4 && m.rank() == 4 && g[0] == m[0] && g[1] == m[1] && g[2] == 1 &&
           g[3] == 1 && m[2] * m[3] > 1;
  }

  void VisitNode(const Node& node, bool quantized) {
    const auto& in = node.inputs;
    const bool wanted =
        std::ranges::any_of(node.outputs, [&](ValueId v) { return v != kNoValue && Is8Bit(v); });
    if (quantized) {
      Want(in[0]);
      if (format_ == QuantizedFormat::kQLinear) WantResult(node);
    } else if (IsActivation(node) && IsQuantizedConv(Producer(in[0]))) {
      // Part of the convolution; the Q comes after it.
    } else if (IsMover(node)) {
      // The last step of an upscaler, whose input is a convolution's sums, pays too.
      const bool last = node.op.type == "DepthToSpace" && IsTail(in[0]) && Readers(in[0]) == 1;
      if (!wanted && !last) return;
      const std::size_t inputs = node.op.type == "Concat" ? in.size() : 1;
      for (std::size_t i = 0; i < inputs; ++i) Want(in[i]);
    } else if (!wanted) {
      if (node.op.type == "Add") WantUnderActivation(node);
    } else if (IsFunction(node)) {
      if (!EndsAddition(node)) Want(in[0]);
    } else if (node.op.type == "Add") {
      WantOperands(node, /*may_fuse=*/true);
    } else if (node.op.type == "Mul") {
      if (IsGate(in[1], in[0])) Want(in[0]);
      if (IsGate(in[0], in[1])) Want(in[1]);
    }
  }

  // Every QLinearConv gives 8 bits.
  void WantResult(const Node& conv) {
    const Node* reader = OnlyReader(conv.outputs[0]);
    Want(reader != nullptr && IsActivation(*reader) ? reader->outputs[0] : conv.outputs[0]);
  }

  bool AddsMaps(const Node& add) const {
    const ValueId a = add.inputs[0], b = add.inputs[1];
    return IsActivationValue(a) && IsActivationValue(b) && Info(a).shape == Info(b).shape &&
           Info(a).shape.rank() == 4;
  }

  // Conv -> Add -> 8 bits: the sum is added to in the convolution, unless an activation follows.
  void WantOperands(const Node& add, bool may_fuse) {
    if (!AddsMaps(add)) return;
    const ValueId a = add.inputs[0], b = add.inputs[1];
    ValueId fused = kNoValue;
    if (may_fuse && format_ == QuantizedFormat::kQdq && a != b) {
      // Of two, that which is computed last.
      const auto can_fuse = [&](ValueId v) { return IsTail(v) && Readers(v) == 1; };
      if (can_fuse(a)) fused = a;
      if (can_fuse(b) && (fused == kNoValue || Order(b) > Order(a))) fused = b;
    }
    if (a != fused) Want(a);
    if (b != fused) Want(b);
  }
  int Order(ValueId v) const { return producers_[static_cast<std::size_t>(v)]; }

  // DQ, DQ -> Add -> Relu or Clip -> Q is one step.
  bool EndsAddition(const Node& node) const {
    if (node.op.type != "Relu" && node.op.type != "Clip") return false;
    const Node* add = Producer(node.inputs[0]);
    return add != nullptr && add->op.type == "Add" && AddsMaps(*add) &&
           Readers(node.inputs[0]) == 1;
  }
  void WantUnderActivation(const Node& add) {
    const Node* reader = OnlyReader(add.outputs[0]);
    if (reader != nullptr && EndsAddition(*reader) && Is8Bit(reader->outputs[0])) {
      WantOperands(add, /*may_fuse=*/false);
    }
  }

  double Width(ValueId v) const {
    const Histogram& h = calibration_.histograms.at(v);
    return static_cast<double>(h.high()) - h.low();
  }
  ValueId& ParametersOf(ValueId v) { return placement_.parameters_of[static_cast<std::size_t>(v)]; }

  void ShareParameters(const Node& node) {
    if (!IsMover(node)) return;
    for (const ValueId y : node.outputs) {
      if (y == kNoValue || !Is8Bit(y)) continue;
      if (node.op.type != "Concat") {
        if (Is8Bit(node.inputs[0])) ParametersOf(y) = ParametersOf(node.inputs[0]);
        continue;
      }
      for (const ValueId x : node.inputs) {
        // Parameters that others have already stay.
        const bool own = Is8Bit(x) && ParametersOf(x) == x && Order(x) >= 0 &&
                         !IsMover(graph_.nodes[static_cast<std::size_t>(Order(x))]);
        if (own && (Readers(x) == 1 || Width(y) <= kWiderStep * Width(x))) ParametersOf(x) = y;
      }
    }
  }

  const Graph& graph_;
  const Graph& shapes_;
  const Calibration& calibration_;
  const QuantizedFormat format_;
  const std::vector<int> producers_;
  const std::vector<std::vector<int>> consumers_;
  Placement placement_;
};

}  // namespace

std::vector<bool> FindLayers(const Graph& graph, const Graph& shapes) {
  std::vector<bool> layers;
  for (const Node& node : graph.nodes) {
    const TensorInfo& y = shapes.value(node.outputs[0]).info;
    layers.push_back(HasFloatWeights(graph, node) && graph.Constant(node.inputs[0]) == nullptr &&
                     graph.Constant(node.inputs[1])->shape().rank() == 4 && y.present &&
                     y.constant == nullptr && y.shape.rank() == 4 && y.shape[2] * y.shape[3] > 1);
  }
  return layers;
}

Placement Place(const Graph& graph, const Graph& shapes, const std::vector<bool>& layers,
                const Calibration& calibration, QuantizedFormat format) {
  return Placer(graph, shapes, layers, calibration, format).Run();
}

}  // namespace tessera
