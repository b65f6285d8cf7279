// A transposed convolution of stride s computes output pixels of s * s phases (places modulo s),
// each with the taps of its own phase: an ordinary convolution of the input. Here one convolution
// computes all phases as channels of their own, and InterleavePhases puts them into their places.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/passes/conv_fusion.h"
#include "engine/passes/passes.h"
#include "ops/conv.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

// How one axis is split. Output element o is element q of phase r, where o + crop_begin =
// q * phases + r.
struct SplitAxis {
  std::int64_t phases, crop_begin, crop_end;
  // Of the convolution: tap t reads input element q + first + t * dilation.
  std::int64_t first, taps, dilation, pad_begin, pad_end;

  // The tap that tap k of the transposed convolution becomes for phase r; none if it is not of that
  // phase.
  std::optional<std::int64_t> Tap(const WindowAxis& axis, std::int64_t r, std::int64_t k) const {
    const std::int64_t distance = r - crop_begin + axis.pad_begin - k * axis.dilation;
    if (distance % phases != 0) return std::nullopt;
    return (distance / phases - first) / dilation;
  }
};

SplitAxis Split(const WindowAxis& axis, std::int64_t crop_begin) {
  SplitAxis split{.phases = axis.stride,
                  .crop_begin = crop_begin,
                  .crop_end = 0,
                  .first = 0,
                  .taps = 0,
                  .dilation = 1,
                  .pad_begin = 0,
                  .pad_end = 0};
  std::vector<std::int64_t> read;  // input elements that are read, relative to q
  for (std::int64_t r = 0; r < axis.stride; ++r) {
    for (std::int64_t k = 0; k < axis.kernel; ++k) {
      if (const auto tap = split.Tap(axis, r, k)) read.push_back(*tap);
    }
  }
  // The pads of the convolution are not negative.
  const std::int64_t first = std::min<std::int64_t>(0, *std::min_element(read.begin(), read.end()));
  const std::int64_t last = std::max(first, *std::max_element(read.begin(), read.end()));
  std::int64_t step = last - first;
  for (const std::int64_t i : read) step = std::gcd(step, i - first);
  split.first = first;
  split.dilation = std::max<std::int64_t>(1, step);
  split.taps = (last - first) / split.dilation + 1;
  split.pad_begin = -first;

  // What the output has more than stride * (in - 1) elements is the same for every size.
  const std::int64_t beyond = axis.out - axis.stride * (axis.in - 1) + crop_begin;
  const std::int64_t rows =
      beyond <= 0 ? -(-beyond / axis.stride) : (beyond + axis.stride - 1) / axis.stride;
  split.pad_end = last - 1 + rows;
  split.crop_end = rows * axis.stride - beyond;
  if (split.pad_end < 0) {  // what is read of the input at most, and more is cropped
    split.crop_end -= split.pad_end * axis.stride;
    split.pad_end = 0;
  }
  return split;
}

