#include "engine/quantization/channel_scales.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/passes/conv_fusion.h"

namespace tessera {
namespace {

// How much of a channel's excess goes into the weights that read it. Those of depthwise
// convolutions have a step for each channel and take all.
constexpr double kDenseShare = 0.8;
constexpr double kMostScale = 256;  // from the mean

// Where the weights lie that read channel c of the reader's value, for each output channel.
struct WeightRows {
  WeightRows(const ChannelReader& reader, const Shape& weights)
      : first(reader.first),
        per_group(weights[1]),
        kernel(weights.NumElements(2, weights.rank())),
        outputs(weights[0] / reader.conv->op.attributes.Int("group", 1)) {}

  // Calls visit(c, offset of `kernel` weights) for those of output channel o.
  template <typename Visit>
  void ForEach(std::int64_t o, std::size_t channels, Visit&& visit) const {
    for (std::int64_t i = 0; i < per_group; ++i) {
      const std::int64_t c = o / outputs * per_group + i - first;
      if (c >= 0 && c < static_cast<std::int64_t>(channels)) {
        visit(static_cast<std::size_t>(c), (o * per_group + i) * kernel);
      }
    }
  }

  std::int64_t first, per_group, kernel, outputs;
};

// The largest weight that reads each channel, relative to the largest of its output channel, which
// sets the step.
void AddWeightRanges(const Tensor& w, const ChannelReader& reader, std::vector<double>& ranges) {
  const WeightRows rows(reader, w.shape());
  const auto largest = [](const float* weights, std::int64_t n) {
    double most = 0;
    for (std::int64_t k = 0; k < n; ++k) most = std::max<double>(most, std::abs(weights[k]));
    return most;
  };
  const std::int64_t per_output = rows.per_group * rows.kernel;
  for (std::int64_t o = 0; o < w.shape()[0]; ++o) {
    const double whole = largest(w.data<float>() + o * per_output, per_output);
    if (whole == 0) continue;
    rows.ForEach(o, ranges.size(), [&](std::size_t c, std::int64_t at) {
      ranges[c] = std::max(ranges[c], largest(w.data<float>() + at, rows.kernel) / whole);
    });
  }
}

// For each channel the sum of the squares of the weights that read it: how much its errors matter.
std::vector<double> ReaderNorms(const Graph& graph, std::size_t channels,
                                std::span<const ChannelReader> readers) {
  std::vector<double> sums(channels, 0);
  for (const ChannelReader& reader : readers) {
    const Tensor& w = *graph.Constant(reader.conv->inputs[1]);
    const WeightRows rows(reader, w.shape());
    for (std::int64_t o = 0; o < w.shape()[0]; ++o) {
      rows.ForEach(o, channels, [&](std::size_t c, std::int64_t at) {
        for (std::int64_t k = at; k < at + rows.kernel; ++k) {
          sums[c] += static_cast<double>(w.data<float>()[k]) * w.data<float>()[k];
        }
      });
    }
  }
  return sums;
}

// What a channel has to be divided by to lie in [-ratio, 1].
double Magnitude(const ValueRange& range, double ratio) {
  return std::max<double>(range.high, -range.low / ratio);
}

// The same for all channels, with the ratio that leaves the least error: they share steps of
// (1 + ratio) / 255.
std::vector<double> Magnitudes(std::span<const ValueRange> ranges,
                               const std::vector<double>& importance) {
  constexpr int kRatios = 64;
  constexpr double kMost = 64;
  double best = 1, least = std::numeric_limits<double>::infinity();
  for (int i = -kRatios; i <= kRatios; ++i) {
    const double ratio = std::pow(kMost, static_cast<double>(i) / kRatios);
    double error = 0;
    for (std::size_t c = 0; c < ranges.size(); ++c) {
      const double step = Magnitude(ranges[c], ratio) * (1 + ratio);
      error += importance[c] * step * step;
    }
    if (error < least) {
      least = error;
      best = ratio;
    }
  }
  std::vector<double> magnitudes;
  for (const ValueRange& range : ranges) magnitudes.push_back(Magnitude(range, best));
  return magnitudes;
}

}  // namespace

std::vector<double> ChooseScales(const Graph& graph, std::span<const ValueRange> ranges,
                                 std::span<const ChannelReader> readers) {
  const std::vector<double> magnitudes =
      Magnitudes(ranges, ReaderNorms(graph, ranges.size(), readers));
  std::vector<double> weights(magnitudes.size(), 0), scales(magnitudes.size(), 0);
  bool dense = false;
  for (const ChannelReader& reader : readers) {
    const Tensor& w = *graph.Constant(reader.conv->inputs[1]);
    AddWeightRanges(w, reader, weights);
    dense = dense || w.shape()[1] > 1;
  }
  const double share = dense ? kDenseShare : 1;
  double log_sum = 0, alive = 0;
  for (std::size_t c = 0; c < scales.size(); ++c) {
    if (magnitudes[c] <= 0 || weights[c] <= 0) continue;  // a dead channel
    scales[c] = std::pow(magnitudes[c], share) / std::pow(weights[c], 1 - share);
    log_sum += std::log(scales[c]);
    ++alive;
  }
  const double mean = alive > 0 ? std::exp(log_sum / alive) : 1;
  double largest = 0;
  for (std::size_t c = 0; c < scales.size(); ++c) {
    scales[c] = scales[c] == 0 ? 1 : std::clamp(scales[c] / mean, 1 / kMostScale, kMostScale);
    largest = std::max(largest, magnitudes[c] / scales[c]);
  }
  for (double& s : scales) s *= largest > 0 ? largest : 1;
  return scales;
}

void ScaleWeights(Graph& graph, const ChannelReader& reader, std::span<const double> scales) {
  Node& conv = *reader.conv;
  Tensor w = graph.Constant(conv.inputs[1])->Clone();
  const WeightRows rows(reader, w.shape());
  for (std::int64_t o = 0; o < w.shape()[0]; ++o) {
    rows.ForEach(o, scales.size(), [&](std::size_t c, std::int64_t at) {
      float* values = w.data<float>() + at;
      for (std::int64_t k = 0; k < rows.kernel; ++k) {
        values[k] = static_cast<float>(values[k] * scales[c]);
      }
    });
  }
  conv.inputs[1] = graph.AddConstant(StrCat(conv.op.name, ".weights.scaled"), std::move(w));
}

void TurnChannels(Graph& graph, Node& conv, Node& prelu, std::span<const ChannelReader> readers,
                  std::span<ValueRange> ranges) {
  constexpr float kLeastSlope = 0.01f;
  Tensor slope = graph.Constant(prelu.inputs[1])->Clone();
  std::vector<double> before(ranges.size(), 1), after(ranges.size(), 1), none(ranges.size(), 0);
  for (std::size_t c = 0; c < ranges.size(); ++c) {
    float& a = slope.data<float>()[c];
    if (a < kLeastSlope || -ranges[c].low <= ranges[c].high) continue;
    before[c] = -a;
    after[c] = -1;
    a = 1 / a;
    ranges[c] = {-ranges[c].high, -ranges[c].low};
  }
  ScaleOutputs(graph, conv, before, none, ".turned");
  prelu.inputs[1] = graph.AddConstant(StrCat(prelu.op.name, ".slope.turned"), std::move(slope));
  for (const ChannelReader& reader : readers) ScaleWeights(graph, reader, after);
}

}  // namespace tessera
