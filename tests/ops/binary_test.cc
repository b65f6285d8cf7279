#include <algorithm>
#include <cmath>
#include <functional>

#include "simd/cpu_target.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

// Broadcasting by the book: index arithmetic for each element.
Tensor Expected(const std::function<double(double, double)>& function, const Tensor& a,
                const Tensor& b) {
  const Shape shape = BroadcastShapes(a.shape(), b.shape());
  Tensor out(DType::kFloat32, shape);
  const auto strides = RowMajorStrides(shape);
  const auto at = [&](const Tensor& t, std::int64_t index) {
    std::int64_t offset = 0;
    const auto own = RowMajorStrides(t.shape());
    for (int d = 0; d < t.shape().rank(); ++d) {
      const auto to = static_cast<std::size_t>(d + shape.rank() - t.shape().rank());
      const std::int64_t i = index / strides[to] % shape[static_cast<int>(to)];
      if (t.shape()[d] != 1) offset += i * own[static_cast<std::size_t>(d)];
    }
    return static_cast<double>(t.data<float>()[offset]);
  };
  for (std::int64_t i = 0; i < out.size(); ++i) {
    out.data<float>()[i] = static_cast<float>(function(at(a, i), at(b, i)));
  }
  return out;
}

struct Case {
  const char* type;
  std::function<double(double, double)> function;
};

const Case kCases[] = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Div", [](double a, double b) { return a / b; }},
    {"Min", [](double a, double b) { return std::min(a, b); }},
    {"Max", [](double a, double b) { return std::max(a, b); }},
    {"Pow", [](double a, double b) { return std::pow(a, b); }},
};

class BinaryTest : public testing::TestWithParam<Case> {};

TEST_P(BinaryTest, BroadcastsBothWays) {
  std::mt19937 random(3);
  const std::pair<Shape, Shape> shapes[] = {
      {{}, {}},
      {{5}, {}},
      {{2, 3, 4}, {2, 3, 4}},
      {{2, 3, 4}, {4}},
      {{2, 3, 4}, {3, 1}},
      {{2, 1, 4}, {1, 3, 1}},
      {{2, 0, 4}, {1, 4}},
      {{1, 2, 1, 3, 1}, {2, 1, 2, 1, 3}},
      {{1, 20, 9, 7}, {1, 20, 9, 7}},
      {{2, 20, 9, 7}, {20, 1, 1}},
      {{2, 20, 9, 7}, {1, 20, 1, 1}},
      {{2, 20, 9, 7}, {2, 20, 1, 1}},
      {{2, 20, 9, 7}, {1, 1, 1, 1}},
      {{2, 20, 9, 7}, {2, 1, 9, 7}},
      {{2, 20, 9, 7}, {9, 7}},
      {{1, 33, 40, 31}, {33, 1, 1}},
      {{1, 3, 120, 300}, {1}},
  };
  for (const auto& [s, t] : shapes) {
    for (const bool swap : {false, true}) {
      Tensor a = RandomTensor(swap ? t : s, random), b = RandomTensor(swap ? s : t, random);
      // Away from zero, for Div and Pow.
      for (float& v : a.values<float>()) v += 1.5f;
      for (float& v : b.values<float>()) v += 1.5f;
      const Tensor y = OpCall(GetParam().type).In(a.Clone()).In(b.Clone()).RunOne();
      ExpectClose(y, Expected(GetParam().function, a, b), 1e-6, ToString(s) + " " + ToString(t));
    }
  }
}

TEST_P(BinaryTest, RefusesWhatDoesNotFit) {
  EXPECT_THROW(OpCall(GetParam().type).In(Iota({2})).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(OpCall(GetParam().type, 11).In(Iota({2})).In(Iota<std::int64_t>({2})).Infer(),
               Error);
  EXPECT_THROW(
      OpCall(GetParam().type).In(Values<bool>({1}, {true})).In(Values<bool>({1}, {true})).Infer(),
      Error);
}

INSTANTIATE_TEST_SUITE_P(Ops, BinaryTest, testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.type; });

TEST(Binary, StaysBlockedWhereOperandsCanBe) {
  const auto choice = [](Tensor b, bool constant) {
    OpCall call("Mul");
    call.In(Iota({2, 20, 4, 4}));
    constant ? call.Const(std::move(b)) : call.In(std::move(b));
    return call.BlockedChoice();
  };
  using L = std::vector<Layout>;
  const L blocked{Layout::kBlocked}, rows{Layout::kRowMajor};
  EXPECT_EQ(choice(Iota({2, 20, 4, 4}), false).outputs, blocked);
  EXPECT_EQ(choice(Iota({}), false).outputs, blocked);
  EXPECT_EQ(choice(Iota({20, 1, 1}), true).outputs, blocked);
  EXPECT_EQ(choice(Iota({2, 20, 1, 1}), false).inputs, (L{Layout::kBlocked, Layout::kBlocked}));
  EXPECT_EQ(choice(Iota({20, 1, 1}), false).outputs, rows);
  EXPECT_EQ(choice(Iota({4, 4}), true).outputs, rows);
}

