// How far the vector functions are from the exact ones, over the whole range of float32.
#include "ops/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "simd/cpu_target.h"

namespace tessera {
namespace {

struct Bound {
  const char* name;
  UnaryFn fn;
  std::function<double(double)> function;
  double ulps;
  // Beside ulps: this times the argument's magnitude, and this much.
  double relative_to_x = 0, absolute = 0;
  double lowest = -1e30;
};

// log(1 + e^x) and 1 + erf without cancellation.
double Softplus(double x) { return x > 40 ? x : std::log1p(std::exp(x)); }
double TwicePhi(double x) { return std::erfc(-x / std::sqrt(2.0)); }

double GeluTanh(double x) {
  return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

const Bound kBounds[] = {
    {"Cos", UnaryFn::kCos, [](double x) { return std::cos(x); }, 4, 0, 1e-10},
    {"Erf", UnaryFn::kErf, [](double x) { return std::erf(x); }, 4},
    {"Exp", UnaryFn::kExp, [](double x) { return std::exp(x); }, 2},
    {"Gelu", UnaryFn::kGelu, [](double x) { return x / 2 * TwicePhi(x); }, 0, 0x1p-22},
    {"GeluTanh", UnaryFn::kGeluTanh, GeluTanh, 0, 0x1p-22},
    {"Log", UnaryFn::kLog, [](double x) { return std::log(x); }, 2, 0, 0, 0},
    {"Mish", UnaryFn::kMish, [](double x) { return x * std::tanh(Softplus(x)); }, 4, 0, 1e-35},
    {"Sigmoid", UnaryFn::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 4},
    {"Sin", UnaryFn::kSin, [](double x) { return std::sin(x); }, 4, 0, 1e-10},
    {"Softplus", UnaryFn::kSoftplus, Softplus, 4},
    {"Tanh", UnaryFn::kTanh, [](double x) { return std::tanh(x); }, 4},
};

class AccuracyTest : public testing::TestWithParam<Bound> {};

TEST_P(AccuracyTest, StaysWithinItsBound) {
  const Bound& bound = GetParam();
  std::vector<float> xs;
  // Every exponent of both signs, and many mantissas.
  for (std::uint32_t bits = 0; bits < 0x7F800000u; bits += 0x3B37u) {
    xs.push_back(std::bit_cast<float>(bits));
    if (-xs.back() > bound.lowest) xs.push_back(-xs.back());
  }
  // More where functions bend.
  for (float x = -20; x < 20; x += 0x1.3p-12f) {
    if (x > bound.lowest) xs.push_back(x);
  }
  std::vector<float> ys(xs.size());
  for (const std::string& target : AvailableCpuTargets()) {
    ASSERT_TRUE(ForceCpuTarget(target));
    ApplyUnary({bound.fn}, xs.data(), ys.data(), static_cast<std::int64_t>(xs.size()));
    double worst = 0;
    float worst_x = 0;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      const double want = bound.function(static_cast<double>(xs[i]));
      const auto rounded = static_cast<float>(want);
      if (ys[i] == rounded) continue;
      const double magnitude =
          std::max(static_cast<double>(std::numeric_limits<float>::min()), std::abs(want));
      const double ulp = std::ldexp(1.0, std::ilogb(magnitude) - 23);
      const double error = std::abs(static_cast<double>(ys[i]) - want);
      // Below the normal numbers, a result may be flushed to 0.
      const double allowed = bound.ulps * ulp +
                             bound.relative_to_x * std::abs(static_cast<double>(xs[i])) +
                             bound.absolute + 1.2e-38;
      if (!(error / allowed <= worst)) worst = error / allowed, worst_x = xs[i];
    }
    EXPECT_LE(worst, 1) << target << " at " << worst_x;
    // The bound says something.
    EXPECT_GE(worst, 0.1) << target;
  }
  ForceCpuTarget(AvailableCpuTargets().front());
}

INSTANTIATE_TEST_SUITE_P(Functions, AccuracyTest, testing::ValuesIn(kBounds),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tessera
