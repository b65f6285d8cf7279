// What QuantizedConv does to its sums, element by element, and the operands for whole vectors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/quantize.h"
#include "ops/quantized/quantized_conv.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

float ElementOr(const Tensor* t, std::int64_t i, float fallback) {
  if (t == nullptr) return fallback;
  return t->data<const float>()[t->size() == 1 ? 0 : i];
}

std::int32_t Wrap(std::int64_t value) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
}

}  // namespace

QuantizedEpilogue::QuantizedEpilogue(const QuantizedConvParams& params,
                                     const QuantizedConvConstants& constants,
                                     std::int64_t padded_channels)
    : bias(static_cast<std::size_t>(padded_channels) * sizeof(std::int32_t)),
      positive(static_cast<std::size_t>(padded_channels) * sizeof(float)),
      negative(static_cast<std::size_t>(padded_channels) * sizeof(float)),
      to_float(params.to_float),
      has_addend(params.has_addend),
      inverse_y_scale(1 / params.y.scale),
      y_zero_point(params.y.zero_point),
      addend(params.addend) {
  const Epilogue& epilogue = params.conv.epilogue;
  is_hard_swish = epilogue.activation == Activation::kHardSwish;
  const bool to_bytes = !to_float && !has_addend;

  clip_low = -std::numeric_limits<float>::infinity();
  clip_high = std::numeric_limits<float>::infinity();
  if (epilogue.activation == Activation::kRelu) clip_low = 0;
  if (epilogue.activation == Activation::kClip) {
    clip_low = epilogue.alpha;
    clip_high = epilogue.beta;
  }
  const auto bound = [&](float value) {
    return std::int32_t{RoundAndSaturate<std::uint8_t>(value / params.y.scale, y_zero_point)};
  };
  highest = to_bytes ? bound(clip_high) : 255;
  lowest = to_bytes ? std::min(bound(clip_low), highest) : 0;  // Clip gives the upper of two bounds

  const std::int64_t channels = params.conv.out_channels;
  const std::int64_t depth = constants.weights->size() / channels;
  const auto* weights = constants.weights->data<const std::int8_t>();
  // A multiplier below 1 cannot leave the range of int32, so that saturation is enough.
  bool saturates = lowest == 0 && highest == 255, has_slope = false;
  can_offset = y_zero_point == 0;
  std::fill_n(bias.As<std::int32_t>(), padded_channels, 0);
  std::fill_n(positive.As<float>(), padded_channels, 0.0f);
  std::fill_n(negative.As<float>(), padded_channels, 0.0f);
  for (std::int64_t c = 0; c < channels; ++c) {
    std::int64_t sum = 0, negative_sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::int64_t w = weights[c * depth + k];
      sum += w;
      negative_sum += std::min<std::int64_t>(w, 0);
    }
    const std::int64_t b = constants.bias ? constants.bias->data<const std::int32_t>()[c] : 0;
    const std::int64_t start = b - sum * params.x.zero_point;
    bias.As<std::int32_t>()[c] = Wrap(start);
    constexpr std::int64_t kLeast = -(1 << 30), kMost = (1 << 23) - 1;
    can_offset = can_offset && start + 255 * negative_sum >= kLeast &&
                 start + 255 * (sum - negative_sum) <= kMost;

    const float w_scale = ElementOr(constants.weight_scale.get(), c, 1);
    const float real = params.x.scale * w_scale;
    const float multiplier =
        to_bytes ? RequantizeMultiplier(params.x.scale, w_scale, params.y.scale) : real;
    float slope = 1;
    if (epilogue.activation == Activation::kLeakyRelu) slope = epilogue.alpha;
    if (epilogue.activation == Activation::kPRelu) slope = ElementOr(constants.slope.get(), c, 1);
    has_slope = has_slope || slope != 1;
    saturates = saturates && std::abs(multiplier) < 1;
    can_offset = can_offset && multiplier >= 0;
    positive.As<float>()[c] = multiplier;
    negative.As<float>()[c] = to_bytes && is_hard_swish ? real * (1.0f / 6) : multiplier * slope;
  }
  if (!to_bytes) {
    form = QuantizedForm::kGeneral;
  } else if (is_hard_swish) {
    form = saturates ? QuantizedForm::kHardSwish : QuantizedForm::kWideHardSwish;
  } else {
    form = has_slope || !saturates ? QuantizedForm::kSlope : QuantizedForm::kLinear;
  }
  can_offset = can_offset && form == QuantizedForm::kLinear;
}

void QuantizedEpilogue::OffsetSums() {
  if (!can_offset || form == QuantizedForm::kOffset || FloatLanes() != 16) return;
  form = QuantizedForm::kOffset;
  const std::size_t channels = bias.size() / sizeof(std::int32_t);
  for (std::size_t c = 0; c < channels; ++c) {
    bias.As<std::int32_t>()[c] += kSumOffset;
    negative.As<float>()[c] = 8388608.0f * positive.As<float>()[c];
  }
}

