#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/math_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

// `n` is a multiple of the lanes.
void ExpOfAll(const float* in, float* out, std::size_t n) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(Exp(d, hn::LoadU(d, in + i)), d, out + i);
  }
}
void SigmoidOfAll(const float* in, float* out, std::size_t n) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(Sigmoid(d, hn::LoadU(d, in + i)), d, out + i);
  }
}
void Expm1OfAll(const float* in, float* out, std::size_t n) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(Expm1OfNegative(d, hn::LoadU(d, in + i)), d, out + i);
  }
}
void TanhOfAll(const float* in, float* out, std::size_t n) {
  const hn::ScalableTag<float> d;
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(Tanh(d, hn::LoadU(d, in + i)), d, out + i);
  }
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(ExpOfAll);
HWY_EXPORT(SigmoidOfAll);
HWY_EXPORT(Expm1OfAll);
HWY_EXPORT(TanhOfAll);

class MathTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceCpuTarget(GetParam())); }
  void TearDown() override { ForceCpuTarget(AvailableCpuTargets().front()); }
};

// Evenly over the floats (by their bits) from -max to max, besides the special values.
std::vector<float> Arguments(float max) {
  std::vector<float> x = {0, -0.f, 1, -1, 88.7f, 88.73f, -87.3f, -103.9f, -104.1f, 1e30f, -1e30f};
  x.push_back(std::numeric_limits<float>::infinity());
  x.push_back(-std::numeric_limits<float>::infinity());
  x.push_back(std::numeric_limits<float>::quiet_NaN());
  const std::uint32_t last = std::bit_cast<std::uint32_t>(max);
  for (std::uint32_t bits = 0x30000000u; bits < last; bits += 997) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-x.back());
  }
  while (x.size() % 16 != 0) x.push_back(0);
  return x;
}

// Distance in units of the last place of the float nearest to `wanted`.
double Ulps(float got, double wanted) {
  const float rounded = static_cast<float>(wanted);
  if (std::isnan(wanted)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(rounded)) return got == rounded ? 0 : 1e9;
  const float next = std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity());
  return std::abs(got - wanted) / (next - std::abs(rounded));
}

TEST_P(MathTest, ExpIsWithinTwoUlp) {
  const std::vector<float> x = Arguments(110);
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(ExpOfAll)(x.data(), y.data(), x.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double ulps = Ulps(y[i], std::exp(static_cast<double>(x[i])));
    worst = std::max(worst, ulps);
    ASSERT_LE(ulps, 2) << "exp(" << x[i] << ") = " << y[i];
  }
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST_P(MathTest, SigmoidIsWithinFourUlp) {
  const std::vector<float> x = Arguments(87);
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(SigmoidOfAll)(x.data(), y.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] < -87) {  // below the normal numbers
      ASSERT_NEAR(y[i], 0, 1.7e-38) << x[i];
      continue;
    }
    const double wanted = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    ASSERT_LE(Ulps(y[i], wanted), 4) << "sigmoid(" << x[i] << ") = " << y[i];
  }
}

TEST_P(MathTest, Expm1OfNegativeIsWithinThreeUlp) {
  const std::vector<float> x = Arguments(110);
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(Expm1OfAll)(x.data(), y.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double wanted = std::expm1(std::min(static_cast<double>(x[i]), 0.0));
    ASSERT_LE(Ulps(y[i], std::isnan(x[i]) ? x[i] : wanted), 3)
        << "expm1(" << x[i] << ") = " << y[i];
  }
}

TEST_P(MathTest, TanhIsWithinFourUlp) {
  const std::vector<float> x = Arguments(110);
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(TanhOfAll)(x.data(), y.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_LE(Ulps(y[i], std::tanh(static_cast<double>(x[i]))), 4)
        << "tanh(" << x[i] << ") = " << y[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MathTest, testing::ValuesIn(AvailableCpuTargets()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tessera
#endif  // HWY_ONCE
