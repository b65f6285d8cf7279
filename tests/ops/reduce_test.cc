#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;

template <typename Step>
double Fold(const std::vector<double>& values, double start, const Step& step) {
  return std::accumulate(values.begin(), values.end(), start, step);
}

TEST(ReduceMean, TakesAxesAsAttributeOrInput) {
  const auto x = [] { return Iota({2, 3, 2}); };
  const auto old = [&](Ints axes, int keep = 1) {
    return OpCall("ReduceMean", 13).Attr("axes", axes).Attr("keepdims", keep).In(x());
  };
  EXPECT_EQ(ToVector<float>(old({1}).RunOne()), (F{2, 3, 8, 9}));
  EXPECT_EQ(old({1}).RunOne().shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(ToVector<float>(old({0, 2}, 0).RunOne()), (F{3.5, 5.5, 7.5}));
  EXPECT_EQ(old({0, -1}, 0).RunOne().shape(), (Shape{3}));
  EXPECT_EQ(ToVector<float>(OpCall("ReduceMean", 13).Attr("keepdims", 0).In(x()).RunOne()),
            (F{5.5}));
  EXPECT_EQ(ToVector<float>(OpCall("ReduceMean", 18).In(x()).Const(Int64s({-1})).RunOne()),
            (F{0.5, 2.5, 4.5, 6.5, 8.5, 10.5}));
  EXPECT_EQ(OpCall("ReduceMean", 18).In(x()).RunOne().shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(ToVector<float>(OpCall("ReduceMean", 18)
                                .Attr("noop_with_empty_axes", 1)
                                .In(x())
                                .Const(Int64s({}))
                                .RunOne()),
            ToVector<float>(Iota({12})));
  EXPECT_THROW(old({3}).Infer(), Error);
  EXPECT_THROW(OpCall("ReduceMean", 13).In(Iota({0})).Infer(), Error);
}

TEST(ReduceMean, IsExactForLargePlanesAndIntegers) {
  std::mt19937 random(20);
  const Tensor x = RandomTensor({2, 5, 61, 67}, random);
  const Tensor y = OpCall("ReduceMean", 13).Attr("axes", Ints{2, 3}).In(x.Clone()).RunOne();
  for (std::int64_t p = 0; p < 10; ++p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 61 * 67; ++i)
      sum += static_cast<double>(x.data<float>()[p * 61 * 67 + i]);
    EXPECT_NEAR(y.data<float>()[p], sum / (61 * 67), 1e-8);
  }
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("ReduceMean", 13).Attr("axes", Ints{0}).In(Int64s({-3, 0, -4})).RunOne()),
            (Ints{-2}));
}