float QuantizedEpilogue::ToFloat(std::int32_t sum, std::int64_t channel,
                                 std::uint8_t addend_value) const {
  float r = static_cast<float>(sum) * (sum < 0 ? Negative() : Positive())[channel];
  r = std::min(std::max(r, clip_low), clip_high);
  if (is_hard_swish) {
    const float gate = r * (1.0f / 6) + 0.5f;
    r = r * std::min(std::max(gate, 0.0f), 1.0f);
  }
  if (has_addend) r = r + static_cast<float>(addend_value - addend.zero_point) * addend.scale;
  return r;
}

std::uint8_t QuantizedEpilogue::ToByte(std::int32_t sum, std::int64_t channel,
                                       std::uint8_t addend_value) const {
  if (has_addend) {
    return RoundAndSaturate<std::uint8_t>(ToFloat(sum, channel, addend_value) * inverse_y_scale,
                                          y_zero_point);
  }
  const float s = static_cast<float>(sum);
  float v = s * (sum < 0 ? Negative() : Positive())[channel];
  if (is_hard_swish) {
    const float gate = s * Negative()[channel] + 0.5f;
    v = s * Positive()[channel] * std::min(std::max(gate, 0.0f), 1.0f);
  }
  return static_cast<std::uint8_t>(
      std::clamp(std::int32_t{RoundAndSaturate<std::uint8_t>(v, y_zero_point)}, lowest, highest));
}

namespace {

class ReferenceQuantizedConv final : public Kernel {
 public:
  ReferenceQuantizedConv(const QuantizedConvParams& params, const QuantizedConvConstants& constants)
      : params_(params),
        weights_(constants.weights),
        epilogue_(params, constants, params.conv.out_channels) {}

  std::string_view name() const override { return "quantized_conv_reference"; }
  double Flops() const override { return params_.conv.Flops(); }

  void Run(const RunContext& run) const override {
    const ConvParams& p = params_.conv;
    run.parallel.For(p.batch * p.out_channels, [&](std::int64_t plane, int) {
      for (std::int64_t y = 0; y < p.out_height; ++y) {
        for (std::int64_t x = 0; x < p.out_width; ++x) RunElement(run, plane, y, x);
      }
    });
  }

 private:
  // Outside of X lies its zero point, which the bias of the epilogue subtracts for all taps.
  std::int32_t Sum(const RunContext& run, std::int64_t plane, std::int64_t y,
                   std::int64_t x) const {
    const ConvParams& p = params_.conv;
    const std::int64_t image = plane / p.out_channels, channel = plane % p.out_channels;
    const std::int64_t depth = p.in_channels / p.groups;
    const std::int64_t first = channel / (p.out_channels / p.groups) * depth;
    const auto* w = weights_->data<const std::int8_t>() + channel * depth * p.kernel_h * p.kernel_w;
    std::int64_t sum = epilogue_.Bias()[channel];
    for (std::int64_t c = 0; c < depth; ++c) {
      for (std::int64_t ky = 0; ky < p.kernel_h; ++ky) {
        for (std::int64_t kx = 0; kx < p.kernel_w; ++kx, ++w) {
          const std::int64_t iy = y * p.stride_h - p.pad_top + ky * p.dilation_h;
          const std::int64_t ix = x * p.stride_w - p.pad_left + kx * p.dilation_w;
          const bool inside = iy >= 0 && iy < p.in_height && ix >= 0 && ix < p.in_width;
          const std::int64_t at =
              ((image * p.in_channels + first + c) * p.in_height + iy) * p.in_width + ix;
          sum += std::int64_t{inside ? Input(run, at) : params_.x.zero_point} * *w;
        }
      }
    }
    return Wrap(sum);
  }

  std::int32_t Input(const RunContext& run, std::int64_t at) const {
    const TensorView& x = run.inputs[0];
    if (!params_.from_float) return x.data<const std::uint8_t>()[at];
    return RoundAndSaturate<std::uint8_t>(x.data<const float>()[at] / params_.x.scale,
                                          params_.x.zero_point);
  }

  void RunElement(const RunContext& run, std::int64_t plane, std::int64_t y, std::int64_t x) const {
    const ConvParams& p = params_.conv;
    const std::int64_t channel = plane % p.out_channels;
    const std::int64_t at = (plane * p.out_height + y) * p.out_width + x;
    const std::int32_t sum = Sum(run, plane, y, x);
    const std::uint8_t addend =
        params_.has_addend ? run.inputs[kQuantizedAddend].data<const std::uint8_t>()[at] : 0;
    if (params_.to_float) {
      run.outputs[0].data<float>()[at] = epilogue_.ToFloat(sum, channel, addend);
    } else {
      run.outputs[0].data<std::uint8_t>()[at] = epilogue_.ToByte(sum, channel, addend);
    }
  }

  QuantizedConvParams params_;
  std::shared_ptr<const Tensor> weights_;
  QuantizedEpilogue epilogue_;
};

}  // namespace

std::unique_ptr<Kernel> MakeReferenceQuantizedConv(const QuantizedConvParams& params,
                                                   const QuantizedConvConstants& constants) {
  return std::make_unique<ReferenceQuantizedConv>(params, constants);
}

}  // namespace tessera