// Any crop smaller than the stride will do. The fewest taps are best, unless three in each axis
// make a convolution that Winograd's kernel computes with fewer multiplications. With many channels
// that pays even where two taps would do (64 to 64 channels, 3x3, stride 2: 4.5 ms instead of 6.5
// ms).
std::array<SplitAxis, 2> ChooseSplit(const ConvNd& conv) {
  constexpr std::int64_t kManyChannels = 48;
  const std::int64_t least_taps =
      std::min(conv.in_channels, conv.out_channels) >= kManyChannels ? 2 : 3;
  std::array<SplitAxis, 2> fewest{}, winograd{};
  bool all_three = conv.groups == 1;
  for (std::size_t a = 0; a < 2; ++a) {
    bool three = false;
    for (std::int64_t crop = 0; crop < conv.axes[a].stride; ++crop) {
      SplitAxis split = Split(conv.axes[a], crop);
      if (crop == 0 || split.taps < fewest[a].taps) fewest[a] = split;
      if (three || split.dilation != 1 || split.taps < least_taps) continue;
      split.pad_end += 3 - split.taps;
      split.taps = std::max<std::int64_t>(3, split.taps);
      if (split.taps == 3 && split.pad_begin <= 1 && split.pad_end <= 2) {
        winograd[a] = split;
        three = true;
      }
    }
    all_three = all_three && three;
  }
  if (!all_three) return fewest;
  constexpr std::int64_t kSize = 64;  // of a picture like many
  const ConvParams p{.batch = 1,
                     .in_channels = conv.in_channels,
                     .in_height = kSize,
                     .in_width = kSize,
                     .out_channels = conv.out_channels * fewest[0].phases * fewest[1].phases,
                     .out_height = kSize,
                     .out_width = kSize,
                     .kernel_h = 3,
                     .kernel_w = 3,
                     .stride_h = 1,
                     .stride_w = 1,
                     .dilation_h = 1,
                     .dilation_w = 1,
                     .pad_top = 1,
                     .pad_left = 1,
                     .pad_bottom = 1,
                     .pad_right = 1,
                     .groups = 1,
                     .epilogue = {}};
  return ChooseWinogradTile(p) != 0 ? winograd : fewest;
}

// Where the convolution's output channels are.
struct Channels {
  std::int64_t count, phase_stride, channel_stride;
};

Channels ChooseChannels(const ConvNd& conv, std::int64_t phases) {
  const std::int64_t lanes = FloatLanes(), m = conv.out_channels;
  const std::int64_t padded = (m + lanes - 1) / lanes * lanes;
  // Whole blocks for each phase stay blocked when they are interleaved.
  if (conv.groups == 1 && padded * 3 <= m * 4) return {padded * phases, padded, 1};
  return {m * phases, 1, phases};
}

std::optional<ConvNd> AsSplittable(const Graph& graph, const Node& node) {
  if (node.op.type != "ConvTranspose") return std::nullopt;
  const Tensor* w = graph.Constant(node.inputs[1]);
  if (w == nullptr || w->dtype() != DType::kFloat32 || w->shape().rank() != 4) return std::nullopt;
  if (node.inputs.size() > kConvBias && node.inputs[kConvBias] != kNoValue) {
    const Tensor* bias = graph.Constant(node.inputs[kConvBias]);
    if (bias == nullptr || bias->dtype() != DType::kFloat32) return std::nullopt;
  }
  try {
    // With output_shape, the pads depend on the size of the input.
    if (!node.op.attributes.Ints("output_shape").empty()) return std::nullopt;
    constexpr std::int64_t kSize = 1 << 12;  // more than any pads
    const Shape& s = w->shape();
    ConvNd conv = ReadConvTranspose(node.op, {1, s[0], kSize, kSize}, s);
    constexpr double kMaxWeights = 1 << 26, kMaxStride = 64;
    double weights = static_cast<double>(s[0]) * static_cast<double>(s[1]);
    for (const WindowAxis& axis : conv.axes) {
      if (static_cast<double>(axis.stride) > kMaxStride) return std::nullopt;
      weights *= static_cast<double>(axis.stride + axis.extent());
    }
    if (weights > kMaxWeights) return std::nullopt;
    return conv;
  } catch (const Error&) {
    return std::nullopt;  // shape inference will say what is wrong, with the shapes
  }
}