// Every reduction of a random tensor over random axes, against plain loops.
TEST(Reduce, AgreesWithPlainLoops) {
  std::mt19937 random(22);
  const std::pair<const char*, std::function<double(const std::vector<double>&)>> operators[] = {
      {"ReduceL1",
       [](const auto& v) {
         return Fold(v, 0, [](double s, double x) { return s + std::abs(x); });
       }},
      {"ReduceL2",
       [](const auto& v) {
         return std::sqrt(Fold(v, 0, [](double s, double x) { return s + x * x; }));
       }},
      {"ReduceLogSumExp",
       [](const auto& v) {
         return std::log(Fold(v, 0, [](double s, double x) { return s + std::exp(x); }));
       }},
      {"ReduceMax", [](const auto& v) { return *std::max_element(v.begin(), v.end()); }},
      {"ReduceMean",
       [](const auto& v) {
         return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
       }},
      {"ReduceMin", [](const auto& v) { return *std::min_element(v.begin(), v.end()); }},
      {"ReduceProd",
       [](const auto& v) { return Fold(v, 1, [](double s, double x) { return s * x; }); }},
      {"ReduceSum", [](const auto& v) { return std::accumulate(v.begin(), v.end(), 0.0); }},
      {"ReduceSumSquare",
       [](const auto& v) { return Fold(v, 0, [](double s, double x) { return s + x * x; }); }},
  };
  const Shape shapes[] = {
      {3, 5, 7, 9}, {2, 17, 4, 300}, {1, 32, 6, 5}, {2, 3, 1, 2}, {4, 1, 2, 70}};
  for (const auto& [type, function] : operators) {
    for (const Shape& shape : shapes) {
      for (const Ints& axes :
           {Ints{0}, Ints{1}, Ints{-1}, Ints{2, 3}, Ints{0, 2}, Ints{1, 3}, Ints{0, 1, 2, 3}}) {
        const Tensor x = RandomTensor(shape, random);
        std::vector<bool> reduced(4);
        for (const std::int64_t a : axes)
          reduced[static_cast<std::size_t>(a < 0 ? a + 4 : a)] = true;
        Shape out;
        for (int d = 0; d < 4; ++d)
          out.PushBack(reduced[static_cast<std::size_t>(d)] ? 1 : shape[d]);
        const auto strides = RowMajorStrides(out);
        std::vector<std::vector<double>> groups(static_cast<std::size_t>(out.NumElements()));
        for (std::int64_t i = 0; i < x.size(); ++i) {
          std::int64_t rest = i, to = 0;
          for (int d = 4; d-- > 0; rest /= shape[d]) {
            if (!reduced[static_cast<std::size_t>(d)])
              to += rest % shape[d] * strides[static_cast<std::size_t>(d)];
          }
          groups[static_cast<std::size_t>(to)].push_back(static_cast<double>(x.data<float>()[i]));
        }
        Tensor expected(DType::kFloat32, out);
        for (std::size_t i = 0; i < groups.size(); ++i)
          expected.data<float>()[i] = static_cast<float>(function(groups[i]));
        const Tensor y = OpCall(type, 18).In(x.Clone()).Const(Int64s(axes)).RunOne(2e-6);
        ExpectClose(y, expected, 2e-6, type);
      }
    }
  }
}

TEST(Reduce, SpatialMeansStayBlocked) {
  for (const auto& [type, blocks] :
       {std::pair{"ReduceMean", true}, {"ReduceMax", true}, {"ReduceSum", false}}) {
    for (const int keep : {1, 0}) {
      OpCall call(type, 18);
      call.Attr("keepdims", keep).In(Iota({2, 32, 5, 3})).Const(Int64s({2, -1}));
      const LayoutChoice choice = call.BlockedChoice();
      EXPECT_EQ(choice.inputs[0] == Layout::kBlocked, blocks) << type;
      EXPECT_EQ(choice.outputs[0] == Layout::kBlocked, blocks && keep == 1) << type;
      EXPECT_EQ(call.RunOne().shape(), keep == 1 ? (Shape{2, 32, 1, 1}) : (Shape{2, 32}));
    }
  }
  // 33 channels fill no whole blocks; other axes are no planes.
  EXPECT_EQ(OpCall("ReduceMean", 13)
                .Attr("axes", Ints{2, 3})
                .Attr("keepdims", 0)
                .In(Iota({2, 33, 5, 3}))
                .BlockedChoice()
                .inputs[0],
            Layout::kRowMajor);
  EXPECT_EQ(OpCall("ReduceMean", 13)
                .Attr("axes", Ints{1})
                .In(Iota({2, 32, 5, 3}))
                .BlockedChoice()
                .inputs[0],
            Layout::kRowMajor);
}

TEST(Reduce, IsPointwiseWhereItLeavesSpaceAlone) {
  const auto field = [](Ints axes, int keep) {
    return OpCall("ReduceMean", 13)
        .Attr("axes", axes)
        .Attr("keepdims", keep)
        .In(Iota({1, 4, 5, 3}))
        .Field()
        .has_value();
  };
  EXPECT_TRUE(field({1}, 1));
  EXPECT_FALSE(field({1, 2}, 1));
  EXPECT_FALSE(field({3}, 1));
}

