#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/ops/quantized/quantized_epilogue_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantized/quantized_epilogue-inl.h"
#include "simd/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

// Bytes of `sums` [4 * lanes], by StoreQuad, and by Store and StoreFour alike.
template <QuantizedForm kForm>
void ToBytes(const QuantizedEpilogue& e, const std::int32_t* sums, const std::uint8_t* addend,
             std::uint8_t* quad, std::uint8_t* single) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const QuantizedOutput<kForm> output(e);
  using V = hn::Vec<decltype(d)>;
  V a[4], v[4];
  LoadQuad(d, addend, a[0], a[1], a[2], a[3]);
  std::vector<std::int32_t> sum(4 * lanes);
  std::vector<float> positive(4 * lanes), negative(4 * lanes);
  for (std::int64_t j = 0; j < 4; ++j) {
    for (std::int64_t l = 0; l < lanes; ++l) {
      const std::int64_t c = QuadOrder(lanes, j, l);
      sum[j * lanes + l] = sums[c];
      positive[j * lanes + l] = e.Positive()[c];
      negative[j * lanes + l] = e.Negative()[c];
    }
    v[j] = output.Round(d, hn::LoadU(d, &sum[j * lanes]), hn::LoadU(df, &positive[j * lanes]),
                        hn::LoadU(df, &negative[j * lanes]), a[j]);
  }
  output.StoreQuad(d, v[0], v[1], v[2], v[3], quad);
  for (std::int64_t j = 0; j < 4; ++j) {
    const std::int64_t c = j * lanes;
    v[j] = output.Round(d, hn::LoadU(d, sums + c), hn::LoadU(df, e.Positive() + c),
                        hn::LoadU(df, e.Negative() + c), LoadBytes(d, addend + c));
    output.Store(d, v[j], single + c);
  }
  // As if the vectors were four pixels.
  for (const std::int64_t stride : {lanes, lanes + 3}) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(4 * stride));
    output.StoreFour(d, v[0], v[1], v[2], v[3], pixels.data(), stride);
    for (std::int64_t c = 0; c < 4 * lanes; ++c) {
      if (pixels[c / lanes * stride + c % lanes] != single[c]) single[c] ^= 0xFF;  // fails the test
    }
  }
}

void ToBytesOfTarget(const QuantizedEpilogue& e, const std::int32_t* sums,
                     const std::uint8_t* addend, std::uint8_t* quad, std::uint8_t* single) {
  WithForm(e, [&](auto form) { ToBytes<decltype(form)::value>(e, sums, addend, quad, single); });
}

template <bool kVnni>
void DotLanes(const std::uint8_t* a, const std::int8_t* b, std::int32_t* sums) {
  const hn::ScalableTag<std::int32_t> d;
  const auto words = [&](const void* bytes)
                         HWY_ATTR { return hn::LoadU(d, static_cast<const std::int32_t*>(bytes)); };
  hn::StoreU(DotBytes<kVnni>(d, hn::LoadU(d, sums), words(a), words(b)), d, sums);
}

