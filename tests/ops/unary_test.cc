#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "simd/flush_denormals.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int kNewest = kMaxOpset;

struct Case {
  const char* type;
  std::function<double(double)> function;
  // Arguments are taken from [lo, hi].
  double lo = -6, hi = 6;
};

double HardGate(double x, double alpha, double beta) {
  return std::max(0.0, std::min(1.0, alpha * x + beta));
}

double RoundToEven(double x) {
  const double below = std::floor(x), rest = x - below;
  return rest < 0.5 || (rest == 0.5 && std::fmod(below, 2) == 0) ? below : below + 1;
}

double Softplus(double x) { return x > 30 ? x : std::log1p(std::exp(x)); }

const Case kCases[] = {
    {"Abs", [](double x) { return std::abs(x); }},
    {"Acos", [](double x) { return std::acos(x); }, -1, 1},
    {"Acosh", [](double x) { return std::acosh(x); }, 1, 50},
    {"Asin", [](double x) { return std::asin(x); }, -1, 1},
    {"Asinh", [](double x) { return std::asinh(x); }},
    {"Atan", [](double x) { return std::atan(x); }},
    {"Atanh", [](double x) { return std::atanh(x); }, -0.9, 0.9},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Celu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
    {"Cos", [](double x) { return std::cos(x); }, -9, 9},
    {"Cosh", [](double x) { return std::cosh(x); }},
    {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
    {"Erf", [](double x) { return std::erf(x); }},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Floor", [](double x) { return std::floor(x); }},
    {"Gelu", [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }},
    {"HardSigmoid", [](double x) { return HardGate(x, 0.2, 0.5); }},
    {"HardSwish", [](double x) { return x * HardGate(x, 1.0 / 6, 0.5); }},
    {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
    {"Log", [](double x) { return std::log(x); }, 0.01, 9},
    {"Mish", [](double x) { return x * std::tanh(Softplus(x)); }},
    {"Neg", [](double x) { return -x; }},
    {"Reciprocal", [](double x) { return 1 / x; }, 0.1, 6},
    {"Relu", [](double x) { return std::max(0.0, x); }},
    {"Round", RoundToEven},
    {"Selu",
     [](double x) {
       return 1.0507009873554805 * (x < 0 ? 1.6732632423543773 * std::expm1(x) : x);
     }},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"Sign", [](double x) { return x > 0   ? 1.0
                                   : x < 0 ? -1.0
                                           : 0.0; }},
    {"Sin", [](double x) { return std::sin(x); }, -9, 9},
    {"Sinh", [](double x) { return std::sinh(x); }},
    {"Softplus", Softplus},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }},
    {"Sqrt", [](double x) { return std::sqrt(x); }, 0, 9},
    {"Tan", [](double x) { return std::tan(x); }, -1.5, 1.5},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }},
};

class UnaryTest : public testing::TestWithParam<Case> {};

TEST_P(UnaryTest, ComputesItsFunctionInEveryLayout) {
  const Case& c = GetParam();
  std::mt19937 random(1);
  std::uniform_real_distribution<float> values(static_cast<float>(c.lo), static_cast<float>(c.hi));
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{7}, Shape{2, 19, 5, 3},
                             Shape{1, 64, 33, 40}, Shape{1, 3, 1, 1}, Shape{2, 0, 4, 4}}) {
    Tensor x(DType::kFloat32, shape);
    for (float& v : x.values<float>()) v = values(random);
    const Tensor y = OpCall(c.type, kNewest).In(x.Clone()).RunOne(2e-6);
    ASSERT_EQ(y.shape(), shape);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double want = c.function(static_cast<double>(x.data<float>()[i]));
      ASSERT_NEAR(y.data<float>()[i], want, 2e-6 * std::max(1.0, std::abs(want)));
    }
  }
}

