#include "engine/onnx_old_opsets.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "engine/unsupported.h"
#include "ops/error.h"
#include "ops/op.h"

namespace tessera {
namespace {

// Operators that had other inputs or attributes before this opset.
struct Redefinition {
  std::string_view type;
  int opset;
};
constexpr Redefinition kRedefined[] = {{"Split", 2},   {"Pad", 2},  {"LpPool", 2}, {"Concat", 4},
                                       {"Reshape", 5}, {"Cast", 6}, {"Tile", 6},   {"Upsample", 7}};

constexpr std::string_view kBroadcasting[] = {"Add", "Sub", "Mul",   "Div",     "Pow", "And",
                                              "Or",  "Xor", "Equal", "Greater", "Less"};

// Whose output 0 has as many dimensions as input 0. (Before opset 7, sums had the shape of their
// left side.)
constexpr std::string_view kKeepRank[] = {"Abs",
                                          "Add",
                                          "And",
                                          "AveragePool",
                                          "BatchNormalization",
                                          "Ceil",
                                          "Clip",
                                          "Concat",
                                          "Conv",
                                          "ConvTranspose",
                                          "Div",
                                          "Dropout",
                                          "Elu",
                                          "Equal",
                                          "Exp",
                                          "Floor",
                                          "GlobalAveragePool",
                                          "GlobalMaxPool",
                                          "Greater",
                                          "HardSigmoid",
                                          "Identity",
                                          "InstanceNormalization",
                                          "LRN",
                                          "LeakyRelu",
                                          "Less",
                                          "Log",
                                          "LogSoftmax",
                                          "MaxPool",
                                          "Mul",
                                          "Neg",
                                          "Not",
                                          "Or",
                                          "PRelu",
                                          "Pad",
                                          "Pow",
                                          "Reciprocal",
                                          "Relu",
                                          "Selu",
                                          "Sigmoid",
                                          "Slice",
                                          "Softmax",
                                          "Softplus",
                                          "Softsign",
                                          "Split",
                                          "Sqrt",
                                          "Sub",
                                          "Sum",
                                          "Tanh",
                                          "Tile",
                                          "Transpose",
                                          "Xor"};

bool Contains(std::span<const std::string_view> list, std::string_view type) {
  return std::ranges::find(list, type) != list.end();
}

// Takes an attribute from a node: its integer, or `if_absent`.
std::int64_t Take(onnx::NodeProto& node, std::string_view name, std::int64_t if_absent) {
  auto& attributes = *node.mutable_attribute();
  const auto it = std::ranges::find_if(attributes, [&](const auto& a) { return a.name() == name; });
  if (it == attributes.end()) return if_absent;
  const std::int64_t value = it->i();
  attributes.erase(it);
  return value;
}

class Raiser {
 public:
  Raiser(int opset, const std::string& file) : opset_(opset), file_(file) {}

  void Raise(onnx::GraphProto& graph) {
    for (const auto* list : {&graph.input(), &graph.value_info()}) {
      for (const onnx::ValueInfoProto& value : *list) {
        const auto& type = value.type().tensor_type();
        if (type.has_shape()) ranks_[value.name()] = type.shape().dim_size();
      }
    }
    for (const auto& tensor : graph.initializer()) ranks_[tensor.name()] = tensor.dims_size();
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    nodes.Swap(graph.mutable_node());
    for (onnx::NodeProto& node : nodes) {
      for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) Raise(*attribute.mutable_g());
      }
      Require(node.output_size() > 0, file_, ": a node (", node.op_type(), ") has no output");
      RaiseNode(node, graph);
      LearnRank(node);
      *graph.add_node() = std::move(node);
    }
  }

 private:
  std::string What(const onnx::NodeProto& node) const {
    return StrCat(file_, ": node '", node.name().empty() ? node.output(0) : node.name(), "' (",
                  node.op_type(), "), opset ", opset_, ": ");
  }

