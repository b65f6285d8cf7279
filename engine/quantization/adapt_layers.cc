#include "engine/quantization/adapt_layers.h"

#include <algorithm>

#include "engine/infer.h"
#include "engine/quantization/calibrate.h"
#include "engine/quantization/sample_runner.h"

namespace tessera {
namespace {

constexpr std::size_t kPixels = 65536;  // of each layer

void AddToChannels(const Tensor& t, const std::vector<double>& shift) {
  const std::int64_t plane = t.shape()[2] * t.shape()[3];
  for (std::int64_t i = 0; i < t.shape()[0] * t.shape()[1]; ++i) {
    const auto add = static_cast<float>(shift[static_cast<std::size_t>(i % t.shape()[1])]);
    for (float& v : std::span(t.data<float>() + i * plane, static_cast<std::size_t>(plane))) {
      v += add;
    }
  }
}

}  // namespace

void AdaptLayers(const Graph& network, const Graph& qdq, std::span<const Sample> samples,
                 const std::map<std::string, std::vector<double>, std::less<>>& means,
                 const std::map<std::string, float, std::less<>>& x_scales, bool fit_weights,
                 bool clip_weights, Parallel& parallel, WeightsByLayer& weights) {
  Graph folded = qdq;
  FoldConstants(folded);                  // weights to float, once
  NodeWalk float_walk(network, samples);  // goes along, one convolution after the other
  const auto fit = [&](const Node& node, std::span<std::vector<TensorInfo>> inputs) {
    const auto it = weights.find(node.op.name);
    if (it == weights.end() || !fit_weights) return;
    std::vector<OutputPixel> pixels;
    Tensor targets;
    const Tensor* float_weights = nullptr;
    const auto read = [&](const Node& float_node, std::span<Outputs> outputs) {
      if (float_node.op.name != node.op.name) return;
      std::vector<Shape> shapes;
      for (const Outputs& o : outputs) shapes.push_back(o[0].shape());
      pixels = ChoosePixels(shapes, kPixels);
      targets = ReadPixels(outputs, pixels);
      float_weights = network.Constant(float_node.inputs[1]);
    };
    while (float_weights == nullptr && float_walk.Step({}, read, parallel)) {
    }
    std::vector<const Tensor*> x;
    for (const auto& in : inputs) x.push_back(in[0].constant.get());
    FitWeights(node, *float_weights, x, pixels, targets, x_scales.at(node.op.name), clip_weights,
               parallel, it->second);
    const auto real = std::make_shared<const Tensor>(RealWeights(it->second));
    for (auto& in : inputs) in[1].constant = real;
  };
  const auto correct = [&](const Node& node, std::span<Outputs> outputs) {
    const auto it = weights.find(node.op.name);
    if (it == weights.end()) return;
    const std::vector<double>& wanted = means.at(node.op.name);
    std::vector<double> shift = ChannelMeans(outputs);
    it->second.bias.resize(shift.size(), 0);
    for (std::size_t c = 0; c < shift.size(); ++c) {
      shift[c] = wanted[c] - shift[c];
      it->second.bias[c] += shift[c];
    }
    for (const Outputs& o : outputs) AddToChannels(o[0], shift);
  };
  RunNodes(folded, samples, parallel, fit, correct);
}

}  // namespace tessera
