#include <limits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;

TEST(ArgMax, FindsTheFirstOrLastAlongAnyAxis) {
  const auto x = [] { return Floats({2, 3}, {1, 5, 5, 4, -2, 4}); };
  const auto run = [&](const char* type, int axis, int last, int keep = 1) {
    return OpCall(type, 13)
        .Attr("axis", axis)
        .Attr("select_last_index", last)
        .Attr("keepdims", keep)
        .In(x())
        .RunOne();
  };
  EXPECT_EQ(ToVector<std::int64_t>(run("ArgMax", 1, 0)), (Ints{1, 0}));
  EXPECT_EQ(ToVector<std::int64_t>(run("ArgMax", -1, 1)), (Ints{2, 2}));
  EXPECT_EQ(ToVector<std::int64_t>(run("ArgMin", 1, 0)), (Ints{0, 1}));
  EXPECT_EQ(ToVector<std::int64_t>(run("ArgMax", 0, 0)), (Ints{1, 0, 0}));
  EXPECT_EQ(ToVector<std::int64_t>(run("ArgMin", -2, 1)), (Ints{0, 1, 1}));
  EXPECT_EQ(run("ArgMax", 1, 0).shape(), (Shape{2, 1}));
  EXPECT_EQ(run("ArgMax", 1, 0, 0).shape(), (Shape{2}));
  // The axis is 0 by default.
  EXPECT_EQ(OpCall("ArgMax", 13).In(x()).RunOne().shape(), (Shape{1, 3}));
}

TEST(ArgMax, AgreesWithPlainLoops) {
  std::mt19937 random(31);
  const Tensor x = RandomTensor({5, 20, 150}, random);
  const Tensor y = OpCall("ArgMax", 13).Attr("axis", 1).In(x.Clone()).RunOne();
  for (std::int64_t o = 0; o < 5; ++o) {
    for (std::int64_t j = 0; j < 150; ++j) {
      std::int64_t best = 0;
      const auto at = [&](std::int64_t i) { return x.data<float>()[(o * 20 + i) * 150 + j]; };
      for (std::int64_t i = 1; i < 20; ++i) best = at(i) > at(best) ? i : best;
      ASSERT_EQ(y.data<std::int64_t>()[o * 150 + j], best);
    }
  }
}

TEST(ArgMax, TakesAllNumbers) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("ArgMax").In(Values<std::uint64_t>({3}, {kMost - 1, kMost, 3})).RunOne()),
            (Ints{1}));
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("ArgMin").In(Values<std::int8_t>({3}, {1, -128, 127})).RunOne()),
            (Ints{1}));
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("ArgMax").In(Floats({3}, {1, kNan, 7})).RunOne()),
            (Ints{1}));
}

TEST(ArgMax, RefusesWhatHasNoPlace) {
  EXPECT_EQ(OpCall("ArgMax").Attr("axis", 1).In(Iota({0, 3})).RunOne().shape(), (Shape{0, 1}));
  EXPECT_THROW(OpCall("ArgMax").In(Iota({0, 3})).Infer(), Error);
  EXPECT_THROW(OpCall("ArgMax").In(Iota({})).Infer(), Error);
  EXPECT_THROW(OpCall("ArgMax").Attr("axis", 2).In(Iota({2, 3})).Infer(), Error);
  EXPECT_THROW(OpCall("ArgMax").In(Values<bool>({1}, {true})).Infer(), Error);
  EXPECT_THROW(OpCall("ArgMax", 11).Attr("select_last_index", 1).In(Iota({2})).Infer(), Error);
}

TEST(TopK, SortsAndPrefersSmallIndices) {
  const auto x = [] { return Floats({2, 4}, {1, 7, 7, 3, 0, -1, 0, 0}); };
  const std::vector<Tensor> top = OpCall("TopK", 11).Outputs(2).In(x()).Const(Int64s({3})).RunAll();
  EXPECT_EQ(ToVector<float>(top[0]), (F{7, 7, 3, 0, 0, 0}));
  EXPECT_EQ(ToVector<std::int64_t>(top[1]), (Ints{1, 2, 3, 0, 2, 3}));
  const std::vector<Tensor> bottom =
      OpCall("TopK", 11).Outputs(2).Attr("largest", 0).In(x()).Const(Int64s({2})).RunAll();
  EXPECT_EQ(ToVector<float>(bottom[0]), (F{1, 3, -1, 0}));
  EXPECT_EQ(ToVector<std::int64_t>(bottom[1]), (Ints{0, 3, 1, 0}));
  const std::vector<Tensor> columns =
      OpCall("TopK", 11).Outputs(2).Attr("axis", -2).In(x()).Const(Int64s({1})).RunAll();
  EXPECT_EQ(ToVector<float>(columns[0]), (F{1, 7, 7, 3}));
  EXPECT_EQ(columns[0].shape(), (Shape{1, 4}));
  EXPECT_EQ(ToVector<std::int64_t>(columns[1]), (Ints{0, 0, 0, 0}));
}

