#include "engine/quantization/weights.h"

#include <algorithm>
#include <cmath>

#include "ops/error.h"

namespace tessera {
namespace {

constexpr double kMostWeight = 127;
constexpr double kMostBias = 1 << 30;

double SquaredError(std::span<const float> weights, double scale) {
  double sum = 0;
  for (const float w : weights) {
    const double e = w - QuantizeWeight(w, scale) * scale;
    sum += e * e;
  }
  return sum;
}

std::int64_t PerChannel(const Tensor& weights) {
  return weights.shape().NumElements(1, weights.shape().rank());
}

}  // namespace

double QuantizeWeight(double w, double scale) {
  return std::clamp(std::nearbyint(w / scale), -kMostWeight, kMostWeight);
}

double LeastWeightScale(double bias, float x_scale) {
  // Half of what there is, for corrections of the bias.
  return 2 * std::abs(bias) / x_scale / kMostBias;
}

float ChooseWeightScale(std::span<const float> weights, bool clip, double least) {
  double largest = 0;
  for (const float w : weights) {
    Require(std::isfinite(w), "a weight is not finite");
    largest = std::max<double>(largest, std::abs(w));
  }
  const double widest = largest / kMostWeight;
  double best = widest;
  if (clip && largest > 0) {
    constexpr int kSteps = 80;
    double least_error = SquaredError(weights, widest);
    for (int i = kSteps / 2; i < kSteps; ++i) {
      const double scale = widest * i / kSteps;
      const double error = SquaredError(weights, scale);
      if (error < least_error) {
        least_error = error;
        best = scale;
      }
    }
  }
  best = std::max(best, least);
  return best < 1e-30 ? 1.0f : static_cast<float>(best);
}

LayerWeights RoundWeights(const Tensor& weights, const Tensor* bias, float x_scale, bool clip) {
  const std::int64_t channels = weights.shape()[0], per_channel = PerChannel(weights);
  LayerWeights out{Tensor(DType::kInt8, weights.shape()), Tensor(DType::kFloat32, {channels}), {}};
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::span<const float> row(weights.data<float>() + c * per_channel,
                                     static_cast<std::size_t>(per_channel));
    double b = 0;
    if (bias != nullptr) {
      b = bias->data<float>()[c];
      Require(std::isfinite(b), "a bias is not finite");
      out.bias.push_back(b);
    }
    const float scale = ChooseWeightScale(row, clip, LeastWeightScale(b, x_scale));
    out.scales.data<float>()[c] = scale;
    for (std::int64_t k = 0; k < per_channel; ++k) {
      out.values.data<std::int8_t>()[c * per_channel + k] =
          static_cast<std::int8_t>(QuantizeWeight(row[static_cast<std::size_t>(k)], scale));
    }
  }
  return out;
}

Tensor RealWeights(const LayerWeights& weights) {
  Tensor real(DType::kFloat32, weights.values.shape());
  const std::int64_t per_channel = PerChannel(real);
  for (std::int64_t i = 0; i < real.size(); ++i) {
    real.data<float>()[i] = static_cast<float>(weights.values.data<std::int8_t>()[i]) *
                            weights.scales.data<float>()[i / per_channel];
  }
  return real;
}

Tensor IntegerBias(const LayerWeights& weights, float x_scale) {
  Tensor out(DType::kInt32, weights.scales.shape());
  for (std::size_t c = 0; c < weights.bias.size(); ++c) {
    const float scale = x_scale * weights.scales.data<float>()[c];
    out.data<std::int32_t>()[c] = static_cast<std::int32_t>(std::clamp(
        std::nearbyint(weights.bias[c] / static_cast<double>(scale)), -kMostBias, kMostBias));
  }
  return out;
}

}  // namespace tessera