TEST(Reduce, OfNothingGivesTheNeutralElement) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::pair<const char*, float> expected[] = {
      {"ReduceL1", 0.f},          {"ReduceL2", 0.f},    {"ReduceLogSum", -kInf},
      {"ReduceLogSumExp", -kInf}, {"ReduceMax", -kInf}, {"ReduceMin", kInf},
      {"ReduceProd", 1.f},        {"ReduceSum", 0.f},   {"ReduceSumSquare", 0.f},
  };
  for (const auto& [type, value] : expected) {
    for (const Shape& shape : {Shape{2, 0, 3}, Shape{2, 0, 30}}) {
      const Tensor y = OpCall(type, 20).In(Iota(shape)).Const(Int64s({1})).RunOne();
      EXPECT_EQ(ToVector<float>(y), F(static_cast<std::size_t>(2 * shape[2]), value)) << type;
    }
    // Nothing to do at all.
    EXPECT_EQ(OpCall(type, 20).In(Iota({0, 4})).Const(Int64s({1})).RunOne().size(), 0) << type;
  }
  EXPECT_EQ(ToVector<std::int32_t>(OpCall("ReduceMax", 20).In(Iota<std::int32_t>({0})).RunOne()),
            (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()}));
  EXPECT_EQ(ToVector<std::uint8_t>(OpCall("ReduceMin", 20).In(Iota<std::uint8_t>({0})).RunOne()),
            (std::vector<std::uint8_t>{255}));
  EXPECT_THROW(OpCall("ReduceMean", 20).In(Iota({2, 0})).Const(Int64s({1})).Infer(), Error);
}

TEST(Reduce, ExtremesOfNotANumberAreNotANumber) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const char* type : {"ReduceMax", "ReduceMin"}) {
    for (const Ints& axes : {Ints{1}, Ints{0}, Ints{2, 3}, Ints{0, 1, 2, 3}}) {
      for (const std::int64_t at : {0, 1, 40, 359}) {
        Tensor x = Iota({2, 3, 4, 15});
        x.data<float>()[at] = kNan;
        const Tensor y = OpCall(type, 13).Attr("axes", axes).In(std::move(x)).RunOne();
        EXPECT_EQ(std::count_if(y.values<float>().begin(), y.values<float>().end(),
                                [](float v) { return std::isnan(v); }),
                  1)
            << type << " " << at;
      }
    }
  }
}

TEST(Reduce, TakesScalars) {
  const auto one = [](const char* type) {
    return ToVector<float>(OpCall(type, 18).In(Floats({}, {-3})).RunOne())[0];
  };
  EXPECT_EQ(one("ReduceL1"), 3);
  EXPECT_EQ(one("ReduceMax"), -3);
  EXPECT_EQ(one("ReduceSumSquare"), 9);
  EXPECT_EQ(OpCall("ReduceSum", 18).In(Floats({}, {1})).RunOne().shape(), Shape{});
}

TEST(Reduce, WithoutAxesMayStillComputeElements) {
  const auto noop = [](const char* type) {
    return ToVector<float>(
        OpCall(type, 18).Attr("noop_with_empty_axes", 1).In(Floats({2}, {-2, 4})).RunOne());
  };
  EXPECT_EQ(noop("ReduceSum"), (F{-2, 4}));
  EXPECT_EQ(noop("ReduceL1"), (F{2, 4}));
  EXPECT_EQ(noop("ReduceSumSquare"), (F{4, 16}));
  EXPECT_EQ(noop("ReduceMin"), (F{-2, 4}));
}

