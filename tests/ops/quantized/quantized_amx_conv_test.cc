#include "tests/ops/quantized/quantized_conv_cases.h"

namespace tessera {
namespace {

class AmxConvTest : public testing::Test {
 protected:
  AmxConvTest() {
    if (!ForceCpuTarget("AVX3_AMX")) missing_ = true;
  }
  ~AmxConvTest() override { ForceCpuTarget(AvailableCpuTargets().front()); }

  bool missing_ = false;
};

TEST_F(AmxConvTest, GivesTheBytesOfTheReference) {
  if (missing_) GTEST_SKIP() << "no AMX here";
  std::mt19937 random(11);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> list[] = {values...};
    return list[random() % sizeof...(values)];
  };
  int compared = 0;
  for (int round = 0; round < 100; ++round) {
    ConvParams p{};
    p.batch = 1 + static_cast<std::int64_t>(random() % 2);
    p.in_channels = pick(3, 4, 5, 16, 24, 48, 64, 72, 100, 130);
    p.out_channels = pick(8, 16, 23, 24, 48, 64, 65, 96, 112, 130);
    p.kernel_h = pick(1, 1, 3, 3, 5);
    p.kernel_w = pick(1, 3, 3, 5, 2);
    if (p.kernel_h == 1) p.kernel_w = pick(1, 1, 3);
    p.stride_h = pick(1, 1, 2, 3);
    p.stride_w = pick(1, 1, 2);
    p.dilation_h = pick(1, 1, 2);
    p.dilation_w = 1;
    p.groups = 1;
    for (std::int64_t* pad : {&p.pad_top, &p.pad_left, &p.pad_bottom, &p.pad_right}) {
      *pad = p.kernel_h == 1 && p.kernel_w == 1 ? pick(0, 0, 0, 1) : pick(0, 1, 1, 2);
    }
    p.in_height = 9 + static_cast<std::int64_t>(random() % 12);
    p.in_width = 5 + static_cast<std::int64_t>(random() % 70);
    if (round % 20 == 0) p.in_width += 600;
    const QuantizedConvCase c = MakeQuantizedConvCase(p, random);
    const Layout layout = c.params.to_float ? Layout::kBlocked : Layout::kChannelsLast;
    PackCache packs;
    const auto kernel = MakeQuantizedAmxConv(c.params, c.constants, layout, packs);
    if (kernel == nullptr) continue;
    ++compared;
    ExpectReferenceBytes(c, *kernel, layout, 1 + round % 3);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(compared, 80);
}

TEST_F(AmxConvTest, LeavesOtherConvolutionsAlone) {
  if (missing_) GTEST_SKIP() << "no AMX here";
  std::mt19937 random(1);
  const auto makes_kernel = [&](std::int64_t groups, std::int64_t dilation) {
    ConvParams p{};
    p.batch = 1;
    p.in_channels = p.out_channels = 64;
    p.groups = groups;
    p.in_height = p.in_width = 20;
    p.kernel_h = p.kernel_w = 3;
    p.stride_h = p.stride_w = 1;
    p.dilation_h = p.dilation_w = dilation;
    QuantizedConvCase c = MakeQuantizedConvCase(p, random);
    c.params.to_float = false;
    PackCache packs;
    return MakeQuantizedAmxConv(c.params, c.constants, Layout::kChannelsLast, packs) != nullptr;
  };
  EXPECT_TRUE(makes_kernel(1, 1));
  EXPECT_FALSE(makes_kernel(64, 1));
  EXPECT_FALSE(makes_kernel(1, 2));
  ASSERT_TRUE(ForceCpuTarget("AVX3"));
  EXPECT_FALSE(makes_kernel(1, 1));
}

}  // namespace
}  // namespace tessera
