#include <algorithm>
#include <cstring>

#include "tests/every_target.h"
#include "tests/ops/op_test_util.h"
#include "tests/ops/quantized/guarded_bytes.h"
#include "tests/ops/quantized/random_quantized_conv.h"

namespace tessera {
namespace {

struct Pick {
  std::mt19937& random;
  std::int64_t operator()(std::int64_t low, std::int64_t high) const {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }
};

// The kernel against the plain one, on 1 to 4 threads.
void ExpectReferenceBytes(const RandomQuantizedConv& conv, std::mt19937& random) {
  const Tensor x = RandomBytes(conv.x(), DType::kUint8, random);
  const Tensor addend = RandomBytes(conv.y(), DType::kUint8, random);
  const bool to_float = conv.params.to_float;
  const DType type = to_float ? DType::kFloat32 : DType::kUint8;
  Tensor expected(type, conv.y());
  const auto inputs = [&](const TensorView& x_view, const TensorView& addend_view) {
    const TensorView none;
    return std::vector<TensorView>{x_view, none, none,
                                   none,   none, conv.params.has_addend ? addend_view : none};
  };
  RunKernel(*MakeReferenceQuantizedConv(conv.params, conv.constants),
            inputs(x.view(), addend.view()), expected, 1);

  const GuardedChannelsLast x_bytes(x), addend_bytes(addend);
  PackCache packs;
  const auto kernel = MakeQuantizedDepthwiseConv(conv.params, conv.constants, packs);
  for (int threads = 1; threads <= 4; ++threads) {
    const GuardedChannelsLast bytes(conv.y());
    Tensor reals(DType::kFloat32, conv.y());
    TestThreads team(threads);
    const std::size_t stride = RoundUp(kernel->ScratchBytesPerThread(), kAlignment);
    AlignedBuffer scratch(stride * static_cast<std::size_t>(threads));
    std::memset(scratch.data(), 0xFF, scratch.size());
    const std::vector<TensorView> in = inputs(x_bytes.view(), addend_bytes.view());
    const TensorView out = to_float ? reals.view() : bytes.view();
    kernel->Run({in, {&out, 1}, team, scratch.data(), stride});
    ExpectClose(to_float ? std::move(reals) : bytes.ToRowMajor(), expected, 0,
                StrCat(threads, " threads"));
    if (testing::Test::HasFailure()) return;
  }
}

std::string Describe(const RandomQuantizedConv& conv) {
  const ConvParams& p = conv.params.conv;
  return StrCat(conv.x(), " kernel ", p.kernel_h, 'x', p.kernel_w, " stride ", p.stride_h, ' ',
                p.stride_w, " dilation ", p.dilation_h, ' ', p.dilation_w, " pads ", p.pad_top, ' ',
                p.pad_left, ' ', p.pad_bottom, ' ', p.pad_right, " activation ",
                static_cast<int>(p.epilogue.activation), " addend ", conv.params.has_addend);
}

Quantization RandomInput(const Pick& pick) {
  return {0.02f, static_cast<std::int32_t>(pick(0, 255))};
}

constexpr std::int64_t kChannels[] = {5, 16, 24, 33, 48, 64, 72, 88, 96, 130};
constexpr std::int64_t kWidths[] = {1, 2, 7, 16, 31, 64, 65, 130};

TEST(QuantizedDepthwise, EqualsTheReferenceOnEveryTarget) {
  OnEveryTarget([] {
    std::mt19937 random(11);
    const Pick pick{random};
    for (int i = 0; i < 60; ++i) {
      const std::int64_t channels = kChannels[pick(0, std::size(kChannels) - 1)];
      const std::int64_t kernel = 3 + 2 * pick(0, 1), stride = pick(1, 2);
      const Shape x{pick(1, 2), channels, pick(kernel, 20),
                    std::max(kernel, kWidths[pick(0, std::size(kWidths) - 1)])};
      ConvGeometry g = {.out_channels = channels,
                        .groups = channels,
                        .kernel_h = kernel,
                        .kernel_w = kernel,
                        .stride_h = stride,
                        .stride_w = stride};
      for (auto& pad : g.pads) pad = pick(0, 3) == 0 ? pick(0, kernel) : kernel / 2;
      const RandomQuantizedConv conv(x, g, RandomInput(pick), pick(0, 2) == 0, pick(0, 5) == 0,
                                     random);
      SCOPED_TRACE(Describe(conv));
      ExpectReferenceBytes(conv, random);
      if (testing::Test::HasFailure()) return;
    }
  });
}

TEST(QuantizedDepthwise, AnyWindow) {
  OnEveryTarget([] {
    std::mt19937 random(12);
    const Pick pick{random};
    for (int i = 0; i < 60; ++i) {
      const std::int64_t channels = kChannels[pick(0, std::size(kChannels) - 1)];
      ConvGeometry g = {.out_channels = channels,
                        .groups = channels,
                        .kernel_h = pick(1, 7),
                        .kernel_w = pick(1, 7),
                        .stride_h = pick(1, 3),
                        .stride_w = pick(1, 3),
                        .dilation_h = pick(0, 1) == 0 ? 1 : pick(1, 3),
                        .dilation_w = pick(0, 1) == 0 ? 1 : pick(1, 3)};
      for (auto& pad : g.pads) pad = pick(0, 4);
      const auto size = [&](std::int64_t kernel, std::int64_t dilation) {
        return (kernel - 1) * dilation + pick(1, 24);
      };
      const Shape x{pick(1, 2), channels, size(g.kernel_h, g.dilation_h),
                    size(g.kernel_w, g.dilation_w)};
      const RandomQuantizedConv conv(x, g, RandomInput(pick), pick(0, 2) == 0, pick(0, 5) == 0,
                                     random);
      SCOPED_TRACE(Describe(conv));
      ExpectReferenceBytes(conv, random);
      if (testing::Test::HasFailure()) return;
    }
  });
}

TEST(QuantizedDepthwise, WideKernels) {
  std::mt19937 random(13);
  const Pick pick{random};
  for (const std::int64_t kernel : {11, 31, 32}) {
    const Shape x{1, 72, kernel + 3, 150};
    const RandomQuantizedConv conv(
        x, {.out_channels = 72, .groups = 72, .kernel_h = kernel, .kernel_w = kernel},
        RandomInput(pick), false, false, random);
    ExpectReferenceBytes(conv, random);
  }
}

}  // namespace
}  // namespace tessera
