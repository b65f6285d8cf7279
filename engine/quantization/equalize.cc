#include "engine/quantization/equalize.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string_view>

#include "engine/passes/conv_fusion.h"
#include "ops/conv.h"

namespace tessera {
namespace {

// How much of a channel's excess goes into the weights that read it; the rest stays, as weights
// have a common step as well. Those of depthwise convolutions have a step for each channel and take
// all.
constexpr double kDenseShare = 0.8;
constexpr double kMostScale = 256;

std::int64_t Groups(const Node& conv) { return conv.op.attributes.Int("group", 1); }

class Equalizer {
 public:
  Equalizer(Graph& graph, const Graph& shapes,
            const std::map<ValueId, std::vector<double>>& magnitudes)
      : graph_(graph),
        shapes_(shapes),
        magnitudes_(magnitudes),
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
    return count;
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
      for (ValueId v : node.inputs) Fix(v);
      for (ValueId v : node.outputs) Fix(v);
    }
  }

  // The largest weight that reads each input channel, relative to the largest of its output
  // channel, which sets the step.
  static void AddWeightRanges(const Tensor& w, std::int64_t groups, std::vector<double>& ranges) {
    const Shape& s = w.shape();
    const std::int64_t per_group = s[1], kernel = s.NumElements(2, s.rank());
    const std::int64_t outputs = s[0] / groups;
    for (std::int64_t o = 0; o < s[0]; ++o) {
      const float* row = w.data<float>() + o * per_group * kernel;
      double largest = 0;
      for (std::int64_t k = 0; k < per_group * kernel; ++k) {
        largest = std::max<double>(largest, std::abs(row[k]));
      }
      if (largest == 0) continue;
      for (std::int64_t i = 0; i < per_group; ++i) {
        double& range = ranges[static_cast<std::size_t>(o / outputs * per_group + i)];
        for (std::int64_t k = 0; k < kernel; ++k) {
          range = std::max(range, std::abs(row[i * kernel + k]) / largest);
        }
      }
    }
  }

  bool Scale(int root) {
    std::vector<double> activation, weight;
    std::vector<Node*> writers, readers;
    bool dense = false;
    for (Node& node : graph_.nodes) {
      if (!HasFloatWeights(graph_, node)) continue;
      if (Find(node.outputs[0]) == root) writers.push_back(&node);
      const ValueId x = node.inputs[0];
      if (Find(x) != root) continue;
      readers.push_back(&node);
      const auto it = magnitudes_.find(x);
      if (it == magnitudes_.end()) return false;
      activation.resize(it->second.size(), 0);
      weight.resize(it->second.size(), 0);
      for (std::size_t c = 0; c < activation.size(); ++c) {
        activation[c] = std::max(activation[c], it->second[c]);
      }
      const Tensor& w = *graph_.Constant(node.inputs[1]);
      AddWeightRanges(w, Groups(node), weight);
      dense = dense || w.shape()[1] > 1;
    }
    if (writers.empty() || readers.empty()) return false;
    const std::vector<double> scales = Scales(activation, weight, dense);
    for (Node* node : writers) ScaleWriter(*node, scales);
    for (Node* node : readers) ScaleReader(*node, scales);
    return true;
  }

  static std::vector<double> Scales(const std::vector<double>& activation,
                                    const std::vector<double>& weight, bool dense) {
    const double share = dense ? kDenseShare : 1;
    std::vector<double> scales(activation.size(), 0);
    double log_sum = 0, alive = 0;
    for (std::size_t c = 0; c < scales.size(); ++c) {
      if (activation[c] <= 0 || weight[c] <= 0) continue;  // a dead channel
      scales[c] = std::pow(activation[c], share) / std::pow(weight[c], 1 - share);
      log_sum += std::log(scales[c]);
      ++alive;
    }
    const double mean = alive > 0 ? std::exp(log_sum / alive) : 1;
    for (double& s : scales) s = s == 0 ? 1 : std::clamp(s / mean, 1 / kMostScale, kMostScale);
    return scales;
  }

  void ScaleWriter(Node& node, const std::vector<double>& scales) {
    std::vector<double> inverse, none(scales.size(), 0);
    for (const double s : scales) inverse.push_back(1 / s);
    ScaleOutputs(graph_, node, inverse, none, ".equalized");
  }

  void ScaleReader(Node& node, const std::vector<double>& scales) {
    Tensor w = graph_.Constant(node.inputs[1])->Clone();
    const Shape& s = w.shape();
    const std::int64_t per_group = s[1], kernel = s.NumElements(2, s.rank());
    const std::int64_t outputs = s[0] / Groups(node);
    for (std::int64_t o = 0; o < s[0]; ++o) {
      for (std::int64_t i = 0; i < per_group; ++i) {
        const double scale = scales[static_cast<std::size_t>(o / outputs * per_group + i)];
        float* at = w.data<float>() + (o * per_group + i) * kernel;
        for (std::int64_t k = 0; k < kernel; ++k) at[k] = static_cast<float>(at[k] * scale);
      }
    }
    node.inputs[1] = graph_.AddConstant(StrCat(node.op.name, ".weights.scaled"), std::move(w));
  }

  Graph& graph_;
  const Graph& shapes_;
  const std::map<ValueId, std::vector<double>>& magnitudes_;
  std::vector<int> sets_;
  std::vector<bool> fixed_;
};

}  // namespace

int EqualizeChannels(Graph& graph, const Graph& shapes,
                     const std::map<ValueId, std::vector<double>>& magnitudes) {
  return Equalizer(graph, shapes, magnitudes).Run();
}

}  // namespace tessera
