#include "ops/quantized/quantized_depthwise.h"

#include <algorithm>
#include <iterator>

#include "tests/every_target.h"
#include "tests/ops/quantized/guarded_bytes.h"
#include "tests/ops/quantized/quantized_conv_cases.h"

namespace tessera {
namespace {

constexpr std::int64_t kChannels[] = {5, 16, 24, 33, 48, 64, 72, 88, 96, 130};
constexpr std::int64_t kWidths[] = {1, 2, 7, 16, 31, 64, 65, 130};

struct Pick {
  std::mt19937& random;
  std::int64_t operator()(std::int64_t low, std::int64_t high) const {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }
  template <std::size_t n>
  std::int64_t operator()(const std::int64_t (&list)[n]) const {
    return list[random() % n];
  }
};

// Kernel, stride and dilation 1.
ConvParams Depthwise(std::int64_t batch, std::int64_t channels, std::int64_t height,
                     std::int64_t width) {
  return {.batch = batch,
          .in_channels = channels,
          .in_height = height,
          .in_width = width,
          .out_channels = channels,
          .out_height = 0,
          .out_width = 0,
          .kernel_h = 1,
          .kernel_w = 1,
          .stride_h = 1,
          .stride_w = 1,
          .dilation_h = 1,
          .dilation_w = 1,
          .pad_top = 0,
          .pad_left = 0,
          .pad_bottom = 0,
          .pad_right = 0,
          .groups = channels,
          .epilogue = {}};
}

// On every target, by one thread and by several.
void ExpectReference(const ConvParams& params, std::mt19937& random) {
  const QuantizedConvCase c = MakeQuantizedConvCase(params, random);
  const Tensor expected = ReferenceResult(c);
  const Layout layout = c.params.to_float ? Layout::kBlocked : Layout::kChannelsLast;
  OnEveryTarget([&] {
    PackCache packs;
    const auto kernel = MakeQuantizedDepthwiseConv(c.params, c.constants, packs);
    for (const int threads : {1, 3}) ExpectResult(c, expected, *kernel, layout, threads);
  });
}

TEST(QuantizedDepthwise, EqualsTheReferenceOnEveryTarget) {
  std::mt19937 random(11);
  const Pick pick{random};
  for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
    const std::int64_t kernel = 3 + 2 * pick(0, 1);
    ConvParams p =
        Depthwise(pick(1, 2), pick(kChannels), pick(kernel, 20), std::max(kernel, pick(kWidths)));
    p.kernel_h = p.kernel_w = kernel;
    p.stride_h = p.stride_w = pick(1, 2);
    for (std::int64_t* pad : {&p.pad_top, &p.pad_left, &p.pad_bottom, &p.pad_right}) {
      *pad = pick(0, 3) == 0 ? pick(0, kernel) : kernel / 2;
    }
    ExpectReference(p, random);
  }
}

TEST(QuantizedDepthwise, AnyWindow) {
  std::mt19937 random(12);
  const Pick pick{random};
  for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
    ConvParams p = Depthwise(pick(1, 2), pick(kChannels), 0, 0);
    p.kernel_h = pick(1, 7);
    p.kernel_w = pick(1, 7);
    p.stride_h = pick(1, 3);
    p.stride_w = pick(1, 3);
    p.dilation_h = pick(0, 1) == 0 ? 1 : pick(1, 3);
    p.dilation_w = pick(0, 1) == 0 ? 1 : pick(1, 3);
    p.in_height = (p.kernel_h - 1) * p.dilation_h + pick(1, 24);
    p.in_width = (p.kernel_w - 1) * p.dilation_w + pick(1, 24);
    for (std::int64_t* pad : {&p.pad_top, &p.pad_left, &p.pad_bottom, &p.pad_right}) {
      *pad = pick(0, 4);
    }
    ExpectReference(p, random);
  }
}

TEST(QuantizedDepthwise, WideKernels) {
  std::mt19937 random(13);
  for (const std::int64_t kernel : {11, 31, 32}) {
    ConvParams p = Depthwise(1, 72, kernel + 1, 150);
    p.kernel_h = p.kernel_w = kernel;
    ExpectReference(p, random);
  }
}

TEST(QuantizedDepthwise, NeitherReadsNorWritesBeyondItsTensors) {
  OnEveryTarget([] {
    std::mt19937 random(14);
    const Pick pick{random};
    for (int i = 0; i < 40; ++i) {
      ConvParams p =
          Depthwise(1, pick(kChannels), pick(5, 9), std::max<std::int64_t>(5, pick(kWidths)));
      p.kernel_h = p.kernel_w = pick(2, 5);
      p.stride_h = p.stride_w = pick(1, 3);
      const QuantizedConvCase c = MakeQuantizedConvCase(p, random);
      const Layout layout = c.params.to_float ? Layout::kBlocked : Layout::kChannelsLast;
      const ConvParams& q = c.params.conv;
      const Tensor y(c.params.to_float ? DType::kFloat32 : DType::kUint8,
                     {q.batch, q.out_channels, q.out_height, q.out_width}, layout);
      const Tensor x = ToChannelsLast(c.x), addend = ToChannelsLast(c.addend);
      PackCache packs;
      const auto kernel = MakeQuantizedDepthwiseConv(c.params, c.constants, packs);
      const GuardedBytes x_bytes(x), addend_bytes(addend), y_bytes(y),
          scratch(RoundUp(kernel->ScratchBytesPerThread(), kAlignment));
      std::vector<TensorView> in(kQuantizedAddend + 1);
      in[0] = x_bytes.ViewOf(x);
      in[kQuantizedAddend] = addend_bytes.ViewOf(addend);
      const TensorView out = y_bytes.ViewOf(y);
      SerialParallel serial;
      kernel->Run({in, {&out, 1}, serial, scratch.data(), 0});
    }
  });
}

TEST(QuantizedDepthwise, WhatItIsFor) {
  const auto is_one = [](auto change) {
    QuantizedConvParams p;
    p.conv = Depthwise(1, 24, 8, 8);
    change(p.conv);
    return IsQuantizedDepthwise(p);
  };
  EXPECT_TRUE(is_one([](ConvParams&) {}));
  EXPECT_FALSE(is_one([](ConvParams& p) { p.out_channels = 48; }));
  EXPECT_FALSE(is_one([](ConvParams& p) { p.groups = 12; }));
  EXPECT_FALSE(is_one([](ConvParams& p) { p.in_channels = p.out_channels = p.groups = 4; }));
  EXPECT_FALSE(is_one([](ConvParams& p) { p.kernel_w = 33; }));
}

}  // namespace
}  // namespace tessera