void DotOfTarget(bool vnni, const std::uint8_t* a, const std::int8_t* b, std::int32_t* sums) {
  if constexpr (kTargetHasVnni) {
    if (vnni) return DotLanes<true>(a, b, sums);
  }
  DotLanes<false>(a, b, sums);
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ops/error.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

HWY_EXPORT(ToBytesOfTarget);
HWY_EXPORT(DotOfTarget);

class OnEachTarget : public testing::Test {
 protected:
  ~OnEachTarget() override { ForceCpuTarget(AvailableCpuTargets().front()); }
};
using QuantizedEpilogueTest = OnEachTarget;
using DotTest = OnEachTarget;

TEST_F(QuantizedEpilogueTest, VectorsGiveTheBytesOfTheDefinition) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr std::int64_t kChannels = 64;  // 4 * lanes of every target divides it
  std::mt19937 random(7);
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> list[] = {values...};
    return list[random() % sizeof...(values)];
  };
  std::map<QuantizedForm, int> forms;
  for (int round = 0; round < 600; ++round) {
    QuantizedConvParams p;
    p.conv = {};
    p.conv.out_channels = kChannels;
    p.conv.epilogue.activation =
        pick(Activation::kNone, Activation::kRelu, Activation::kLeakyRelu, Activation::kPRelu,
             Activation::kClip, Activation::kHardSwish);
    p.conv.epilogue.alpha = p.conv.epilogue.activation == Activation::kClip ? -1.5f : 0.1f;
    p.conv.epilogue.beta = pick(6.0f, 6.0f, -2.0f);
    p.x = {0.02f, static_cast<std::int32_t>(random() % 256)};
    p.y = {pick(0.01f, 0.05f, 1e-6f, 30.0f), static_cast<std::int32_t>(pick(0, 17, 128, 255))};
    p.has_addend = random() % 3 == 0;
    p.addend = {0.03f, static_cast<std::int32_t>(random() % 256)};
    // Also factors below 0, beyond float32 and of NaN.
    const bool odd = round % 4 == 0;
    std::vector<std::int8_t> weights(kChannels);
    std::vector<float> scales(kChannels), slopes(kChannels);
    std::vector<std::int32_t> bias(kChannels);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      weights[c] = static_cast<std::int8_t>(random());
      scales[c] = odd ? pick(-0.01f, -1e6f, 3e38f, -3e38f, 0.0f, kNaN) : pick(0.01f, 0.003f, 0.1f);
      slopes[c] = odd ? pick(kNaN, -0.3f) : pick(-0.3f, 0.0f, 0.25f, 1.0f, 1.7f);
      bias[c] = static_cast<std::int32_t>(random() % 2001) - 1000;
    }
    const auto share = [](Tensor t) { return std::make_shared<const Tensor>(std::move(t)); };
    const QuantizedConvConstants constants = {
        share(Tensor::FromVector<std::int8_t>({kChannels, 1, 1, 1}, weights)),
        share(Tensor::FromVector<float>({kChannels}, scales)),
        share(Tensor::FromVector<std::int32_t>({kChannels}, bias)),
        share(Tensor::FromVector<float>({kChannels}, slopes))};
    const QuantizedEpilogue e(p, constants, kChannels);
    ++forms[e.form];

    std::vector<std::int32_t> sums(kChannels);
    std::vector<std::uint8_t> addend(kChannels), expected(kChannels);
    for (std::int64_t c = 0; c < kChannels; ++c) {
      const int bits = static_cast<int>(random() % 32);
      sums[c] = random() % 8 == 0 ? 0 : static_cast<std::int32_t>(random()) >> bits;
      addend[c] = static_cast<std::uint8_t>(random());
      expected[c] = e.ToByte(sums[c], c, addend[c]);
    }
    for (const std::string& target : AvailableCpuTargets()) {
      ASSERT_TRUE(ForceCpuTarget(target));
      const std::int64_t group = 4 * FloatLanes();
      std::vector<std::uint8_t> quad(group), single(group);
      // The first groups only: the functions take channels from 0 on.
      HWY_DYNAMIC_DISPATCH(ToBytesOfTarget)
      (e, sums.data(), addend.data(), quad.data(), single.data());
      for (std::int64_t c = 0; c < group; ++c) {
        ASSERT_EQ(quad[c], expected[c])
            << target << " round " << round << " channel " << c << " sum " << sums[c];
        ASSERT_EQ(single[c], expected[c]) << target << " round " << round << " channel " << c;
      }
    }
  }
  EXPECT_EQ(forms.size(), 5);
  for (const auto& [form, rounds] : forms) EXPECT_GT(rounds, 20);
}

// Sums that begin at 2^23 give the same bytes without being converted, also where factors times
// sums are halfway between integers.
TEST_F(QuantizedEpilogueTest, OffsetSumsGiveTheBytesOfTheDefinition) {
  constexpr std::int64_t kChannels = 64;
  std::mt19937 random(11);
  QuantizedConvParams p;
  p.conv = {};
  p.conv.out_channels = kChannels;
  std::vector<float> scales(kChannels);
  const float kScales[] = {0.5f, 0.25f, 1.0f / 6, 0.0078125f, 0.99f, 3e-5f, 0.0f, 1e-39f};
  for (float& scale : scales) scale = kScales[random() % std::size(kScales)];
  const QuantizedConvConstants constants = {
      std::make_shared<const Tensor>(Tensor::FromVector<std::int8_t>(
          {kChannels, 1, 1, 1}, std::vector<std::int8_t>(kChannels, 1))),
      std::make_shared<const Tensor>(Tensor::FromVector<float>({kChannels}, scales)), nullptr,
      nullptr};
  const QuantizedEpilogue definition(p, constants, kChannels);
  for (const std::string& target : AvailableCpuTargets()) {
    ASSERT_TRUE(ForceCpuTarget(target));
    QuantizedEpilogue e(p, constants, kChannels);
    e.OffsetSums();
    ASSERT_EQ(e.form, FloatLanes() == 16 ? QuantizedForm::kOffset : QuantizedForm::kLinear);
    const std::int32_t offset = e.Bias()[0] - definition.Bias()[0];
    ASSERT_EQ(offset, FloatLanes() == 16 ? kSumOffset : 0);
    const std::int64_t group = 4 * FloatLanes();
    for (int round = 0; round < 2000; ++round) {
      std::vector<std::int32_t> sums(kChannels), begun(kChannels);
      for (std::int64_t c = 0; c < kChannels; ++c) {
        const int bits = static_cast<int>(random() % 31);
        sums[c] = static_cast<std::int32_t>(random() % (1 << 23)) >> bits % 23;
        if (random() % 3 == 0) sums[c] = -static_cast<std::int32_t>((1u << bits) - random() % 2);
        if (random() % 16 == 0) sums[c] = static_cast<std::int32_t>(random() % 3) - 1;
        begun[c] = sums[c] + offset;
      }
      std::vector<std::uint8_t> quad(group), single(group), addend(kChannels);
      HWY_DYNAMIC_DISPATCH(ToBytesOfTarget)
      (e, begun.data(), addend.data(), quad.data(), single.data());
      for (std::int64_t c = 0; c < group; ++c) {
        const std::uint8_t expected = definition.ToByte(sums[c], c, 0);
        ASSERT_EQ(quad[c], expected) << target << " channel " << c << " sum " << sums[c];
        ASSERT_EQ(single[c], expected) << target << " channel " << c << " sum " << sums[c];
      }
    }
  }
}