TEST(TopK, AgreesWithASortedCopy) {
  std::mt19937 random(32);
  Tensor x(DType::kInt32, {3, 1000, 5});
  // Many equal values.
  for (auto& v : x.values<std::int32_t>()) v = static_cast<std::int32_t>(random() % 50);
  const std::vector<Tensor> y =
      OpCall("TopK", 11).Outputs(2).Attr("axis", 1).In(x.Clone()).Const(Int64s({77})).RunAll();
  for (std::int64_t o = 0; o < 3; ++o) {
    for (std::int64_t j = 0; j < 5; ++j) {
      std::vector<std::pair<std::int32_t, std::int64_t>> all;
      for (std::int64_t i = 0; i < 1000; ++i) {
        all.emplace_back(-x.data<std::int32_t>()[(o * 1000 + i) * 5 + j], i);
      }
      std::sort(all.begin(), all.end());
      for (std::int64_t i = 0; i < 77; ++i) {
        const auto& [value, index] = all[static_cast<std::size_t>(i)];
        ASSERT_EQ(y[0].data<std::int32_t>()[(o * 77 + i) * 5 + j], -value);
        ASSERT_EQ(y[1].data<std::int64_t>()[(o * 77 + i) * 5 + j], index);
      }
    }
  }
}

TEST(TopK, KnowsOpsets) {
  EXPECT_EQ(ToVector<float>(OpCall("TopK", 9).Outputs(2).Attr("k", 1).In(Iota({3})).RunAll()[0]),
            (F{2}));
  EXPECT_THROW(OpCall("TopK", 9).Outputs(2).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(OpCall("TopK", 10).Outputs(2).Attr("k", 1).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(OpCall("TopK", 10).Outputs(2).In(Iota<std::int32_t>({3})).Const(Int64s({1})).Infer(),
               Error);
  EXPECT_THROW(OpCall("TopK", 11).Outputs(2).In(Iota({3})).Const(Int64s({4})).Infer(), Error);
  EXPECT_THROW(OpCall("TopK", 11).Outputs(2).In(Iota({3})).Const(Int64s({-1})).Infer(), Error);
  EXPECT_THROW(OpCall("TopK", 11).Outputs(2).In(Iota({3})).In(Int64s({1})).Infer(false),
               NeedsValue);
  EXPECT_EQ(OpCall("TopK", 11).Outputs(2).In(Iota({3})).Const(Int64s({0})).RunAll()[1].shape(),
            (Shape{0}));
  EXPECT_EQ(OpCall("TopK", 11).Outputs(2).In(Iota({2, 0})).Const(Int64s({0})).RunAll()[1].shape(),
            (Shape{2, 0}));
}

TEST(TopK, SortsNanAboveEverything) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  const std::vector<Tensor> y = OpCall("TopK", 11)
                                    .Outputs(2)
                                    .In(Floats({5}, {1, kNan, kInf, kNan, -kInf}))
                                    .Const(Int64s({5}))
                                    .RunAll();
  EXPECT_EQ(ToVector<std::int64_t>(y[1]), (Ints{1, 3, 2, 0, 4}));
}

TEST(CumSum, RunsAlongAnyAxisBothWays) {
  const auto run = [](std::int32_t axis, int exclusive, int reverse) {
    return ToVector<float>(OpCall("CumSum", 14)
                               .Attr("exclusive", exclusive)
                               .Attr("reverse", reverse)
                               .In(Floats({2, 3}, {1, 2, 3, 4, 5, 6}))
                               .In(Values<std::int32_t>({}, {axis}))
                               .RunOne());
  };
  EXPECT_EQ(run(1, 0, 0), (F{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(run(-1, 1, 0), (F{0, 1, 3, 0, 4, 9}));
  EXPECT_EQ(run(1, 0, 1), (F{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(run(1, 1, 1), (F{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(run(0, 0, 0), (F{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(run(-2, 1, 1), (F{4, 5, 6, 0, 0, 0}));
}

TEST(CumSum, ChecksTheAxisWhenItRuns) {
  const OpCall bad = std::move(OpCall("CumSum", 14).In(Iota({2, 3})).In(Int64s({2})));
  EXPECT_NO_THROW(bad.Infer());
  EXPECT_THROW(bad.Run({}), Error);
  EXPECT_THROW(OpCall("CumSum", 14).In(Iota({2, 3})).In(Int64s({0, 1})).Infer(), Error);
  EXPECT_THROW(OpCall("CumSum", 14).In(Iota({2, 3})).In(Iota({})).Infer(), Error);
  EXPECT_EQ(OpCall("CumSum", 14).In(Iota({0, 3})).In(Int64s({0})).RunOne().size(), 0);
  EXPECT_THROW(OpCall("CumSum", 14).In(Iota<std::int8_t>({2})).In(Int64s({0})).Infer(), Error);
}

TEST(CumSum, KeepsIntegersExact) {
  const std::int64_t big = std::int64_t{1} << 62;
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("CumSum", 14).In(Int64s({big, 1, big, big})).In(Int64s({0})).RunOne()),
            (Ints{big, big + 1, std::numeric_limits<std::int64_t>::min() + 1, -big + 1}));
}

}  // namespace
}  // namespace tessera