// With one lane and one column a row is a single element, and rows do not touch.
TEST(Binary, BlockedColumnsOnEveryTarget) {
  std::mt19937 random(6);
  for (const std::string& target : AvailableCpuTargets()) {
    ASSERT_TRUE(ForceCpuTarget(target));
    for (const Shape& b : {Shape{2, 5, 4, 1}, Shape{}, Shape{5, 1, 1}, Shape{2, 5, 1, 1}}) {
      OpCall("Mul").In(RandomTensor({2, 5, 4, 1}, random)).In(RandomTensor(b, random)).RunAll(0);
    }
  }
  ForceCpuTarget(AvailableCpuTargets().front());
}

// RunOne compares the reference and the vector kernel in every layout.
TEST(Binary, AProductIsFollowedByAnActivation) {
  std::mt19937 random(7);
  const std::pair<const char*, std::function<double(double)>> activations[] = {
      {"Relu", [](double x) { return std::max(x, 0.0); }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.25 * x : x; }},
      {"Clip", [](double x) { return std::clamp(x, 0.25, 0.5); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"HardSigmoid", [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }},
      {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
  };
  for (const auto& [name, function] : activations) {
    const Tensor a = RandomTensor({2, 20, 9, 7}, random), b = RandomTensor({2, 20, 1, 1}, random);
    Tensor expected = Expected([](double x, double y) { return 9 * x * y; }, a, b);
    for (float& v : expected.values<float>()) v = static_cast<float>(function(v));
    Tensor a9 = a.Clone();
    for (float& v : a9.values<float>()) v *= 9;
    OpCall call("FusedMul");
    call.Attr("activation", name).Attr("activation_alpha", 0.25f).Attr("activation_beta", 0.5f);
    ExpectClose(call.In(std::move(a9)).In(b.Clone()).RunOne(), expected, 2e-6, name);
  }
  EXPECT_THROW(OpCall("FusedMul").In(Iota({2})).In(Iota({2})).Infer(), Error);
}

TEST(Binary, IntegersStayIntegers) {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Add").In(Int64s({big, 2})).In(Int64s({1, -5})).RunOne()),
            (std::vector<std::int64_t>{big + 1, -3}));
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("Div").In(Int64s({7, -7, 5, INT64_MIN})).In(Int64s({2, 2, 0, -1})).RunOne()),
            (std::vector<std::int64_t>{3, -3, 0, INT64_MIN}));
  EXPECT_EQ(ToVector<std::uint8_t>(OpCall("Sub", 14)
                                       .In(Values<std::uint8_t>({2}, {3, 200}))
                                       .In(Values<std::uint8_t>({}, {4}))
                                       .RunOne()),
            (std::vector<std::uint8_t>{255, 196}));
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("Pow").In(Int64s({3, -2, 2, 1})).In(Int64s({39, 3, -1, -7})).RunOne()),
            (std::vector<std::int64_t>{4052555153018976267, -8, 0, 1}));
}

TEST(Binary, PowTakesAnExponentOfAnotherTypeSinceOpset12) {
  const auto call = [](int opset) {
    OpCall c("Pow", opset);
    c.In(Floats({3}, {2, 9, -3})).In(Values<std::int32_t>({}, {2}));
    return c;
  };
  EXPECT_EQ(ToVector<float>(call(12).RunOne()), (std::vector<float>{4, 81, 9}));
  EXPECT_THROW(call(11).Infer(), Error);
  EXPECT_EQ(
      ToVector<std::int64_t>(OpCall("Pow").In(Int64s({4, 9})).In(Floats({}, {0.5f})).RunOne()),
      (std::vector<std::int64_t>{2, 3}));
}

TEST(Binary, MinAndMaxTakeAnyNumber) {
  const auto a = [] { return Floats({3}, {3, 2, 1}); };
  const auto b = [] { return Floats({3}, {1, 4, 4}); };
  const auto c = [] { return Floats({2, 1}, {2, 0}); };
  EXPECT_EQ(ToVector<float>(OpCall("Max").In(a()).RunOne()), (std::vector<float>{3, 2, 1}));
  EXPECT_EQ(ToVector<float>(OpCall("Max").In(a()).In(b()).In(c()).RunOne()),
            (std::vector<float>{3, 4, 4, 3, 4, 4}));
  EXPECT_EQ(ToVector<float>(OpCall("Min").In(a()).In(b()).In(c()).RunOne()),
            (std::vector<float>{1, 2, 1, 0, 0, 0}));
  std::mt19937 random(5);
  const Shape s{1, 20, 5, 6};
  OpCall("Min")
      .In(RandomTensor(s, random))
      .In(RandomTensor(s, random))
      .In(RandomTensor(s, random))
      .RunAll(0);
}

