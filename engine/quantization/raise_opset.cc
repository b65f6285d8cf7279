#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "engine/quantization/prepare.h"

namespace tessera {
namespace {

class Raiser {
 public:
  Raiser(Graph& graph, int opset) : graph_(graph), opset_(opset) {}

  void Raise() {
    for (Node& node : graph_.nodes) {
      const std::string& type = node.op.type;
      const int from = graph_.opset;
      if (type == "Clip" && from < 11) {
        // Inputs, in the type of what is clipped.
        FloatInput(node, 1, "min", std::numeric_limits<float>::lowest());
        FloatInput(node, 2, "max", std::numeric_limits<float>::max());
      } else if (type == "Pad" && from < 11) {
        IntsInput(node, 1, "pads");
        FloatInput(node, 2, "value", 0);
      } else if (type == "Slice" && from < 10) {
        IntsInput(node, 1, "starts");
        IntsInput(node, 2, "ends");
        if (node.op.attributes.Has("axes")) IntsInput(node, 3, "axes");
      } else if ((type == "Squeeze" || type == "Unsqueeze" || type == "ReduceSum") && from < 13) {
        if (node.op.attributes.Has("axes")) IntsInput(node, 1, "axes");
      } else if (type == "Split" && from < 13) {
        if (node.op.attributes.Has("split")) IntsInput(node, 1, "split");
      } else if (type == "Upsample" || (type == "Resize" && from < 11)) {
        RaiseResize(node);
      } else if (Changed(type, from)) {
        throw Error(StrCat(graph_.file, ": ", Describe(node), " of opset ", from,
                           " is another one in opset ", opset_,
                           ", which 8-bit weights need; convert the model first"));
      }
      node.op.opset = opset_;
      node.def = FindOp(type);
    }
    graph_.opset = opset_;
  }

 private:
  // Whether the meaning of an operator that is not handled above depends on the version.
  static bool Changed(std::string_view type, int from) {
    struct Change {
      std::string_view type;
      int opset;
    };
    constexpr std::array kChanges{Change{"Softmax", 13},       Change{"LogSoftmax", 13},
                                  Change{"Hardmax", 13},       Change{"Dropout", 12},
                                  Change{"TopK", 11},          Change{"BatchNormalization", 9},
                                  Change{"AveragePool", 7},    Change{"Scan", 9},
                                  Change{"OneHot", 11},        Change{"DequantizeLinear", 10},
                                  Change{"QuantizeLinear", 10}};
    return std::ranges::any_of(kChanges,
                               [&](const Change& c) { return c.type == type && from < c.opset; });
  }

  void SetInput(Node& node, std::size_t i, ValueId value) {
    if (node.inputs.size() <= i) node.inputs.resize(i + 1, kNoValue);
    node.inputs[i] = value;
  }

  std::string NameFor(const Node& node, std::string_view attribute) const {
    return StrCat(node.op.name, ".", attribute);
  }

  void FloatInput(Node& node, std::size_t i, std::string_view attribute, float fallback) {
    const float value = node.op.attributes.Float(attribute, fallback);
    node.op.attributes.Erase(attribute);
    SetInput(node, i,
             graph_.AddConstant(NameFor(node, attribute), Tensor::FromVector<float>({}, {value})));
  }

  void IntsInput(Node& node, std::size_t i, std::string_view attribute) {
    const std::vector<std::int64_t> values = node.op.attributes.Ints(attribute);
    node.op.attributes.Erase(attribute);
    SetInput(node, i,
             graph_.AddConstant(NameFor(node, attribute),
                                Tensor::FromVector<std::int64_t>(
                                    {static_cast<std::int64_t>(values.size())}, values)));
  }

  // Up to opset 10 sizes were rounded down and pixels lay at x / scale.
  void RaiseResize(Node& node) {
    Attributes& a = node.op.attributes;
    ValueId scales = node.inputs.size() > 1 ? node.inputs[1] : kNoValue;
    if (a.Has("scales")) {
      const std::vector<float> values = a.Floats("scales");
      scales = graph_.AddConstant(
          NameFor(node, "scales"),
          Tensor::FromVector<float>({static_cast<std::int64_t>(values.size())}, values));
      a.Erase("scales");
    }
    node.op.type = "Resize";
    node.inputs = {node.inputs[0], kNoValue, scales};
    a.Set("coordinate_transformation_mode", std::string("asymmetric"));
    a.Set("nearest_mode", std::string("floor"));
  }

  Graph& graph_;
  const int opset_;
};

}  // namespace

void RaiseOpset(Graph& graph, int opset) {
  if (graph.opset < opset) Raiser(graph, opset).Raise();
}

}  // namespace tessera
