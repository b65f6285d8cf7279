// Random convolutions of bytes, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "ops/quantized/quantized_conv.h"
#include "tests/ops/byte_tensors.h"

namespace tessera {

struct ConvGeometry {
  std::int64_t out_channels, groups, kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1,
                                     dilation_h = 1, dilation_w = 1;
  std::vector<std::int64_t> pads = {0, 0, 0, 0};  // top, left, bottom, right
};

struct RandomQuantizedConv {
  OpNode node;
  QuantizedConvParams params;
  QuantizedConvConstants constants;

  Shape x() const {
    const ConvParams& p = params.conv;
    return {p.batch, p.in_channels, p.in_height, p.in_width};
  }
  Shape y() const {
    const ConvParams& p = params.conv;
    return {p.batch, p.out_channels, p.out_height, p.out_width};
  }

  // Random weights, scales, zero points and activation. Results fill the range of bytes and leave
  // it at times.
  RandomQuantizedConv(const Shape& x, const ConvGeometry& g, const Quantization& x_quantization,
                      bool has_addend, bool to_float, std::mt19937& random) {
    const auto pick = [&](std::int64_t low, std::int64_t high) {
      return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    const auto real = [&](float low, float high) {
      return std::uniform_real_distribution<float>(low, high)(random);
    };
    node = {.name = "test", .type = "QuantizedConv", .opset = 17, .attributes = {}};
    Attributes& a = node.attributes;
    a.Set("group", g.groups);
    a.Set("strides", std::vector<std::int64_t>{g.stride_h, g.stride_w});
    a.Set("dilations", std::vector<std::int64_t>{g.dilation_h, g.dilation_w});
    a.Set("pads", g.pads);
    constexpr Activation kActivations[] = {Activation::kNone,      Activation::kRelu,
                                           Activation::kLeakyRelu, Activation::kPRelu,
                                           Activation::kClip,      Activation::kHardSwish};
    Epilogue epilogue = {.activation = kActivations[pick(0, 5)]};
    const bool clips = epilogue.activation == Activation::kClip;
    epilogue.alpha = clips ? real(-3, 0) : real(-0.5, 0.5);
    epilogue.beta = real(0, 3);
    WriteEpilogue(epilogue, a);

    const std::int64_t depth = x[1] / g.groups * g.kernel_h * g.kernel_w;
    WriteQuantization(x_quantization, "x", a);
    WriteQuantization({real(0.01f, 0.05f), static_cast<std::int32_t>(pick(0, 255))}, "addend", a);
    const float spread = 74 * 74 * std::sqrt(static_cast<float>(depth));  // of the sums
    const float w_scale = 0.01f;
    if (!to_float) {
      const float y_scale = x_quantization.scale * w_scale * spread / real(20, 100);
      WriteQuantization({y_scale, static_cast<std::int32_t>(pick(0, 2) * 127)}, "y", a);
    }

    const Shape w{g.out_channels, x[1] / g.groups, g.kernel_h, g.kernel_w};
    constants.weights = std::make_shared<Tensor>(RandomBytes(w, DType::kInt8, random));
    const auto floats = [&](std::int64_t n, float low, float high) {
      std::vector<float> values(static_cast<std::size_t>(n));
      for (float& v : values) v = real(low, high);
      return std::make_shared<Tensor>(Tensor::FromVector<float>({n}, values));
    };
    constants.weight_scale =
        floats(pick(0, 1) == 0 ? 1 : g.out_channels, 0.5f * w_scale, 1.5f * w_scale);
    if (pick(0, 3) != 0) {
      std::vector<std::int32_t> bias(static_cast<std::size_t>(g.out_channels));
      for (auto& b : bias) b = static_cast<std::int32_t>(real(-spread, spread));
      constants.bias =
          std::make_shared<Tensor>(Tensor::FromVector<std::int32_t>({g.out_channels}, bias));
    }
    if (epilogue.activation == Activation::kPRelu) {
      constants.slope = floats(pick(0, 1) == 0 ? 1 : g.out_channels, -0.5, 1.5);
    }
    params = ReadQuantizedConv(node, x, w, has_addend);
  }
};

}  // namespace tessera