TEST(Binary, MinAndMaxPassNanOn) {
  std::vector<float> a(20, 1), b(20, 2);
  a[3] = a[17] = NAN;
  b[5] = b[18] = NAN;
  a[9] = -INFINITY;
  for (const char* type : {"Min", "Max"}) {
    const Tensor y = OpCall(type).In(Floats({20}, a)).In(Floats({20}, b)).RunOne(0);
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(std::isnan(y.data<float>()[i]), std::isnan(a[i]) || std::isnan(b[i])) << i;
    }
    EXPECT_TRUE(std::isnan(
        OpCall(type).In(Floats({}, {NAN})).In(Floats({}, {1})).RunOne().data<float>()[0]));
  }
}

TEST(Binary, SumAndMeanTakeAnyNumber) {
  const auto a = [] { return Floats({3}, {3, 0, 2}); };
  const auto b = [] { return Floats({3}, {1, 3, 4}); };
  const auto c = [] { return Floats({2, 1}, {2, 6}); };
  const auto run = [&](const char* type) {
    return ToVector<float>(OpCall(type).In(a()).In(b()).In(c()).RunOne());
  };
  EXPECT_EQ(run("Sum"), (std::vector<float>{6, 5, 8, 10, 9, 12}));
  EXPECT_EQ(run("Mean"), (std::vector<float>{2, 5.f / 3, 8.f / 3, 10.f / 3, 3, 4}));
  EXPECT_EQ(ToVector<float>(OpCall("Sum").In(a()).RunOne()), (std::vector<float>{3, 0, 2}));
  EXPECT_EQ(ToVector<float>(OpCall("Mean").In(a()).RunOne()), (std::vector<float>{3, 0, 2}));
  EXPECT_EQ(
      ToVector<double>(
          OpCall("Mean").In(Values<double>({2}, {1, 2})).In(Values<double>({}, {4})).RunOne()),
      (std::vector<double>{2.5, 3}));
  EXPECT_THROW(OpCall("Sum").In(Int64s({1})).In(Int64s({1})).Infer(), Error);
  // Without broadcasting at first.
  EXPECT_THROW(OpCall("Sum", 7).In(a()).In(c()).Infer(), Error);
  EXPECT_NO_THROW(OpCall("Sum", 7).In(a()).In(b()).Infer());
  std::mt19937 random(8);
  const Shape s{2, 20, 5, 6};
  Tensor x = RandomTensor(s, random), y = RandomTensor(s, random),
         z = RandomTensor({20, 1, 1}, random);
  Tensor expected(DType::kFloat32, s);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    expected.data<float>()[i] =
        (x.data<float>()[i] + y.data<float>()[i] + z.data<float>()[i / 30 % 20]) / 3;
  }
  OpCall mean("Mean");
  mean.In(std::move(x)).In(std::move(y)).Const(std::move(z));
  ExpectClose(mean.RunOne(), expected, 1e-6);
  EXPECT_EQ(mean.BlockedChoice().outputs[0], Layout::kBlocked);
}

TEST(Binary, TakesMoreTypesInLaterOpsets) {
  const auto infer = [](const char* type, int opset, auto value) {
    const auto in = [&] { return Values<decltype(value)>({1}, {value}); };
    return OpCall(type, opset).In(in()).In(in()).Infer()[0].dtype;
  };
  EXPECT_EQ(infer("Add", 7, std::int64_t{1}), DType::kInt64);
  EXPECT_EQ(infer("Mul", 7, std::uint32_t{1}), DType::kUint32);
  EXPECT_THROW(infer("Sub", 13, std::int8_t{1}), Error);
  EXPECT_EQ(infer("Div", 14, std::uint16_t{1}), DType::kUint16);
  EXPECT_THROW(infer("Max", 11, std::int32_t{1}), Error);
  EXPECT_EQ(infer("Min", 12, std::int8_t{1}), DType::kInt8);
  EXPECT_THROW(infer("PRelu", 8, std::int32_t{1}), Error);
  EXPECT_EQ(infer("PRelu", 9, std::int32_t{1}), DType::kInt32);
  EXPECT_THROW(infer("PRelu", 17, std::int8_t{1}), Error);
  EXPECT_THROW(infer("Pow", 11, std::int64_t{1}), Error);
  EXPECT_THROW(infer("Pow", 17, std::uint8_t{1}), Error);
}