TEST_P(UnaryTest, KeepsNanAndOtherTypes) {
  const Case& c = GetParam();
  const Tensor y = OpCall(c.type, kNewest).In(Floats({18}, std::vector<float>(18, kNan))).RunOne();
  for (float v : y.values<float>()) EXPECT_TRUE(std::isnan(v));
  if (std::string(c.type) == "Celu") return;  // of float32 alone
  const double x = c.lo + 0.75 * (c.hi - c.lo);
  const Tensor d = OpCall(c.type, kNewest).In(Values<double>({2}, {c.lo, x})).RunOne();
  EXPECT_NEAR(d.data<double>()[1], c.function(x), 1e-7 * std::max(1.0, std::abs(c.function(x))));
  const Half h = static_cast<float>(x);
  const Tensor half = OpCall(c.type, kNewest).In(Values<Half>({1}, {h})).RunOne();
  const double want = c.function(static_cast<double>(static_cast<float>(h)));
  EXPECT_NEAR(static_cast<float>(half.data<Half>()[0]), want, 1e-3 * std::max(1.0, std::abs(want)));
}

TEST_P(UnaryTest, IsPointwiseAndStaysBlocked) {
  const OpCall call = OpCall(GetParam().type, kNewest).In(Iota({1, 16, 2, 2}));
  EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kBlocked);
  EXPECT_TRUE(call.Field());
  EXPECT_THROW(OpCall(GetParam().type, kNewest).In(Values<bool>({1}, {true})).Infer(), Error);
}

INSTANTIATE_TEST_SUITE_P(Ops, UnaryTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.type; });

std::vector<float> FloatsOf(const OpCall& call) { return ToVector<float>(call.RunOne()); }

TEST(Unary, ReadsAttributes) {
  const auto run = [](OpCall call) { return FloatsOf(call.In(Floats({2}, {-2, 3}))); };
  EXPECT_EQ(run(OpCall("LeakyRelu").Attr("alpha", 0.5f)), (std::vector<float>{-1, 3}));
  EXPECT_EQ(run(OpCall("HardSigmoid").Attr("alpha", 0.25f).Attr("beta", 0.f)),
            (std::vector<float>{0, 0.75}));
  EXPECT_FLOAT_EQ(run(OpCall("Elu").Attr("alpha", 2.f))[0], 2 * std::expm1(-2.f));
  EXPECT_FLOAT_EQ(run(OpCall("Celu").Attr("alpha", 2.f))[0], 2 * std::expm1(-1.f));
  // The plain kernel, without the range of the vector function.
  EXPECT_FLOAT_EQ(run(OpCall("Celu").Attr("alpha", -0.5f))[0], -0.5f * std::expm1(4.f));
  EXPECT_EQ(run(OpCall("Celu").Attr("alpha", -0.5f))[1], 3);
  EXPECT_FLOAT_EQ(run(OpCall("Selu").Attr("alpha", 2.f).Attr("gamma", 3.f))[0],
                  6 * std::expm1(-2.f));
  EXPECT_EQ(run(OpCall("Selu").Attr("gamma", 3.f))[1], 9);
  EXPECT_EQ(run(OpCall("ThresholdedRelu").Attr("alpha", -2.5f)), (std::vector<float>{-2, 3}));
  EXPECT_EQ(run(OpCall("ThresholdedRelu").Attr("alpha", 3.f)), (std::vector<float>{0, 0}));
}

TEST(Unary, GeluHasAnApproximation) {
  const auto call = [](const char* approximate) {
    OpCall c("Gelu", 20);
    c.Attr("approximate", approximate).In(Floats({4}, {-1, 0.5, 3, 100}));
    return c;
  };
  const std::vector<float> y = FloatsOf(call("tanh"));
  // From the formula, in decimal arithmetic.
  EXPECT_NEAR(y[0], -0.158808009, 2e-7);
  EXPECT_NEAR(y[1], 0.345714010, 2e-7);
  EXPECT_NEAR(y[2], 2.996362607, 1e-6);
  EXPECT_EQ(y[3], 100);
  EXPECT_NEAR(FloatsOf(call("none"))[0], -0.158655254, 2e-7);
  EXPECT_THROW(call("erf").Infer(), Error);
}

