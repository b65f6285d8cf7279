// Convolutions absorb what multiplies, divides, raises or lowers their results, channel by channel,
// or their whole input. Neighbours only: a chain is taken up link by link.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"

namespace tessera {
namespace {

// y = x * scale + shift, a number for each channel.
struct ScaleShift {
  ValueId x = kNoValue;
  std::vector<double> scale, shift;
};

// The values of a float32 constant for each of `channels` channels of a tensor of rank `rank` that
// it is broadcast to, if it differs in nothing else and cannot change the tensor's shape.
std::optional<std::vector<double>> PerChannel(const Tensor& t, std::int64_t channels, int rank) {
  const Shape& s = t.shape();
  const int axis = s.rank() - (rank - 1);  // of the channels, in the constant
  if (t.dtype() != DType::kFloat32 || s.rank() > rank) return std::nullopt;
  for (int d = 0; d < s.rank(); ++d) {
    if (s[d] != 1 && !(d == axis && s[d] == channels)) return std::nullopt;
  }
  std::vector<double> values;
  for (std::int64_t c = 0; c < channels; ++c) {
    values.push_back(static_cast<double>(t.data<float>()[t.size() == 1 ? 0 : c]));
    if (!std::isfinite(values.back())) return std::nullopt;
  }
  return values;
}

std::optional<ScaleShift> AsScaleShift(const Graph& graph, const Node& node, std::int64_t channels,
                                       int rank) {
  const std::string& type = node.op.type;
  if (type != "Add" && type != "Sub" && type != "Mul" && type != "Div") return std::nullopt;
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    const Tensor* constant = graph.Constant(node.inputs[i]);
    if (constant == nullptr) continue;
    const auto values = PerChannel(*constant, channels, rank);
    if (!values) return std::nullopt;
    const bool constant_first = i == 0;
    ScaleShift out{node.inputs[1 - i], std::vector<double>(values->size(), 1),
                   std::vector<double>(values->size(), 0)};
    for (std::size_t c = 0; c < values->size(); ++c) {
      const double value = (*values)[c];
      if (type == "Mul") {
        out.scale[c] = value;
      } else if (type == "Div") {
        if (constant_first || value == 0) return std::nullopt;
        out.scale[c] = 1 / value;
      } else if (type == "Add") {
        out.shift[c] = value;
      } else {
        out.scale[c] = constant_first ? -1 : 1;
        out.shift[c] = constant_first ? value : -value;
      }
    }
    return out;
  }
  return std::nullopt;
}

bool IsOnlyRead(const Graph& graph, ValueId value, const std::vector<std::vector<int>>& consumers) {
  return consumers[static_cast<std::size_t>(value)].size() == 1 && !graph.IsOutput(value);
}

bool IsPadded(const Graph& graph, const Node& conv) {
  return AtNode(graph, conv, [&] {
    const std::string auto_pad = conv.op.attributes.String("auto_pad", "NOTSET");
    const std::vector<std::int64_t> pads = conv.op.attributes.Ints("pads");
    return (auto_pad != "NOTSET" && auto_pad != "VALID") ||
           std::any_of(pads.begin(), pads.end(), [](std::int64_t p) { return p != 0; });
  });
}

// conv, then the node that reads its output.
bool FoldAfter(Graph& graph, Node& conv, const std::vector<std::vector<int>>& consumers) {
  const ValueId y = conv.outputs[0];
  if (!IsOnlyRead(graph, y, consumers)) return false;
  Node& next = graph.nodes[static_cast<std::size_t>(consumers[static_cast<std::size_t>(y)][0])];
  const Shape& w = graph.Constant(conv.inputs[1])->shape();
  const auto fold = AsScaleShift(graph, next, w[0], w.rank());
  if (!fold || fold->x != y) return false;
  ScaleOutputs(graph, conv, fold->scale, fold->shift, ".scaled");
  std::swap(conv.outputs[0], next.outputs[0]);
  next.inputs.clear();  // dead
  return true;
}

// The node that makes conv's input, then conv. One number for all channels: of a shape that is not
// known yet, others may stretch a single channel to several. In the zeros of the padding there is
// nothing to shift.
bool FoldBefore(Graph& graph, Node& conv, const std::vector<int>& producers,
                const std::vector<std::vector<int>>& consumers) {
  const auto x = static_cast<std::size_t>(conv.inputs[0]);
  if (producers[x] < 0 || !IsOnlyRead(graph, conv.inputs[0], consumers)) return false;
  Node& previous = graph.nodes[static_cast<std::size_t>(producers[x])];
  const auto fold = AsScaleShift(graph, previous, /*channels=*/1, /*rank=*/1);
  if (!fold || (fold->shift[0] != 0 && IsPadded(graph, conv))) return false;
  const Tensor& w = *graph.Constant(conv.inputs[1]);
  const std::int64_t channels = w.shape()[0], per_channel = channels == 0 ? 0 : w.size() / channels;
  // As if after conv: scale * conv(x) with an unscaled bias, plus shift * (sum of the weights).
  const bool has_bias = conv.inputs.size() > kConvBias && conv.inputs[kConvBias] != kNoValue;
  const float* bias = has_bias ? graph.Constant(conv.inputs[kConvBias])->data<float>() : nullptr;
  std::vector<double> scale, shift;
  for (std::int64_t o = 0; o < channels; ++o) {
    const float* row = w.data<float>() + o * per_channel;
    const double sum = std::accumulate(row, row + per_channel, 0.0);
    const double old_bias = bias == nullptr ? 0.0 : static_cast<double>(bias[o]);
    scale.push_back(fold->scale[0]);
    shift.push_back(fold->shift[0] * sum + old_bias * (1 - fold->scale[0]));
  }
  ScaleOutputs(graph, conv, scale, shift, ".scaled");
  conv.inputs[0] = fold->x;
  previous.inputs.clear();  // dead
  return true;
}

}  // namespace

int FoldScaleShift(Graph& graph) {
  int rewrites = 0;
  auto producers = graph.Producers();
  auto consumers = graph.Consumers();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& conv = graph.nodes[n];
    if (!HasFloatWeights(graph, conv)) continue;
    while (FoldAfter(graph, conv, consumers) || FoldBefore(graph, conv, producers, consumers)) {
      producers = graph.Producers();
      consumers = graph.Consumers();
      ++rewrites;
    }
  }
  return rewrites;
}

}  // namespace tessera
