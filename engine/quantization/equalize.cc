#include "engine/quantization/equalize.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/passes/conv_fusion.h"
#include "engine/quantization/channel_scales.h"
#include "ops/conv.h"

namespace tessera {
namespace {

std::int64_t Groups(const Node& conv) { return conv.op.attributes.Int("group", 1); }

class Equalizer {
 public:
  Equalizer(Graph& graph, const Graph& shapes, const ChannelRanges& ranges)
      : graph_(graph),
        shapes_(shapes),
        ranges_(ranges),
        consumers_(graph.Consumers()),
        sets_(graph.values.size()),
        fixed_(graph.values.size(), false) {
    std::iota(sets_.begin(), sets_.end(), 0);
  }

  int Run() {
    FindSets();
    std::set<int> roots;
    for (const Node& node : graph_.nodes) {
      if (HasFloatWeights(graph_, node) && !IsFixed(node.outputs[0])) {
        roots.insert(Find(node.outputs[0]));
      }
    }
    int count = 0;
    for (int root : roots) count += Scale(root) ? 1 : 0;
    return count + ScaleFloatMaps();
  }

 private:
  int Find(ValueId v) const {
    int root = v;
    while (sets_[static_cast<std::size_t>(root)] != root) {
      root = sets_[static_cast<std::size_t>(root)];
    }
    return root;
  }
  bool IsFixed(ValueId v) const { return fixed_[static_cast<std::size_t>(Find(v))]; }
  void Fix(ValueId v) {
    if (v != kNoValue) fixed_[static_cast<std::size_t>(Find(v))] = true;
  }
  void Join(ValueId a, ValueId b) {
    const int ra = Find(a), rb = Find(b);
    fixed_[static_cast<std::size_t>(ra)] =
        fixed_[static_cast<std::size_t>(ra)] || fixed_[static_cast<std::size_t>(rb)];
    sets_[static_cast<std::size_t>(rb)] = ra;
  }

  const Shape* ShapeOf(ValueId v) const {
    const TensorInfo& info = shapes_.value(v).info;
    return info.present && info.shape.rank() == 4 ? &info.shape : nullptr;
  }

  // Functions of one tensor that commute with scales of its channels.
  bool Commutes(const Node& node) const {
    static constexpr std::string_view kTypes[] = {"Relu", "LeakyRelu", "MaxPool", "AveragePool"};
    if (node.outputs.size() != 1) return false;
    if (std::ranges::find(kTypes, node.op.type) != std::end(kTypes)) return true;
    if (node.op.type == "Resize") {
      const Shape *x = ShapeOf(node.inputs[0]), *y = ShapeOf(node.outputs[0]);
      return x != nullptr && y != nullptr && (*x)[1] == (*y)[1];
    }
    return node.op.type == "PRelu" && graph_.Constant(node.inputs[1]) != nullptr;
  }

  // Sets of values that have to be scaled alike; fixed ones are read or made by something else.
  void FindSets() {
    for (ValueId v : graph_.inputs) Fix(v);
    for (ValueId v : graph_.outputs) Fix(v);
    for (const Node& node : graph_.nodes) {
      const ValueId y = node.outputs[0];
      if (HasFloatWeights(graph_, node)) {
        if (ShapeOf(y) == nullptr || node.outputs.size() != 1) Fix(y);
        continue;
      }
      if (Commutes(node) && ShapeOf(node.inputs[0]) != nullptr && ShapeOf(y) != nullptr) {
        Join(node.inputs[0], y);
        continue;
      }
      if (node.op.type == "Add" && ShapeOf(node.inputs[0]) != nullptr && ShapeOf(y) != nullptr &&
          ShapeOf(node.inputs[1]) != nullptr && *ShapeOf(node.inputs[0]) == *ShapeOf(y) &&
          *ShapeOf(node.inputs[1]) == *ShapeOf(y) && graph_.Constant(node.inputs[0]) == nullptr &&
          graph_.Constant(node.inputs[1]) == nullptr) {
        Join(node.inputs[0], y);
        Join(node.inputs[1], y);
        continue;
      }
      for (ValueId v : node.outputs) Fix(v);
      if (JoinsChannels(node)) continue;  // each input by itself
      for (ValueId v : node.inputs) Fix(v);
    }
    CloseJoins();
  }

  // Inputs of a Concat get ranges that are alike, or stay as they are if that is not possible.
  void CloseJoins() {
    const auto producers = graph_.Producers();
    const auto can_scale = [&](ValueId v) {
      const int n = producers[static_cast<std::size_t>(v)];
      return !IsFixed(v) || (n >= 0 && IsFloatMap(graph_.nodes[static_cast<std::size_t>(n)]));
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (const Node& node : graph_.nodes) {
        if (!JoinsChannels(node) || std::ranges::all_of(node.inputs, can_scale)) continue;
        closed_.insert(node.outputs[0]);
        for (const ValueId v : node.inputs) Fix(v);
        changed = true;
      }
    }
  }

