#include "engine/quantization/prepare.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "engine/infer.h"
#include "engine/passes.h"
#include "engine/passes/conv_fusion.h"

namespace tessera {
namespace {

constexpr int kOpset = 13, kHardSwishOpset = 14;

class HardSwishFinder {
 public:
  explicit HardSwishFinder(const Graph& graph)
      : graph_(graph), producers_(graph.Producers()), consumers_(graph.Consumers()) {}

  // The x of x * clip(x + 3, 0, 6) / 6 that makes `value`; kNoValue if it is another function.
  ValueId InputOf(ValueId value) const {
    // Either the product is divided, or one of its factors.
    if (const ValueId product = DividedBySix(value); product != kNoValue) {
      return OfProduct(product, [&](ValueId factor) { return factor; });
    }
    return OfProduct(value, [&](ValueId factor) { return DividedBySix(factor); });
  }

 private:
  const Node* Producer(ValueId value, std::string_view type) const {
    if (value == kNoValue || producers_[static_cast<std::size_t>(value)] < 0) return nullptr;
    const Node& node =
        graph_.nodes[static_cast<std::size_t>(producers_[static_cast<std::size_t>(value)])];
    return node.op.type == type ? &node : nullptr;
  }

  bool IsAbout(ValueId id, float expected) const {
    const std::optional<float> v = ScalarConstant(graph_, id);
    return v && std::abs(*v - expected) <= 1e-6f * (1 + std::abs(expected));
  }

  // The other operand of a node with the constant `expected`.
  ValueId Beside(const Node* node, float expected, bool either_side) const {
    if (node == nullptr) return kNoValue;
    if (IsAbout(node->inputs[1], expected)) return node->inputs[0];
    return either_side && IsAbout(node->inputs[0], expected) ? node->inputs[1] : kNoValue;
  }

  ValueId DividedBySix(ValueId value) const {
    const ValueId x = Beside(Producer(value, "Div"), 6, false);
    return x != kNoValue ? x : Beside(Producer(value, "Mul"), 1.0f / 6, true);
  }

  ValueId ClippedAndShifted(ValueId value) const {
    const Node* clip = Producer(value, "Clip");
    if (clip == nullptr || clip->inputs.size() != 3 || !IsAbout(clip->inputs[1], 0) ||
        !IsAbout(clip->inputs[2], 6)) {
      return kNoValue;
    }
    return Beside(Producer(clip->inputs[0], "Add"), 3, true);
  }

  template <typename Undo>
  ValueId OfProduct(ValueId product, Undo&& undo) const {
    const Node* mul = Producer(product, "Mul");
    if (mul == nullptr) return kNoValue;
    for (std::size_t i = 0; i < 2; ++i) {
      const ValueId x = mul->inputs[1 - i], clipped = undo(mul->inputs[i]);
      if (clipped != kNoValue && x != kNoValue && ClippedAndShifted(clipped) == x) return x;
    }
    return kNoValue;
  }

  const Graph& graph_;
  const std::vector<int> producers_;
  const std::vector<std::vector<int>> consumers_;
};

}  // namespace

int FuseHardSwish(Graph& graph) {
  const HardSwishFinder finder(graph);
  std::vector<std::pair<std::size_t, ValueId>> found;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ValueId x = finder.InputOf(graph.nodes[n].outputs[0]);
    if (x != kNoValue) found.emplace_back(n, x);
  }
  for (const auto& [n, x] : found) {
    Node& node = graph.nodes[n];
    node.op.type = "HardSwish";
    node.op.attributes = {};
    node.def = FindOp(node.op.type);
    node.inputs = {x};
  }
  if (!found.empty()) graph.RemoveDeadNodes();
  return static_cast<int>(found.size());
}

Graph PrepareForQuantizing(Graph graph) {
  for (const Node& node : graph.nodes) {
    Require(node.bodies.empty(), graph.file, ": ", Describe(node),
            " has sub-graphs, which cannot be quantised");
    Require(node.op.type.find("QLinear") == std::string::npos &&
                node.op.type.find("QuantizeLinear") == std::string::npos,
            graph.file, ": is quantised already (", Describe(node), ")");
  }
  RunPasses(graph, PassStage::kRequired, {});
  FoldConstants(graph);
  // Those that make operators of our own stay out.
  RunPasses(graph, PassStage::kCanonical, {"split-conv-transpose", "fold-pointwise"});
  RaiseOpset(graph, kOpset);
  Graph with_hard_swish = graph;
  RaiseOpset(with_hard_swish, kHardSwishOpset);
  if (FuseHardSwish(with_hard_swish) > 0) return with_hard_swish;
  return graph;
}

}  // namespace tessera
