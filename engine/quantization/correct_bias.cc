#include "engine/quantization/correct_bias.h"

#include "engine/infer.h"
#include "engine/quantization/calibrate.h"
#include "engine/quantization/sample_runner.h"

namespace tessera {
namespace {

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

std::map<std::string, std::vector<double>> BiasCorrections(
    const Graph& qdq, std::span<const Sample> samples,
    const std::map<std::string, std::vector<double>>& means, Parallel& parallel) {
  Graph folded = qdq;
  FoldConstants(folded);  // weights to float, once
  std::map<std::string, std::vector<double>> corrections;
  RunNodes(folded, samples, parallel, [&](const Node& node, std::span<Outputs> outputs) {
    const auto wanted = means.find(node.op.name);
    if (wanted == means.end()) return;
    std::vector<double> shift = ChannelMeans(outputs);
    for (std::size_t c = 0; c < shift.size(); ++c) shift[c] = wanted->second[c] - shift[c];
    for (const Outputs& o : outputs) AddToChannels(o[0], shift);
    corrections.emplace(node.op.name, std::move(shift));
  });
  return corrections;
}

}  // namespace tessera