  // Whether a node lines up the channels of maps, all of which convolutions read.
  bool JoinsChannels(const Node& node) const {
    if (node.op.type != "Concat" || graph_.IsOutput(node.outputs[0])) return false;
    if (closed_.contains(node.outputs[0])) return false;
    const std::int64_t axis = node.op.attributes.Int("axis", 0);
    if (axis != 1 && axis != -3) return false;
    const auto is_map = [&](ValueId v) {
      return ShapeOf(v) != nullptr && graph_.Constant(v) == nullptr;
    };
    const auto& readers = consumers_[static_cast<std::size_t>(node.outputs[0])];
    return std::ranges::all_of(node.inputs, is_map) && is_map(node.outputs[0]) &&
           std::ranges::all_of(readers, [&](int n) {
             const Node& reader = graph_.nodes[static_cast<std::size_t>(n)];
             return HasFloatWeights(graph_, reader) && Groups(reader) == 1 &&
                    reader.inputs[0] == node.outputs[0];
           });
  }

  // The convolutions that read `value` itself, and behind a Concat.
  std::vector<ChannelReader> Readers(ValueId value) {
    std::vector<ChannelReader> readers;
    for (const int n : consumers_[static_cast<std::size_t>(value)]) {
      Node& node = graph_.nodes[static_cast<std::size_t>(n)];
      if (HasFloatWeights(graph_, node) && node.inputs[0] == value) readers.push_back({&node, 0});
      if (!JoinsChannels(node)) continue;
      std::int64_t first = 0;
      for (const ValueId in : node.inputs) {
        const auto& convs = consumers_[static_cast<std::size_t>(node.outputs[0])];
        for (const int conv : in == value ? convs : std::vector<int>()) {
          readers.push_back({&graph_.nodes[static_cast<std::size_t>(conv)], first});
        }
        first += (*ShapeOf(in))[1];
      }
    }
    return readers;
  }

  bool Scale(int root) {
    std::vector<ValueRange> ranges;
    std::vector<Node*> writers;
    std::vector<ChannelReader> readers;
    for (Node& node : graph_.nodes) {
      if (HasFloatWeights(graph_, node) && Find(node.outputs[0]) == root) writers.push_back(&node);
    }
    for (std::size_t v = 0; v < sets_.size(); ++v) {
      if (Find(static_cast<ValueId>(v)) != root) continue;
      const std::vector<ChannelReader> of_value = Readers(static_cast<ValueId>(v));
      if (of_value.empty()) continue;
      const auto it = ranges_.find(static_cast<ValueId>(v));
      if (it == ranges_.end()) return false;
      ranges.resize(it->second.size());
      std::ranges::transform(ranges, it->second, ranges.begin(),
                             [](const ValueRange& a, const ValueRange& b) {
                               return ValueRange{std::min(a.low, b.low), std::max(a.high, b.high)};
                             });
      readers.insert(readers.end(), of_value.begin(), of_value.end());
    }
    if (writers.empty() || readers.empty()) return false;
    if (Node* prelu = OnlyPRelu(writers[0]->outputs[0])) {
      TurnChannels(graph_, *writers[0], *prelu, readers, ranges);
    }
    const std::vector<double> scales = ChooseScales(graph_, ranges, readers);
    std::vector<double> inverse, none(scales.size(), 0);
    for (const double s : scales) inverse.push_back(1 / s);
    for (Node* node : writers) ScaleOutputs(graph_, *node, inverse, none, ".equalized");
    for (const ChannelReader& reader : readers) ScaleWeights(graph_, reader, scales);
    return true;
  }

  // The PRelu with a slope for each channel that alone reads `value`, and whose result convolutions
  // alone read; else null.
  Node* OnlyPRelu(ValueId value) {
    const auto& consumers = consumers_[static_cast<std::size_t>(value)];
    if (consumers.size() != 1) return nullptr;
    Node& node = graph_.nodes[static_cast<std::size_t>(consumers[0])];
    if (node.op.type != "PRelu" || node.inputs[0] != value || ShapeOf(value) == nullptr) {
      return nullptr;
    }
    const Tensor* slope = graph_.Constant(node.inputs[1]);
    const std::int64_t channels = (*ShapeOf(value))[1];
    if (slope == nullptr || slope->size() != channels || slope->shape().rank() < 3 ||
        slope->shape()[slope->shape().rank() - 3] != channels) {
      return nullptr;
    }
    const bool ends_there =
        std::ranges::all_of(consumers_[static_cast<std::size_t>(node.outputs[0])], [&](int n) {
          const Node& reader = graph_.nodes[static_cast<std::size_t>(n)];
          return HasFloatWeights(graph_, reader) || JoinsChannels(reader);
        });
    return ends_there ? &node : nullptr;
  }