// Only where sums and factors are in the range, and the lowest byte is that of 0.
TEST_F(QuantizedEpilogueTest, OffsetSumsStayInTheirRange) {
  const auto can_offset = [](float scale, std::int32_t bias, std::int32_t zero_point,
                             std::int8_t weight) {
    QuantizedConvParams p;
    p.conv = {};
    p.conv.out_channels = 1;
    p.y.zero_point = zero_point;
    const auto share = [](Tensor t) { return std::make_shared<const Tensor>(std::move(t)); };
    const QuantizedConvConstants constants = {
        share(Tensor::FromVector<std::int8_t>({1, 1, 1, 1}, {weight})),
        share(Tensor::FromVector<float>({1}, {scale})),
        share(Tensor::FromVector<std::int32_t>({1}, {bias})), nullptr};
    return QuantizedEpilogue(p, constants, 16).can_offset;
  };
  constexpr std::int32_t kMost = (1 << 23) - 1, kLeast = -(1 << 30);
  EXPECT_TRUE(can_offset(0.5f, 0, 0, 1));
  EXPECT_FALSE(can_offset(0.5f, 0, 1, 1));
  EXPECT_FALSE(can_offset(-0.5f, 0, 0, 1));
  EXPECT_FALSE(can_offset(2.0f, 0, 0, 1));
  EXPECT_TRUE(can_offset(0.5f, kMost - 255, 0, 1));
  EXPECT_FALSE(can_offset(0.5f, kMost - 254, 0, 1));
  EXPECT_TRUE(can_offset(0.5f, kLeast + 255, 0, -1));
  EXPECT_FALSE(can_offset(0.5f, kLeast + 254, 0, -1));
}

// A factor beyond 1 either way takes a sum out of int32, where conversion alone does not saturate.
TEST_F(QuantizedEpilogueTest, SaturationAloneIsForSmallFactors) {
  for (const auto& [scale, form] : {std::pair{0.5f, QuantizedForm::kLinear},
                                    {-0.5f, QuantizedForm::kLinear},
                                    {2.0f, QuantizedForm::kSlope},
                                    {-2.0f, QuantizedForm::kSlope}}) {
    QuantizedConvParams p;
    p.conv = {};
    p.conv.out_channels = 1;
    const QuantizedConvConstants constants = {
        std::make_shared<const Tensor>(Tensor::FromVector<std::int8_t>({1, 1, 1, 1}, {1})),
        std::make_shared<const Tensor>(Tensor::FromVector<float>({1}, {scale})), nullptr, nullptr};
    EXPECT_EQ(QuantizedEpilogue(p, constants, 16).form, form) << scale;
    p.conv.epilogue.activation = Activation::kHardSwish;
    EXPECT_EQ(QuantizedEpilogue(p, constants, 16).form, form == QuantizedForm::kLinear
                                                            ? QuantizedForm::kHardSwish
                                                            : QuantizedForm::kWideHardSwish)
        << scale;
  }
}

TEST(Quantization, ZeroPointsAreBytes) {
  OpNode node{.name = "test", .type = "QuantizedConv", .opset = 17, .attributes = {}};
  WriteQuantization({0.5f, 255}, "x", node.attributes);
  EXPECT_EQ(ReadQuantization(node, "x"), (Quantization{0.5f, 255}));
  for (const std::int32_t zero_point : {-1, 256}) {
    WriteQuantization({0.5f, zero_point}, "x", node.attributes);
    EXPECT_THROW(ReadQuantization(node, "x"), Error);
  }
}

TEST_F(DotTest, IsExactOnEveryTarget) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint8_t> a(64);
    std::vector<std::int8_t> b(64);
    std::vector<std::int32_t> start(16);
    for (std::uint8_t& v : a) v = round % 2 == 0 ? 255 : static_cast<std::uint8_t>(random());
    for (std::int8_t& v : b) v = round % 3 == 0 ? -128 : static_cast<std::int8_t>(random());
    for (std::int32_t& v : start) v = static_cast<std::int32_t>(random());
    for (const std::string& target : AvailableCpuTargets()) {
      ASSERT_TRUE(ForceCpuTarget(target));
      std::vector<std::int32_t> sums = start;
      HWY_DYNAMIC_DISPATCH(DotOfTarget)(HasVnni(), a.data(), b.data(), sums.data());
      for (int i = 0; i < FloatLanes(); ++i) {
        auto expected = static_cast<std::uint32_t>(start[i]);
        for (int k = 4 * i; k < 4 * i + 4; ++k) {
          expected += static_cast<std::uint32_t>(int{a[k]} * int{b[k]});
        }
        ASSERT_EQ(sums[i], static_cast<std::int32_t>(expected)) << target << " lane " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera
#endif  // HWY_ONCE
