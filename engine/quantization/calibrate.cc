#include "engine/quantization/calibrate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/passes/conv_fusion.h"
#include "engine/quantization/sample_runner.h"

namespace tessera {
namespace {

// Calls visit(channel, values) for each channel of each image of NCHW tensors.
template <typename Visit>
void ForEachPlane(std::span<const Tensor* const> tensors, Visit&& visit) {
  for (const Tensor* t : tensors) {
    const Shape& s = t->shape();
    const std::int64_t plane = s[2] * s[3];
    for (std::int64_t i = 0; i < s[0] * s[1]; ++i) {
      visit(static_cast<std::size_t>(i % s[1]),
            std::span<const float>(t->data<float>() + i * plane, static_cast<std::size_t>(plane)));
    }
  }
}

std::vector<double> Means(std::span<const Tensor* const> tensors) {
  const auto channels = static_cast<std::size_t>(tensors[0]->shape()[1]);
  std::vector<double> sums(channels, 0), counts(channels, 0);
  ForEachPlane(tensors, [&](std::size_t c, std::span<const float> values) {
    for (const float v : values) sums[c] += v;
    counts[c] += static_cast<double>(values.size());
  });
  for (std::size_t c = 0; c < channels; ++c) sums[c] /= std::max(counts[c], 1.0);
  return sums;
}

// For each channel the root of the sum of the squares of the weights that convolutions multiply it
// with, the mean over the channels being 1. (Not the squares: channels are cut off at the same
// pixels, and such errors add up.) Empty for values that no convolution reads.
std::map<ValueId, std::vector<double>> ChannelWeights(const Graph& graph) {
  std::map<ValueId, std::vector<double>> weights;
  for (const Node& node : graph.nodes) {
    if (!HasFloatWeights(graph, node)) continue;
    const Tensor& w = *graph.Constant(node.inputs[1]);
    const std::int64_t groups = node.op.attributes.Int("group", 1), per_group = w.shape()[1];
    const std::int64_t outputs = w.shape()[0] / groups;
    const std::int64_t taps = w.shape().NumElements(2, w.shape().rank());
    std::vector<double>& sums = weights[node.inputs[0]];
    sums.resize(static_cast<std::size_t>(groups * per_group), 0);
    for (std::int64_t i = 0; i < w.size(); ++i) {
      const std::int64_t o = i / (per_group * taps), c = i / taps % per_group;
      sums[static_cast<std::size_t>(o / outputs * per_group + c)] +=
          static_cast<double>(w.data<float>()[i]) * w.data<float>()[i];
    }
  }
  for (auto& [id, sums] : weights) {
    for (double& sum : sums) sum = std::sqrt(sum);
    const double mean =
        std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(sums.size());
    for (double& sum : sums) sum = mean > 0 ? sum / mean : 1;
  }
  return weights;
}

bool AreFloats(std::span<const Tensor* const> tensors) {
  return std::ranges::all_of(tensors, [](const Tensor* t) {
    return t->view().present() && t->dtype() == DType::kFloat32;
  });
}

// 0 if they are no NCHW maps.
std::int64_t MapChannels(std::span<const Tensor* const> tensors) {
  const std::int64_t channels = tensors[0]->shape().rank() == 4 ? tensors[0]->shape()[1] : 0;
  const bool are_maps = std::ranges::all_of(tensors, [&](const Tensor* t) {
    return t->shape().rank() == 4 && t->shape()[1] == channels;
  });
  return are_maps ? channels : 0;
}

std::vector<ValueRange> RangesOf(std::span<const Tensor* const> tensors, std::int64_t channels) {
  std::vector<ValueRange> ranges(static_cast<std::size_t>(channels));
  ForEachPlane(tensors, [&](std::size_t c, std::span<const float> values) {
    ValueRange range = ranges[c];
    for (const float v : values) {
      range.low = std::min(range.low, v);
      range.high = std::max(range.high, v);
    }
    ranges[c] = range;
  });
  return ranges;
}

void AddValue(ValueId id, std::span<const Tensor* const> tensors,
              const std::vector<double>* channel_weights, Calibration& calibration) {
  std::vector<WeightedValues> parts;
  const std::int64_t channels = MapChannels(tensors);
  if (channels == 0) {
    for (const Tensor* t : tensors) parts.push_back({t->values<float>()});
    calibration.histograms.emplace(id, Histogram(parts));
    return;
  }
  calibration.means.emplace(id, Means(tensors));
  ForEachPlane(tensors, [&](std::size_t c, std::span<const float> values) {
    parts.push_back({values, channel_weights == nullptr ? 1 : (*channel_weights)[c]});
  });
  calibration.histograms.emplace(id, Histogram(parts));
  calibration.ranges.emplace(id, RangesOf(tensors, channels));
}

// Calls visit(id, tensors) with each float32 value of the graph on all samples.
template <typename Visit>
void ForEachValue(const Graph& graph, std::span<const Sample> samples, Parallel& parallel,
                  Visit&& visit) {
  std::vector<const Tensor*> tensors;
  const auto call = [&](ValueId id) {
    if (!AreFloats(tensors)) return;
    try {
      visit(id, std::span<const Tensor* const>(tensors));
    } catch (const Error& e) {
      throw Error(StrCat(graph.file, ": tensor '", graph.value(id).name, "': ", e.what()));
    }
  };
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    tensors.clear();
    for (const Sample& s : samples) tensors.push_back(&s[i]);
    call(graph.inputs[i]);
  }
  RunNodes(graph, samples, parallel, {}, [&](const Node& node, std::span<Outputs> outputs) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      tensors.clear();
      for (const Outputs& o : outputs) tensors.push_back(&o[i]);
      call(node.outputs[i]);
    }
  });
}

}  // namespace

Calibration Calibrate(const Graph& graph, std::span<const Sample> samples, Parallel& parallel) {
  Calibration calibration;
  const auto channel_weights = ChannelWeights(graph);
  ForEachValue(graph, samples, parallel, [&](ValueId id, std::span<const Tensor* const> tensors) {
    const auto it = channel_weights.find(id);
    AddValue(id, tensors, it == channel_weights.end() ? nullptr : &it->second, calibration);
  });
  return calibration;
}

ChannelRanges FindChannelRanges(const Graph& graph, std::span<const Sample> samples,
                                Parallel& parallel) {
  ChannelRanges ranges;
  ForEachValue(graph, samples, parallel, [&](ValueId id, std::span<const Tensor* const> tensors) {
    const std::int64_t channels = MapChannels(tensors);
    if (channels == 0) return;
    std::vector<ValueRange> found = RangesOf(tensors, channels);
    Require(std::ranges::all_of(
                found,
                [](const ValueRange& r) { return std::isfinite(r.low) && std::isfinite(r.high); }),
            "a value is not finite");
    ranges.emplace(id, std::move(found));
  });
  return ranges;
}

std::vector<double> ChannelMeans(std::span<const Outputs> outputs) {
  std::vector<const Tensor*> tensors;
  for (const Outputs& o : outputs) tensors.push_back(&o[0]);
  return Means(tensors);
}

}  // namespace tessera
