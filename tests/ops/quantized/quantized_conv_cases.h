// Random QuantizedConv's, and whether a kernel gives the bytes of the reference.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "ops/quantized/quantized_conv.h"
#include "simd/cpu_target.h"
#include "tests/ops/conv_test_util.h"

namespace tessera {

struct QuantizedConvCase {
  QuantizedConvParams params;
  QuantizedConvConstants constants;
  Tensor x, addend;  // row-major; no addend: a tensor without memory
};

inline std::string ToString(const QuantizedConvCase& c) {
  const ConvParams& p = c.params.conv;
  return StrCat(p.batch, "x", p.in_channels, "x", p.in_height, "x", p.in_width, " -> ",
                p.out_channels, "x", p.out_height, "x", p.out_width, ", kernel ", p.kernel_h, "x",
                p.kernel_w, ", stride ", p.stride_h, "x", p.stride_w, ", dilation ", p.dilation_h,
                "x", p.dilation_w, ", pads ", p.pad_top, " ", p.pad_left, " ", p.pad_bottom, " ",
                p.pad_right, ", groups ", p.groups, ", activation ",
                static_cast<int>(p.epilogue.activation), c.params.has_addend ? ", addend" : "",
                c.params.to_float ? ", to float" : "");
}

// Sets the operands, and the output's size, of a convolution whose other parameters are set.
inline QuantizedConvCase MakeQuantizedConvCase(ConvParams p, std::mt19937& random) {
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> list[] = {values...};
    return list[random() % sizeof...(values)];
  };
  const auto zero_point = [&] { return static_cast<std::int32_t>(random() % 256); };
  p.out_height =
      (p.in_height + p.pad_top + p.pad_bottom - (p.kernel_h - 1) * p.dilation_h - 1) / p.stride_h +
      1;
  p.out_width =
      (p.in_width + p.pad_left + p.pad_right - (p.kernel_w - 1) * p.dilation_w - 1) / p.stride_w +
      1;
  p.epilogue.activation = pick(Activation::kNone, Activation::kRelu, Activation::kLeakyRelu,
                               Activation::kPRelu, Activation::kClip, Activation::kHardSwish);
  p.epilogue.alpha = p.epilogue.activation == Activation::kClip ? -0.7f : 0.15f;
  p.epilogue.beta = 1.1f;
  QuantizedConvCase c;
  c.params.conv = p;
  c.params.x = {0.01f, pick(std::int32_t{0}, zero_point())};
  c.params.to_float = random() % 4 == 0;
  c.params.has_addend = random() % 4 == 0;
  c.params.addend = {0.013f, zero_point()};

  const std::int64_t m = p.out_channels, depth = p.in_channels / p.groups;
  const bool per_channel = random() % 2 == 0;
  const auto share = [](Tensor t) { return std::make_shared<const Tensor>(std::move(t)); };
  std::vector<std::int8_t> weights(static_cast<std::size_t>(m * depth * p.kernel_h * p.kernel_w));
  for (std::int8_t& w : weights) w = static_cast<std::int8_t>(pick(random() % 256, 128u, 127u));
  std::vector<float> scales(per_channel ? static_cast<std::size_t>(m) : 1), slopes(scales);
  for (float& s : scales) s = 0.002f * static_cast<float>(1 + random() % 9);
  for (float& s : slopes) s = 0.1f * static_cast<float>(random() % 15) - 0.2f;
  c.constants.weights =
      share(Tensor::FromVector<std::int8_t>({m, depth, p.kernel_h, p.kernel_w}, weights));
  const Shape channels{static_cast<std::int64_t>(scales.size())};
  c.constants.weight_scale = share(Tensor::FromVector<float>(channels, scales));
  if (random() % 3 > 0) {
    std::vector<std::int32_t> bias(static_cast<std::size_t>(m));
    for (std::int32_t& b : bias) b = static_cast<std::int32_t>(random() % 40001) - 20000;
    c.constants.bias = share(Tensor::FromVector<std::int32_t>({m}, bias));
  }
  if (p.epilogue.activation == Activation::kPRelu) {
    c.constants.slope = share(Tensor::FromVector<float>(channels, slopes));
  }
  // So that some results saturate, and most do not.
  const double spread = 128 * 74 * 0.01 * 0.01 * std::sqrt(static_cast<double>(weights.size() / m));
  c.params.y = {static_cast<float>(spread / 40), pick(std::int32_t{0}, zero_point())};

  const auto bytes = [&](const Shape& shape) {
    Tensor t(DType::kUint8, shape);
    for (std::uint8_t& v : t.values<std::uint8_t>()) v = static_cast<std::uint8_t>(random());
    return t;
  };
  c.x = bytes({p.batch, p.in_channels, p.in_height, p.in_width});
  if (c.params.has_addend) c.addend = bytes({p.batch, m, p.out_height, p.out_width});
  return c;
}

