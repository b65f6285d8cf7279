#include "engine/quantization/calibrate.h"

#include <algorithm>
#include <cmath>

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

void AddValue(ValueId id, std::span<const Tensor* const> tensors, Calibration& calibration) {
  std::vector<std::span<const float>> parts;
  for (const Tensor* t : tensors) {
    if (!t->view().present() || t->dtype() != DType::kFloat32) return;
    parts.emplace_back(t->values<float>());
  }
  calibration.histograms.emplace(id, Histogram(parts));
  const std::int64_t channels = tensors[0]->shape().rank() == 4 ? tensors[0]->shape()[1] : 0;
  const bool are_maps = channels > 0 && std::ranges::all_of(tensors, [&](const Tensor* t) {
                          return t->shape().rank() == 4 && t->shape()[1] == channels;
                        });
  if (!are_maps) return;
  calibration.means.emplace(id, Means(tensors));
  std::vector<double> magnitudes(static_cast<std::size_t>(channels), 0);
  ForEachPlane(tensors, [&](std::size_t c, std::span<const float> values) {
    for (const float v : values) magnitudes[c] = std::max<double>(magnitudes[c], std::abs(v));
  });
  calibration.magnitudes.emplace(id, std::move(magnitudes));
}

}  // namespace

Calibration Calibrate(const Graph& graph, std::span<const Sample> samples, Parallel& parallel) {
  Calibration calibration;
  std::vector<const Tensor*> tensors;
  const auto add = [&](ValueId id) {
    try {
      AddValue(id, tensors, calibration);
    } catch (const Error& e) {
      throw Error(StrCat(graph.file, ": tensor '", graph.value(id).name, "': ", e.what()));
    }
  };
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    tensors.clear();
    for (const Sample& s : samples) tensors.push_back(&s[i]);
    add(graph.inputs[i]);
  }
  RunNodes(graph, samples, parallel, [&](const Node& node, std::span<Outputs> outputs) {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      tensors.clear();
      for (const Outputs& o : outputs) tensors.push_back(&o[i]);
      add(node.outputs[i]);
    }
  });
  return calibration;
}

std::vector<double> ChannelMeans(std::span<const Outputs> outputs) {
  std::vector<const Tensor*> tensors;
  for (const Outputs& o : outputs) tensors.push_back(&o[0]);
  return Means(tensors);
}

}  // namespace tessera