TEST(Binary, DividesWithoutATrap) {
  EXPECT_EQ(ToVector<std::int32_t>(OpCall("Div")
                                       .In(Values<std::int32_t>({4}, {INT32_MIN, 5, -7, 0}))
                                       .In(Values<std::int32_t>({4}, {-1, 0, 2, 0}))
                                       .RunOne()),
            (std::vector<std::int32_t>{INT32_MIN, 0, -3, 0}));
  EXPECT_EQ(ToVector<std::int8_t>(OpCall("Div")
                                      .In(Values<std::int8_t>({2}, {-128, -128}))
                                      .In(Values<std::int8_t>({2}, {-1, 3}))
                                      .RunOne()),
            (std::vector<std::int8_t>{-128, -42}));
  EXPECT_EQ(ToVector<std::uint64_t>(OpCall("Div")
                                        .In(Values<std::uint64_t>({2}, {UINT64_MAX, 9}))
                                        .In(Values<std::uint64_t>({2}, {2, 0}))
                                        .RunOne()),
            (std::vector<std::uint64_t>{UINT64_MAX / 2, 0}));
  EXPECT_EQ(ToVector<float>(OpCall("Div").In(Floats({2}, {1, -1})).In(Floats({}, {0})).RunOne()),
            (std::vector<float>{INFINITY, -INFINITY}));
}

TEST(Binary, PowersOutOfRangeSaturate) {
  EXPECT_EQ(ToVector<std::int32_t>(OpCall("Pow")
                                       .In(Values<std::int32_t>({3}, {10, -10, -4}))
                                       .In(Floats({3}, {30, 31, 0.5f}))
                                       .RunOne()),
            (std::vector<std::int32_t>{INT32_MAX, INT32_MIN, 0}));
  EXPECT_EQ(ToVector<float>(OpCall("Pow").In(Floats({3}, {2, -2, 3})).In(Floats({}, {3})).RunOne()),
            (std::vector<float>{8, -8, 27}));
}

TEST(PRelu, TakesIntegers) {
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("PRelu", 9).In(Int64s({-3, 2, INT64_MIN})).In(Int64s({5, 5, 1})).RunOne()),
            (std::vector<std::int64_t>{-15, 2, INT64_MIN}));
  EXPECT_EQ(ToVector<std::uint32_t>(OpCall("PRelu", 9)
                                        .In(Values<std::uint32_t>({2}, {3, UINT32_MAX}))
                                        .In(Values<std::uint32_t>({1}, {7}))
                                        .RunOne()),
            (std::vector<std::uint32_t>{3, UINT32_MAX}));
}

TEST(PRelu, BroadcastsTheSlopeOneWay) {
  std::mt19937 random(4);
  const auto prelu = [](double x, double slope) { return x < 0 ? slope * x : x; };
  for (const Shape& slope :
       {Shape{}, Shape{1}, Shape{20, 1, 1}, Shape{1, 20, 1, 1}, Shape{20, 9, 7}, Shape{7}}) {
    const Tensor x = RandomTensor({2, 20, 9, 7}, random), s = RandomTensor(slope, random);
    const Tensor y = OpCall("PRelu").In(x.Clone()).In(s.Clone()).RunOne();
    ExpectClose(y, Expected(prelu, x, s), 1e-6);
  }
  EXPECT_THROW(OpCall("PRelu").In(Iota({3})).In(Iota({2, 3})).Infer(), Error);
}

TEST(Binary, FieldIsPointwiseUnlessAnOperandIsTiedToItsPlace) {
  const auto field = [](Tensor b, bool constant) {
    OpCall call("Add");
    call.In(Iota({1, 3, 8, 8}));
    constant ? call.Const(std::move(b)) : call.In(std::move(b));
    return call.Field();
  };
  EXPECT_TRUE(field(Iota({1, 3, 8, 8}), false));
  EXPECT_TRUE(field(Iota({3, 1, 1}), true));
  EXPECT_FALSE(field(Iota({1, 3, 8, 8}), true));
  EXPECT_FALSE(OpCall("Add").In(Iota({1, 3, 8, 8})).In(Iota({1, 3, 1, 1})).Field(1));
}

TEST(FusedCompare, GivesFloats) {
  const auto run = [](const char* function) {
    return ToVector<float>(OpCall("FusedCompare")
                               .Attr("function", function)
                               .In(Floats({2, 4}, {1, 2, 3, NAN, 0, 4, 2, INFINITY}))
                               .In(Floats({}, {2}))
                               .RunOne(0));
  };
  EXPECT_EQ(run("Equal"), (std::vector<float>{0, 1, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(run("Greater"), (std::vector<float>{0, 0, 1, 0, 0, 1, 0, 1}));
  EXPECT_EQ(run("GreaterOrEqual"), (std::vector<float>{0, 1, 1, 0, 0, 1, 1, 1}));
  EXPECT_EQ(run("Less"), (std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(run("LessOrEqual"), (std::vector<float>{1, 1, 0, 0, 1, 0, 1, 0}));
  EXPECT_THROW(run("And"), Error);
}

}  // namespace
}  // namespace tessera