// Bytes in Layout::kChannelsLast; what pads a pixel is random.
inline Tensor ToChannelsLast(const Tensor& t) {
  if (!t.view().present()) return {};
  Tensor to(t.dtype(), t.shape(), Layout::kChannelsLast);
  const ChannelsLastLayout l(t.shape());
  auto* out = to.data<std::uint8_t>();
  std::mt19937 random(1);
  for (std::size_t i = 0; i < to.bytes(); ++i) out[i] = static_cast<std::uint8_t>(random());
  const auto* in = t.data<const std::uint8_t>();
  for (std::int64_t n = 0; n < l.images; ++n) {
    for (std::int64_t c = 0; c < l.channels; ++c) {
      for (std::int64_t y = 0; y < l.height; ++y) {
        for (std::int64_t x = 0; x < l.width; ++x) {
          out[n * l.image_stride + y * l.row_stride + x * l.pixel_stride + c] = *in++;
        }
      }
    }
  }
  return to;
}

// Where element (n, c, y, x) of a tensor lies, in elements.
inline std::int64_t ElementAt(const Tensor& t, std::int64_t n, std::int64_t c, std::int64_t y,
                              std::int64_t x) {
  const Shape& s = t.shape();
  if (t.layout() == Layout::kChannelsLast) {
    const ChannelsLastLayout l(s);
    return n * l.image_stride + y * l.row_stride + x * l.pixel_stride + c;
  }
  if (t.layout() == Layout::kBlocked) {
    const BlockedLayout b(s);
    return n * b.image_stride + c / b.lanes * b.plane_stride + y * b.row_stride + x * b.lanes +
           c % b.lanes;
  }
  return ((n * s[1] + c) * s[2] + y) * s[3] + x;
}

template <typename T>
void ExpectSameElements(const Tensor& expected, const Tensor& actual) {
  const Shape& s = expected.shape();
  for (std::int64_t n = 0; n < s[0]; ++n) {
    for (std::int64_t c = 0; c < s[1]; ++c) {
      for (std::int64_t y = 0; y < s[2]; ++y) {
        for (std::int64_t x = 0; x < s[3]; ++x) {
          const T want = expected.data<const T>()[ElementAt(expected, n, c, y, x)];
          const T got = actual.data<const T>()[ElementAt(actual, n, c, y, x)];
          ASSERT_EQ(want, got) << "image " << n << " channel " << c << " y " << y << " x " << x;
        }
      }
    }
  }
}

// Tensors at their places among the operator's inputs.
inline std::vector<TensorView> QuantizedConvInputs(const TensorView& x, const TensorView& addend) {
  std::vector<TensorView> inputs(kQuantizedAddend + 1);
  inputs[0] = x;
  inputs[kQuantizedAddend] = addend;
  return inputs;
}

// What the reference gives, row-major.
inline Tensor ReferenceResult(const QuantizedConvCase& c) {
  const ConvParams& p = c.params.conv;
  Tensor y(c.params.to_float ? DType::kFloat32 : DType::kUint8,
           {p.batch, p.out_channels, p.out_height, p.out_width});
  RunKernel(*MakeReferenceQuantizedConv(c.params, c.constants),
            QuantizedConvInputs(c.x.view(), c.addend.view()), y, 1);
  return y;
}

inline void ExpectSameBytes(const Tensor& expected, const Tensor& actual) {
  if (expected.dtype() == DType::kFloat32) {
    ExpectSameElements<float>(expected, actual);
  } else {
    ExpectSameElements<std::uint8_t>(expected, actual);
  }
}

// Runs a kernel that takes channels-last tensors, and once more with the result in the place of
// the addend if it says that it can.
inline void ExpectResult(const QuantizedConvCase& c, const Tensor& expected, const Kernel& kernel,
                         Layout output_layout, int threads) {
  SCOPED_TRACE(
      StrCat(kernel.name(), " on ", CpuTargetName(), ", ", threads, " threads: ", ToString(c)));
  const Tensor x = ToChannelsLast(c.x), addend = ToChannelsLast(c.addend);
  Tensor y(expected.dtype(), expected.shape(), output_layout);
  RunKernel(kernel, QuantizedConvInputs(x.view(), addend.view()), y, threads);
  ExpectSameBytes(expected, y);
  if (!c.params.has_addend || !kernel.CanOverwriteInput(kQuantizedAddend)) return;
  SCOPED_TRACE("in place");
  Tensor both = addend.Clone();
  RunKernel(kernel, QuantizedConvInputs(x.view(), both.view()), both, threads);
  ExpectSameBytes(expected, both);
}

}  // namespace tessera
