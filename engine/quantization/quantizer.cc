#include "engine/quantization/quantizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/cpu_budget.h"
#include "engine/quantization/float_network.h"
#include "engine/thread_team.h"

namespace tessera {
namespace {

constexpr std::array<std::pair<std::string_view, RangeMethod>, 4> kMethods{{
    {"minmax", RangeMethod::kMinMax},
    {"percentile", RangeMethod::kPercentile},
    {"mse", RangeMethod::kMse},
    {"entropy", RangeMethod::kEntropy},
}};

}  // namespace

std::optional<QuantizedFormat> QuantizedFormatFromName(std::string_view name) {
  if (name == "qdq") return QuantizedFormat::kQdq;
  if (name == "qlinear") return QuantizedFormat::kQLinear;
  return std::nullopt;
}

std::optional<RangeMethod> RangeMethodFromName(std::string_view name) {
  for (const auto& [known, method] : kMethods) {
    if (known == name) return method;
  }
  return std::nullopt;
}

const char* Name(RangeMethod method) {
  for (const auto& [name, known] : kMethods) {
    if (known == method) return name.data();
  }
  return "?";
}

QuantizedModel Quantize(const Graph& network, std::span<const Sample> samples,
                        const QuantizerOptions& options) {
  ThreadTeam team(AvailableCpus());
  Parallel& parallel = options.parallel != nullptr ? *options.parallel : team;
  const FloatNetwork prepared = MakeFloatNetwork(network, samples, options, parallel);
  QuantizedModel model;
  model.graph = QuantizeLayers(prepared, prepared.layers, samples, options, parallel);
  model.layers = DescribeLayers(prepared, prepared.layers);
  return model;
}

double PictureDamage(std::span<const Outputs> reference, std::span<const Outputs> quantized) {
  constexpr double kRounding = 1.0 / 12;  // squared error, in steps of 8 bits
  double sum = 0, count = 0;
  for (std::size_t s = 0; s < reference.size(); ++s) {
    const auto a = reference[s][0].values<const float>(), b = quantized[s][0].values<const float>();
    Require(a.size() == b.size(), "pictures of different sizes");
    for (std::size_t i = 0; i < a.size(); ++i) {
      // What leaves [0, 1] is cut off in a picture.
      const double d = 255.0 * (std::clamp(a[i], 0.0f, 1.0f) -
                                static_cast<double>(std::clamp(b[i], 0.0f, 1.0f)));
      sum += d * d;
    }
    count += static_cast<double>(a.size());
  }
  return count == 0 ? 0 : 10 * std::log10((sum / count + kRounding) / kRounding);
}

}  // namespace tessera