Tensor SplitWeights(const ConvNd& conv, const std::array<SplitAxis, 2>& axes,
                    const Channels& channels, const Tensor& weights) {
  const std::int64_t group_in = conv.in_channels / conv.groups;
  const std::int64_t group_out = conv.out_channels / conv.groups;
  const std::int64_t height = conv.axes[0].kernel, width = conv.axes[1].kernel;
  Tensor result(DType::kFloat32, {channels.count, group_in, axes[0].taps, axes[1].taps});
  std::fill_n(result.data<float>(), result.size(), 0.0f);
  for (std::int64_t m = 0; m < conv.out_channels; ++m) {
    for (std::int64_t ry = 0; ry < axes[0].phases; ++ry) {
      for (std::int64_t rx = 0; rx < axes[1].phases; ++rx) {
        const std::int64_t channel =
            m * channels.channel_stride + (ry * axes[1].phases + rx) * channels.phase_stride;
        for (std::int64_t ky = 0; ky < height; ++ky) {
          const auto ty = axes[0].Tap(conv.axes[0], ry, ky);
          for (std::int64_t kx = 0; ty && kx < width; ++kx) {
            const auto tx = axes[1].Tap(conv.axes[1], rx, kx);
            for (std::int64_t c = 0; tx && c < group_in; ++c) {
              const std::int64_t from =
                  ((m / group_out * group_in + c) * group_out + m % group_out) * height * width;
              result.data<float>()[((channel * group_in + c) * axes[0].taps + *ty) * axes[1].taps +
                                   *tx] = weights.data<float>()[from + ky * width + kx];
            }
          }
        }
      }
    }
  }
  return result;
}

// A value for each output channel of the convolution, from one for each channel of the result.
Tensor SplitChannelValues(const Channels& channels, std::int64_t phases, const Tensor& values) {
  Tensor result(DType::kFloat32, {channels.count});
  std::fill_n(result.data<float>(), result.size(), 0.0f);
  for (std::int64_t m = 0; m < values.size(); ++m) {
    for (std::int64_t phase = 0; phase < phases; ++phase) {
      result.data<float>()[m * channels.channel_stride + phase * channels.phase_stride] =
          values.data<float>()[m];
    }
  }
  return result;
}

// Whether a node does to each channel what does not depend on the place in the picture. Its
// constant operands of one value a channel become those of the phases' channels.
bool MoveBeforeInterleaving(Graph& graph, Node& node, const Node& interleave, std::int64_t count) {
  const std::string& type = node.op.type;
  for (const char* name : {"Relu", "LeakyRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Clip"}) {
    if (type == name) return true;
  }
  const bool batch_norm = type == "BatchNormalization" && node.outputs.size() == 1;
  if (!batch_norm && type != "PRelu") return false;
  const Attributes& a = interleave.op.attributes;
  const Channels channels{count, a.Int("phase_stride", 1), a.Int("channel_stride", 1)};
  const std::vector<std::int64_t> phases = a.Ints("phases");
  std::vector<Tensor> values;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const Tensor* t = graph.Constant(node.inputs[i]);
    if (t == nullptr || t->dtype() != DType::kFloat32 || t->size() != a.Int("channels", 0)) {
      return false;
    }
    const Shape& s = t->shape();
    if (!batch_norm && (s.rank() < 3 || s[s.rank() - 3] != t->size())) return false;
    Tensor split = SplitChannelValues(channels, phases[0] * phases[1], *t);
    if (!batch_norm) {
      Tensor slope(DType::kFloat32, {count, 1, 1});
      std::copy_n(split.data<float>(), count, slope.data<float>());
      split = std::move(slope);
    }
    values.push_back(std::move(split));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    node.inputs[i + 1] =
        graph.AddConstant(StrCat(graph.value(node.inputs[i + 1]).name, "_split_", node.op.name),
                          std::move(values[i]));
  }
  return true;
}

}  // namespace