TEST(Unary, TakesIntegersWhereTheSpecificationDoes) {
  const auto in = [] { return Values<std::int32_t>({4}, {-5, 0, INT32_MIN, 7}); };
  const auto run = [&](const char* type) {
    return ToVector<std::int32_t>(OpCall(type).In(in()).RunOne());
  };
  EXPECT_EQ(run("Neg"), (std::vector<std::int32_t>{5, 0, INT32_MIN, -7}));
  EXPECT_EQ(run("Abs"), (std::vector<std::int32_t>{5, 0, INT32_MIN, 7}));
  EXPECT_EQ(run("Relu"), (std::vector<std::int32_t>{0, 0, 0, 7}));
  EXPECT_EQ(run("Sign"), (std::vector<std::int32_t>{-1, 0, -1, 1}));
  EXPECT_EQ(run("Erf"), (std::vector<std::int32_t>{0, 0, -1, 1}));
  const auto bytes = [] { return Values<std::uint8_t>({3}, {200, 0, 1}); };
  EXPECT_EQ(ToVector<std::uint8_t>(OpCall("Abs").In(bytes()).RunOne()),
            (std::vector<std::uint8_t>{200, 0, 1}));
  EXPECT_EQ(ToVector<std::uint8_t>(OpCall("Sign").In(bytes()).RunOne()),
            (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(ToVector<std::uint8_t>(OpCall("Erf").In(bytes()).RunOne()),
            (std::vector<std::uint8_t>{1, 0, 0}));
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Neg").In(Int64s({INT64_MIN, 3})).RunOne()),
            (std::vector<std::int64_t>{INT64_MIN, -3}));
  EXPECT_THROW(OpCall("Sigmoid").In(in()).Infer(), Error);
  EXPECT_THROW(OpCall("Neg").In(bytes()).Infer(), Error);
  EXPECT_THROW(OpCall("Relu", 13).In(in()).Infer(), Error);
  EXPECT_THROW(OpCall("Celu").In(Values<double>({1}, {1})).Infer(), Error);
}

TEST(Unary, HandlesExtremeValues) {
  const auto run = [](const char* type, std::vector<float> x) {
    const auto n = static_cast<std::int64_t>(x.size());
    return FloatsOf(OpCall(type, kNewest).In(Floats({n}, x)));
  };
  using V = std::vector<float>;
  // Eight values each, so that whole vectors are computed.
  EXPECT_EQ(run("Round", {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 8388609, -kInfinity}),
            (V{-2, -2, -0.f, 0, 2, 2, 8388609, -kInfinity}));
  EXPECT_EQ(run("Floor", {-1.5, -1, 1.5, 3e9f, -3e9f, kInfinity, 16777216, -0.25}),
            (V{-2, -1, 1, 3e9f, -3e9f, kInfinity, 16777216, -1}));
  EXPECT_EQ(run("Ceil", {-1.5, -1, 1.5, 3e9f, -3e9f, kInfinity, 16777216, 0.25}),
            (V{-1, -1, 2, 3e9f, -3e9f, kInfinity, 16777216, 1}));
  EXPECT_EQ(run("Sign", {kInfinity, -kInfinity, 0, -0.f, 1e-40f, -1e-40f, 5, -5}),
            (V{1, -1, 0, 0, 1, -1, 1, -1}));
  const V log = run("Log", {0, -0.f, kInfinity, 1, -1, -kInfinity, 1e-40f, 3e38f});
  EXPECT_EQ((V(log.begin(), log.begin() + 4)), (V{-kInfinity, -kInfinity, kInfinity, 0}));
  EXPECT_TRUE(std::isnan(log[4]) && std::isnan(log[5]));
  EXPECT_FLOAT_EQ(log[6], std::log(1e-40f));
  EXPECT_FLOAT_EQ(log[7], std::log(3e38f));
  EXPECT_EQ(run("Erf", {kInfinity, -kInfinity, 5, -5, 0, 1e30f, 4, -4}),
            (V{1, -1, 1, -1, 0, 1, 1, -1}));
  EXPECT_EQ(run("Softplus", {kInfinity, -kInfinity, 1e30f, -1e30f, 100, -200, 1000, 200}),
            (V{kInfinity, 0, 1e30f, 0, 100, 0, 1000, 200}));
  EXPECT_EQ(run("Mish", {kInfinity, 1e30f, -1e30f, 100, -200, 1000, 200, 0}),
            (V{kInfinity, 1e30f, 0, 100, 0, 1000, 200, 0}));
  EXPECT_EQ(run("Gelu", {kInfinity, 1e30f, -1e30f, 100, -200, 1000, 200, 0}),
            (V{kInfinity, 1e30f, 0, 100, 0, 1000, 200, 0}));
  EXPECT_EQ(run("Reciprocal", {kInfinity, 0, -0.f, 4, -kInfinity, 1, 0.5, -0.25}),
            (V{0, kInfinity, -kInfinity, 0.25, 0, 1, 2, -4}));
  // Angles beyond what vectors reduce, next to those that they do.
  const V angles{1e10f, -8193, 3e38f, 0.5, -100000, 8192, 1e-30f, -1};
  const V sines = run("Sin", angles), cosines = run("Cos", angles);
  for (std::size_t i = 0; i < angles.size(); ++i) {
    EXPECT_NEAR(sines[i], std::sin(static_cast<double>(angles[i])), 2e-7);
    EXPECT_NEAR(cosines[i], std::cos(static_cast<double>(angles[i])), 2e-7);
  }
  EXPECT_TRUE(std::isnan(run("Sin", {kInfinity})[0]));
  EXPECT_TRUE(std::isnan(run("Acos", {2})[0]));
  EXPECT_EQ(run("Atanh", {1})[0], kInfinity);
}

// Where the CPU takes subnormal numbers for 0, as it does while a network runs.
TEST(Unary, SignIsAWholeNumber) {
  const OpCall call = std::move(OpCall("Sign").In(Floats({20}, std::vector<float>(20, -1e-40f))));
  for (const bool reference : {true, false}) {
    std::vector<Tensor> y;
    {
      const FlushDenormals flush;
      y = call.Run({.reference = reference});
    }
    for (float v : y[0].values<float>()) EXPECT_TRUE(v == 0 || v == -1) << v;
  }
}

TEST(Unary, UsesTheVectorKernelForFloats) {
  const OpCall call = OpCall("Relu").In(Iota({1, 16, 2, 2}));
  EXPECT_EQ(call.KernelName({}), "unary_vector");
  EXPECT_EQ(call.KernelName({.reference = true}), "unary_plain");
  EXPECT_EQ(OpCall("Celu").Attr("alpha", -1.f).In(Iota({4})).KernelName({}), "unary_plain");
}

TEST(FloatClass, FindsInfinitiesAndNan) {
  const auto x = [] { return Floats({2, 3}, {1, kInfinity, -kInfinity, kNan, -0.f, 3e38f}); };
  using B = std::vector<bool>;
  const auto run = [](const OpCall& call) { return ToVector<bool>(call.RunOne()); };
  EXPECT_EQ(run(OpCall("IsNaN").In(x())), (B{false, false, false, true, false, false}));
  EXPECT_EQ(run(OpCall("IsInf").In(x())), (B{false, true, true, false, false, false}));
  EXPECT_EQ(run(OpCall("IsInf").Attr("detect_negative", 0).In(x())),
            (B{false, true, false, false, false, false}));
  EXPECT_EQ(run(OpCall("IsInf").Attr("detect_positive", 0).In(x())),
            (B{false, false, true, false, false, false}));
  EXPECT_EQ(run(OpCall("IsInf").Attr("detect_positive", 0).Attr("detect_negative", 0).In(x())),
            B(6, false));
  EXPECT_EQ(run(OpCall("IsNaN").In(Values<double>({2}, {NAN, 1}))), (B{true, false}));
  EXPECT_EQ(run(OpCall("IsInf", 20).In(Values<Half>({2}, {Half(kInfinity), Half(1.f)}))),
            (B{true, false}));
  EXPECT_EQ(run(OpCall("IsNaN").In(Values<Half>({}, {Half(kNan)}))), B{true});
  EXPECT_EQ(OpCall("IsNaN").In(Floats({0, 2}, {})).RunOne().shape(), (Shape{0, 2}));
  EXPECT_THROW(OpCall("IsInf", 19).In(Values<Half>({1}, {Half(1.f)})).Infer(), Error);
  EXPECT_THROW(OpCall("IsNaN").In(Int64s({1})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