  int RankOf(const onnx::NodeProto& node, int input) const {
    const auto it = ranks_.find(node.input(input));
    RequireSupported(it != ranks_.end(), What(node),
                     "is not supported where the model does not tell the rank of '",
                     node.input(input), "'");
    return it->second;
  }

  void LearnRank(const onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    if (type == "Constant") {
      for (const auto& a : node.attribute()) {
        if (a.name() == "value") ranks_[node.output(0)] = a.t().dims_size();
      }
    } else if (type == "Flatten" || type == "Gemm") {
      ranks_[node.output(0)] = 2;
    } else if (Contains(kKeepRank, type) && node.input_size() > 0 &&
               ranks_.contains(node.input(0))) {
      for (const std::string& output : node.output()) ranks_[output] = ranks_.at(node.input(0));
    }
  }

  // Has `input` read with `count` dimensions of size 1 after its first `first` ones.
  static void Unsqueeze(onnx::NodeProto& node, int input, int first, int count,
                        onnx::GraphProto& graph) {
    onnx::NodeProto& unsqueeze = *graph.add_node();
    unsqueeze.set_op_type("Unsqueeze");
    unsqueeze.set_name(StrCat(node.output(0), "/broadcast"));
    unsqueeze.add_input(node.input(input));
    unsqueeze.add_output(unsqueeze.name());
    onnx::AttributeProto& axes = *unsqueeze.add_attribute();
    axes.set_name("axes");
    axes.set_type(onnx::AttributeProto::INTS);
    for (int i = 0; i < count; ++i) axes.add_ints(first + i);
    node.set_input(input, unsqueeze.output(0));
  }

  // Appends what `node` needs before it to `graph`.
  void RaiseNode(onnx::NodeProto& node, onnx::GraphProto& graph) {
    const std::string& type = node.op_type();
    const auto redefined = std::ranges::find(kRedefined, type, &Redefinition::type);
    RequireSupported(redefined == std::end(kRedefined) || opset_ >= redefined->opset, What(node),
                     "is supported from opset ", redefined->opset, " on only");
    Take(node, "consumed_inputs", 0);
    if (Contains(kBroadcasting, type)) {
      const bool broadcast = Take(node, "broadcast", 0) != 0;
      // Without an axis the last dimensions match, as they do today.
      constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
      const std::int64_t axis = Take(node, "axis", kNone);
      if (!broadcast || axis == kNone || node.input_size() != 2) return;
      const int left = RankOf(node, 0), right = RankOf(node, 1);
      Require(axis >= -left && axis <= left, What(node), "axis ", axis,
              " is out of range for rank ", left);
      const int first = static_cast<int>(axis < 0 ? axis + left : axis);
      if (left > first + right) Unsqueeze(node, 1, right, left - first - right, graph);
    } else if (type == "PRelu" && node.input_size() == 2) {
      // One slope, or one for each channel.
      if (RankOf(node, 1) == 1 && RankOf(node, 0) > 2) {
        Unsqueeze(node, 1, 1, RankOf(node, 0) - 2, graph);
      }
    } else if (type == "BatchNormalization" || type == "Dropout") {
      RequireSupported(Take(node, "is_test", 0) != 0, What(node), "training is not supported");
    } else if (type == "Gemm") {
      Take(node, "broadcast", 0);
    } else if (type == "LSTM") {
      Take(node, "output_sequence", 0);
    }
  }

  const int opset_;
  const std::string& file_;
  std::map<std::string, int> ranks_;
};

}  // namespace

void RaiseOpset(onnx::ModelProto& model, const std::string& file) {
  for (auto& set : *model.mutable_opset_import()) {
    if (!set.domain().empty() && set.domain() != "ai.onnx") continue;
    if (set.version() < kOldestOpset || set.version() >= kMinOpset) return;
    Raiser(static_cast<int>(set.version()), file).Raise(*model.mutable_graph());
    set.set_version(kMinOpset);
    return;
  }
}

}  // namespace tessera