  // Whether a node is a product of two maps: computed in float, and so is what it alone reads.
  bool IsProduct(const Node& node) const {
    if (node.op.type != "Mul") return false;
    const Shape* y = ShapeOf(node.outputs[0]);
    return y != nullptr && std::ranges::all_of(node.inputs, [&](ValueId v) {
             return graph_.Constant(v) == nullptr && ShapeOf(v) != nullptr && *ShapeOf(v) == *y;
           });
  }
  bool IsUnderProduct(const Node& node) const {
    if (IsProduct(node)) return true;
    if (node.op.type != "Add" && node.op.type != "Sigmoid") return false;
    const auto& readers = consumers_[static_cast<std::size_t>(node.outputs[0])];
    return !readers.empty() && !graph_.IsOutput(node.outputs[0]) &&
           std::ranges::all_of(readers, [&](int n) {
             return IsProduct(graph_.nodes[static_cast<std::size_t>(n)]);
           });
  }

  // Maps that are there in float anyway, as the product of two maps is, or as others need them:
  // convolutions read copies of them that are divided by the channels' scales.
  bool IsFloatMap(const Node& producer) {
    const ValueId v = producer.outputs[0];
    if (ShapeOf(v) == nullptr || graph_.IsOutput(v) || (*ShapeOf(v))[2] * (*ShapeOf(v))[3] == 1) {
      return false;
    }
    bool has_float_reader = false;
    for (const int n : consumers_[static_cast<std::size_t>(v)]) {
      const Node& reader = graph_.nodes[static_cast<std::size_t>(n)];
      if (IsUnderProduct(reader)) {
        has_float_reader = true;
      } else if (!HasFloatWeights(graph_, reader) && !JoinsChannels(reader)) {
        return false;
      }
    }
    return IsProduct(producer) || (HasFloatWeights(graph_, producer) && has_float_reader);
  }

  int ScaleFloatMaps() {
    std::map<std::size_t, Node> copies;  // by the nodes that they follow
    std::map<ValueId, ValueId> copy_of;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ValueId v = graph_.nodes[n].outputs[0];
      if (v == kNoValue || !IsFixed(v) || !IsFloatMap(graph_.nodes[n])) continue;
      const std::vector<ChannelReader> readers = Readers(v);
      const auto ranges = ranges_.find(v);
      if (readers.empty() || ranges == ranges_.end()) continue;
      const std::vector<double> scales = ChooseScales(graph_, ranges->second, readers);
      for (const ChannelReader& reader : readers) ScaleWeights(graph_, reader, scales);
      const Node& copy = copies.emplace(n, DividedCopy(v, scales)).first->second;
      copy_of[v] = copy.outputs[0];
    }
    std::vector<bool> reads_copies;
    for (const Node& node : graph_.nodes) {
      reads_copies.push_back(HasFloatWeights(graph_, node) || JoinsChannels(node));
    }
    std::vector<Node> nodes;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      nodes.push_back(std::move(graph_.nodes[n]));
      for (ValueId& v : nodes.back().inputs) {
        if (reads_copies[n] && copy_of.contains(v)) v = copy_of.at(v);
      }
      if (copies.contains(n)) nodes.push_back(std::move(copies.at(n)));
    }
    graph_.nodes = std::move(nodes);
    return static_cast<int>(copies.size());
  }

  Node DividedCopy(ValueId v, const std::vector<double>& scales) {
    const std::string name = StrCat(graph_.value(v).name, ".scaled");
    Tensor inverse(DType::kFloat32, {static_cast<std::int64_t>(scales.size()), 1, 1});
    std::ranges::transform(scales, inverse.data<float>(),
                           [](double s) { return static_cast<float>(1 / s); });
    Node mul;
    mul.op.name = name;
    mul.op.type = "Mul";
    mul.op.opset = graph_.opset;
    mul.def = FindOp(mul.op.type);
    mul.inputs = {v, graph_.AddConstant(StrCat(name, ".factors"), std::move(inverse))};
    mul.outputs = {graph_.AddValue(name)};
    return mul;
  }

  Graph& graph_;
  const Graph& shapes_;
  const ChannelRanges& ranges_;
  const std::vector<std::vector<int>> consumers_;
  std::vector<int> sets_;
  std::vector<bool> fixed_;
  std::set<ValueId> closed_;  // results of Concats that do not join channels after all
};

}  // namespace

int EqualizeChannels(Graph& graph, const Graph& shapes, const ChannelRanges& ranges) {
  return Equalizer(graph, shapes, ranges).Run();
}

}  // namespace tessera
