#include "engine/quantization/weights.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "ops/error.h"

namespace tessera {
namespace {

constexpr double kMostWeight = 127;
// Biases stay below it, so that what a convolution adds to them cannot overflow int32.
constexpr double kMostBias = 1 << 30;

double Quantize(double w, double scale) {
  return std::clamp(std::nearbyint(w / scale), -kMostWeight, kMostWeight);
}

double SquaredError(std::span<const float> weights, double scale) {
  double sum = 0;
  for (const float w : weights) {
    const double e = w - Quantize(w, scale) * scale;
    sum += e * e;
  }
  return sum;
}

double BestScale(std::span<const float> weights, bool clip) {
  double largest = 0;
  for (const float w : weights) largest = std::max<double>(largest, std::abs(w));
  const double widest = largest / kMostWeight;
  if (!clip || largest == 0) return widest;
  constexpr int kSteps = 80;
  double best = widest, least = SquaredError(weights, widest);
  for (int i = kSteps / 2; i < kSteps; ++i) {
    const double scale = widest * i / kSteps;
    const double error = SquaredError(weights, scale);
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

}  // namespace

IntegerWeights QuantizeWeights(const Tensor& weights, const Tensor* bias, float x_scale,
                               bool clip) {
  const std::int64_t channels = weights.shape()[0];
  const std::int64_t per_channel = weights.shape().NumElements(1, weights.shape().rank());
  IntegerWeights out{Tensor(DType::kInt8, weights.shape()), Tensor(DType::kFloat32, {channels}),
                     Tensor(DType::kInt32, {channels})};
  for (std::int64_t c = 0; c < channels; ++c) {
    const std::span row(weights.data<float>() + c * per_channel,
                        static_cast<std::size_t>(per_channel));
    for (const float w : row) Require(std::isfinite(w), "a weight is not finite");
    const double b = bias == nullptr ? 0.0 : static_cast<double>(bias->data<float>()[c]);
    Require(std::isfinite(b), "a bias is not finite");
    double best = std::max(BestScale(row, clip), std::abs(b) / x_scale / kMostBias);
    if (best < 1e-30) best = 1;  // all 0
    const auto scale = static_cast<float>(best);
    out.scales.data<float>()[c] = scale;
    for (std::int64_t k = 0; k < per_channel; ++k) {
      out.values.data<std::int8_t>()[c * per_channel + k] =
          static_cast<std::int8_t>(Quantize(row[static_cast<std::size_t>(k)], scale));
    }
    // The float product is the scale that a reader of the model multiplies with.
    out.bias.data<std::int32_t>()[c] = static_cast<std::int32_t>(
        std::clamp(std::nearbyint(b / (x_scale * scale)), -kMostBias, kMostBias));
  }
  return out;
}

}  // namespace tessera
