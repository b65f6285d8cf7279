#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

struct Case {
  const char* type;
  std::function<double(double)> function;
  double tolerance = 1e-6;
};

double HardGate(double x, double alpha, double beta) {
  return std::max(0.0, std::min(1.0, alpha * x + beta));
}

const Case kCases[] = {
    {"Abs", [](double x) { return std::abs(x); }},
    {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
    {"Exp", [](double x) { return std::exp(x); }},
    {"HardSigmoid", [](double x) { return HardGate(x, 0.2, 0.5); }},
    {"HardSwish", [](double x) { return x * HardGate(x, 1.0 / 6, 0.5); }},
    {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
    {"Neg", [](double x) { return -x; }},
    {"Relu", [](double x) { return std::max(0.0, x); }},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
    {"Tanh", [](double x) { return std::tanh(x); }},
};

class UnaryTest : public testing::TestWithParam<Case> {};

TEST_P(UnaryTest, ComputesItsFunctionInEveryLayout) {
  const Case& c = GetParam();
  std::mt19937 random(1);
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{2, 19, 5, 3},
                             Shape{1, 64, 33, 40}, Shape{1, 3, 1, 1}, Shape{2, 0, 4, 4}}) {
    Tensor x = RandomTensor(shape, random);
    for (float& v : x.values<float>()) v = std::string(c.type) == "Sqrt" ? v + 1 : v * 6;
    const Tensor y = OpCall(c.type).In(x.Clone()).RunOne(c.tolerance);
    ASSERT_EQ(y.shape(), shape);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double want = c.function(static_cast<double>(x.data<float>()[i]));
      ASSERT_NEAR(y.data<float>()[i], want, 2e-6 * std::max(1.0, std::abs(want)));
    }
  }
}

TEST_P(UnaryTest, KeepsNanAndOtherTypes) {
  const Case& c = GetParam();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = OpCall(c.type).In(Floats({18}, std::vector<float>(18, nan))).RunOne();
  for (float v : y.values<float>()) EXPECT_TRUE(std::isnan(v));
  const Tensor d = OpCall(c.type).In(Values<double>({2}, {0.25, 2.5})).RunOne();
  EXPECT_NEAR(d.data<double>()[1], c.function(2.5), 1e-7);
  const Tensor h = OpCall(c.type).In(Values<Half>({2}, {0.25f, 2.5f})).RunOne();
  EXPECT_NEAR(static_cast<float>(h.data<Half>()[1]), c.function(2.5), 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Ops, UnaryTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.type; });

TEST(Unary, ReadsAttributes) {
  const auto run = [](OpCall call) {
    return ToVector<float>(call.In(Floats({2}, {-2, 3})).RunOne());
  };
  EXPECT_EQ(run(OpCall("LeakyRelu").Attr("alpha", 0.5f)), (std::vector<float>{-1, 3}));
  EXPECT_EQ(run(OpCall("HardSigmoid").Attr("alpha", 0.25f).Attr("beta", 0.f)),
            (std::vector<float>{0, 0.75}));
  EXPECT_FLOAT_EQ(run(OpCall("Elu").Attr("alpha", 2.f))[0], 2 * std::expm1(-2.f));
}

TEST(Unary, TakesIntegersWhereTheSpecificationDoes) {
  const auto in = [] { return Values<std::int32_t>({3}, {-5, 0, INT32_MIN}); };
  EXPECT_EQ(ToVector<std::int32_t>(OpCall("Neg").In(in()).RunOne()),
            (std::vector<std::int32_t>{5, 0, INT32_MIN}));
  EXPECT_EQ(ToVector<std::int32_t>(OpCall("Abs").In(in()).RunOne()),
            (std::vector<std::int32_t>{5, 0, INT32_MIN}));
  EXPECT_EQ(ToVector<std::int32_t>(OpCall("Relu").In(in()).RunOne()),
            (std::vector<std::int32_t>{0, 0, 0}));
  EXPECT_EQ(ToVector<std::uint8_t>(OpCall("Abs").In(Values<std::uint8_t>({1}, {200})).RunOne()),
            (std::vector<std::uint8_t>{200}));
  EXPECT_THROW(OpCall("Sigmoid").In(in()).Infer(), Error);
  EXPECT_THROW(OpCall("Neg").In(Values<std::uint8_t>({1}, {1})).Infer(), Error);
}

TEST(Unary, UsesTheVectorKernelForFloats) {
  const OpCall call = OpCall("Relu").In(Iota({1, 16, 2, 2}));
  EXPECT_EQ(call.KernelName({}), "unary_vector");
  EXPECT_EQ(call.KernelName({.reference = true}), "unary_plain");
  EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kBlocked);
}

}  // namespace
}  // namespace tessera