int SplitConvTranspose(Graph& graph) {
  int rewrites = 0;
  const auto consumers = graph.Consumers();
  std::vector<Node> nodes;
  struct Made {
    std::size_t node;       // InterleavePhases
    std::int64_t channels;  // of its input
  };
  std::map<ValueId, Made> interleaved;  // by output
  for (Node& old : graph.nodes) {
    const std::optional<ConvNd> conv = AsSplittable(graph, old);
    if (!conv) {
      // Batch normalisation and activations come first, to be fused with the convolution.
      const auto it = old.inputs.empty() ? interleaved.end() : interleaved.find(old.inputs[0]);
      if (it != interleaved.end() && !graph.IsOutput(it->first) &&
          consumers[static_cast<std::size_t>(it->first)].size() == 1 &&
          MoveBeforeInterleaving(graph, old, nodes[it->second.node], it->second.channels)) {
        const Made made = it->second;
        Node interleave = nodes[made.node];
        Node moved = std::move(old);
        const ValueId output = moved.outputs[0];
        moved.inputs[0] = interleave.inputs[0];
        moved.outputs[0] = graph.AddValue(moved.op.name + ".phases");
        interleave.inputs[0] = moved.outputs[0];
        interleave.outputs[0] = output;
        interleaved.erase(it);
        // Where it is: its other operands (of Clip) may have been made after the convolution. The
        // old InterleavePhases is dead.
        nodes[made.node].outputs[0] = graph.AddValue(moved.op.name + ".unread");
        interleaved[output] = {nodes.size() + 1, made.channels};
        nodes.push_back(std::move(moved));
        nodes.push_back(std::move(interleave));
        continue;
      }
      nodes.push_back(std::move(old));
      continue;
    }
    const std::array<SplitAxis, 2> axes = ChooseSplit(*conv);
    const std::int64_t phases = axes[0].phases * axes[1].phases;
    const Channels channels = ChooseChannels(*conv, phases);
    Node node = std::move(old);
    const ValueId output = node.outputs[0];
    const Tensor* bias =
        node.inputs.size() > kConvBias ? graph.Constant(node.inputs[kConvBias]) : nullptr;
    if (bias != nullptr && bias->size() != conv->out_channels) {  // an error
      nodes.push_back(std::move(node));
      continue;
    }
    Tensor weights = SplitWeights(*conv, axes, channels, *graph.Constant(node.inputs[1]));
    std::optional<Tensor> biases;
    if (bias != nullptr) biases = SplitChannelValues(channels, phases, *bias);
    node.inputs = {node.inputs[0],
                   graph.AddConstant(node.op.name + ".weights_split", std::move(weights))};
    if (biases) {
      node.inputs.push_back(graph.AddConstant(node.op.name + ".bias_split", std::move(*biases)));
    }
    node.op.type = "Conv";
    node.def = FindOp(node.op.type);
    node.op.attributes = {};
    using Ints = std::vector<std::int64_t>;
    node.op.attributes.Set("group", conv->groups);
    node.op.attributes.Set("dilations", Ints{axes[0].dilation, axes[1].dilation});
    node.op.attributes.Set(
        "pads", Ints{axes[0].pad_begin, axes[1].pad_begin, axes[0].pad_end, axes[1].pad_end});
    const bool plain = phases == 1 && axes[0].crop_end == 0 && axes[1].crop_end == 0 &&
                       channels.count == conv->out_channels;
    if (plain) {
      nodes.push_back(std::move(node));
      ++rewrites;
      continue;
    }
    Node interleave;
    interleave.op.name = node.op.name + ".interleave";
    interleave.op.type = "InterleavePhases";
    interleave.op.opset = node.op.opset;
    interleave.def = FindOp(interleave.op.type);
    interleave.op.attributes.Set("channels", conv->out_channels);
    interleave.op.attributes.Set("phases", Ints{axes[0].phases, axes[1].phases});
    interleave.op.attributes.Set(
        "crop", Ints{axes[0].crop_begin, axes[1].crop_begin, axes[0].crop_end, axes[1].crop_end});
    interleave.op.attributes.Set("phase_stride", channels.phase_stride);
    interleave.op.attributes.Set("channel_stride", channels.channel_stride);
    node.outputs[0] = graph.AddValue(node.op.name + ".phases");
    interleave.inputs = {node.outputs[0]};
    interleave.outputs = {output};
    interleaved[output] = {nodes.size() + 1, channels.count};
    nodes.push_back(std::move(node));
    nodes.push_back(std::move(interleave));
    ++rewrites;
  }
  graph.nodes = std::move(nodes);
  return rewrites;
}

}  // namespace tessera