TEST(Reduce, KeepsIntegersExact) {
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  const auto x = [&] { return Int64s({big, -3, 2}); };
  const auto one = [&](const char* type) {
    return ToVector<std::int64_t>(OpCall(type, 18).In(x()).RunOne())[0];
  };
  EXPECT_EQ(one("ReduceSum"), big - 1);
  EXPECT_EQ(one("ReduceMax"), big);
  EXPECT_EQ(one("ReduceMin"), -3);
  EXPECT_EQ(one("ReduceL1"), big + 5);
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("ReduceProd", 18).In(Int64s({1 << 30, 1 << 29, -3})).RunOne())[0],
            -3 * (std::int64_t{1} << 59));
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("ReduceL2", 18).In(Int64s({3, -4})).RunOne())[0], 5);
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("ReduceLogSumExp", 18).In(Int64s({50, 1})).RunOne())[0],
            50);
  // The logarithm of 0 saturates.
  EXPECT_EQ(ToVector<std::int32_t>(
                OpCall("ReduceLogSum", 18).In(Values<std::int32_t>({2}, {0, 0})).RunOne())[0],
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(ToVector<std::uint32_t>(OpCall("ReduceSum", 18)
                                        .In(Values<std::uint32_t>({2}, {4000000000u, 4000000000u}))
                                        .RunOne())[0],
            3705032704u);
}

TEST(Reduce, LogSumExpDoesNotOverflow) {
  const auto one = [](const F& values) {
    return ToVector<float>(OpCall("ReduceLogSumExp", 18)
                               .In(Floats({static_cast<std::int64_t>(values.size())}, values))
                               .RunOne())[0];
  };
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_FLOAT_EQ(one({1000, 1000}), 1000 + std::log(2.f));
  EXPECT_FLOAT_EQ(one({-1000, -1000, -1000, -1000, -1000}), -1000 + std::log(5.f));
  EXPECT_EQ(one({-kInf, 3}), 3);
  EXPECT_EQ(one({-kInf, -kInf}), -kInf);
  EXPECT_EQ(one({kInf, 3, kInf}), kInf);
}

TEST(Reduce, KnowsTypesAndOpsets) {
  // Bytes and bool are for extremes only, and not from the beginning.
  const auto takes = [](const char* type, int opset, Tensor x) {
    try {
      OpCall(type, opset).In(std::move(x)).Infer();
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  EXPECT_TRUE(takes("ReduceMax", 12, Iota<std::uint8_t>({3})));
  EXPECT_FALSE(takes("ReduceMax", 11, Iota<std::uint8_t>({3})));
  EXPECT_FALSE(takes("ReduceSum", 18, Iota<std::uint8_t>({3})));
  EXPECT_FALSE(takes("ReduceMax", 18, Values<bool>({2}, {true, false})));
  EXPECT_EQ(ToVector<bool>(OpCall("ReduceMax", 20)
                               .In(Values<bool>({2, 2}, {true, false, false, false}))
                               .Const(Int64s({1}))
                               .RunOne()),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(ToVector<bool>(OpCall("ReduceMin", 20)
                               .In(Values<bool>({2, 2}, {true, false, true, true}))
                               .Const(Int64s({1}))
                               .RunOne()),
            (std::vector<bool>{false, true}));
  // ReduceSum had its axes as an input first.
  EXPECT_EQ(ToVector<float>(OpCall("ReduceSum", 13).In(Iota({2, 2})).Const(Int64s({0})).RunOne()),
            (F{2, 4}));
  EXPECT_THROW(OpCall("ReduceSum", 13).Attr("axes", Ints{0}).In(Iota({2, 2})).Infer(), Error);
  EXPECT_THROW(OpCall("ReduceMax", 13).In(Iota({2, 2})).Const(Int64s({0})).Infer(), Error);
  EXPECT_THROW(OpCall("ReduceMax", 18).In(Iota({2, 2})).Const(Int64s({2})).Infer(), Error);
  EXPECT_THROW(
      OpCall("ReduceMax", 18).In(Iota({2, 2})).Const(Values<std::int32_t>({1}, {0})).Infer(),
      Error);
  EXPECT_THROW(OpCall("ReduceMax", 18).In(Iota({2, 2})).In(Int64s({0})).Infer(false), NeedsValue);
  EXPECT_EQ(
      ToVector<double>(OpCall("ReduceL2", 18).In(Values<double>({2}, {3e200, 4e200})).RunOne())[0],
      std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tessera
