// Operators whose output's shape depends on values: NonZero, Compress, Unique, Range; and those
// that make tensors of few values: OneHot, EyeLike, Trilu. Values worked out by hand or by numpy.
#include <cmath>
#include <limits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;

TEST(NonZero, ListsIndicesByAxis) {
  const Tensor y = OpCall("NonZero").Const(Floats({2, 3}, {0, 1, NAN, -2, 0, 5})).RunOne();
  ASSERT_EQ(y.shape(), (Shape{2, 4}));
  EXPECT_EQ(ToVector<std::int64_t>(y), (Ints{0, 0, 1, 1, 1, 2, 0, 2}));
  const Tensor cube =
      OpCall("NonZero").Const(Values<bool>({2, 2, 2}, {0, 1, 0, 0, 0, 0, 1, 1})).RunOne();
  EXPECT_EQ(ToVector<std::int64_t>(cube), (Ints{0, 1, 1, 0, 1, 1, 1, 0, 1}));
  EXPECT_EQ(OpCall("NonZero").Const(Int64s({0, 0})).RunOne().shape(), (Shape{1, 0}));
  EXPECT_EQ(OpCall("NonZero").Const(Iota({2, 0, 3})).RunOne().shape(), (Shape{3, 0}));
  EXPECT_EQ(OpCall("NonZero").Const(Floats({}, {3})).RunOne().shape(), (Shape{0, 1}));
  EXPECT_EQ(OpCall("NonZero").Const(Floats({}, {0})).RunOne().shape(), (Shape{0, 0}));
  EXPECT_EQ(
      ToVector<std::int64_t>(OpCall("NonZero").Const(Values<Half>({3}, {0.f, 1.f, -0.f})).RunOne()),
      (Ints{1}));
  EXPECT_THROW(OpCall("NonZero").In(Iota({2})).Infer(/*constant=*/false), NeedsValue);
}

TEST(Compress, TakesSlicesOrElements) {
  const auto call = [](std::vector<bool> condition) {
    const auto n = static_cast<std::int64_t>(condition.size());
    return OpCall("Compress").In(Iota({3, 2})).Const(Values<bool>({n}, condition));
  };
  EXPECT_EQ(ToVector<float>(call({false, true, true}).Attr("axis", 0).RunOne()), (F{2, 3, 4, 5}));
  EXPECT_EQ(ToVector<float>(call({false, true}).Attr("axis", -1).RunOne()), (F{1, 3, 5}));
  EXPECT_EQ(ToVector<float>(call({true}).Attr("axis", 1).RunOne()), (F{0, 2, 4}));
  EXPECT_EQ(ToVector<float>(call({false, true, false, false, true}).RunOne()), (F{1, 4}));
  EXPECT_EQ(call({false, true, true}).Attr("axis", 0).RunOne().shape(), (Shape{2, 2}));
  EXPECT_EQ(call({}).RunOne().shape(), (Shape{0}));
  EXPECT_EQ(call({false}).Attr("axis", 1).RunOne().shape(), (Shape{3, 0}));
  EXPECT_THROW(call({true, true, true}).Attr("axis", 1).Infer(), Error);
  EXPECT_THROW(call({true}).Attr("axis", 2).Infer(), Error);
  EXPECT_THROW(OpCall("Compress").In(Iota({2})).Const(Int64s({1, 0})).Infer(), Error);
  EXPECT_THROW(OpCall("Compress").In(Iota({2})).Const(Values<bool>({}, {true})).Infer(), Error);
  EXPECT_THROW(
      OpCall("Compress").In(Iota({2})).In(Values<bool>({1}, {true})).Infer(/*constant=*/false),
      NeedsValue);
}

TEST(Unique, FindsElements) {
  const auto run = [](bool sorted, Tensor x) {
    return OpCall("Unique").Attr("sorted", sorted).Const(std::move(x)).Outputs(4).RunAll();
  };
  const auto x = [] { return Floats({2, 3}, {2, 1, 1, 3, 4, 3}); };
  const std::vector<Tensor> sorted = run(true, x());
  EXPECT_EQ(ToVector<float>(sorted[0]), (F{1, 2, 3, 4}));
  EXPECT_EQ(ToVector<std::int64_t>(sorted[1]), (Ints{1, 0, 3, 4}));
  EXPECT_EQ(ToVector<std::int64_t>(sorted[2]), (Ints{1, 0, 0, 2, 3, 2}));
  EXPECT_EQ(ToVector<std::int64_t>(sorted[3]), (Ints{2, 1, 2, 1}));
  const std::vector<Tensor> in_order = run(false, x());
  EXPECT_EQ(ToVector<float>(in_order[0]), (F{2, 1, 3, 4}));
  EXPECT_EQ(ToVector<std::int64_t>(in_order[1]), (Ints{0, 1, 3, 4}));
  EXPECT_EQ(ToVector<std::int64_t>(in_order[2]), (Ints{0, 1, 1, 2, 3, 2}));
  EXPECT_EQ(ToVector<std::int64_t>(in_order[3]), (Ints{1, 2, 2, 1}));

  const std::vector<Tensor> nan = run(true, Floats({4}, {NAN, 1, NAN, -1}));
  EXPECT_EQ(nan[0].shape(), (Shape{3}));
  EXPECT_EQ(ToVector<std::int64_t>(nan[1]), (Ints{3, 1, 0}));
  EXPECT_EQ(ToVector<std::int64_t>(nan[3]), (Ints{1, 1, 2}));
  EXPECT_EQ(ToVector<std::int64_t>(run(true, Int64s({INT64_MAX, INT64_MIN, INT64_MAX}))[0]),
            (Ints{INT64_MIN, INT64_MAX}));
  EXPECT_EQ(ToVector<bool>(run(true, Values<bool>({3}, {true, false, true}))[0]),
            (std::vector<bool>{false, true}));
  EXPECT_EQ(run(true, Iota({0, 2}))[3].shape(), (Shape{0}));
  EXPECT_EQ(ToVector<float>(run(false, Floats({}, {5}))[0]), (F{5}));
  // Outputs that nobody wants are not there.
  EXPECT_EQ(ToVector<float>(OpCall("Unique").Const(x()).RunOne()), (F{1, 2, 3, 4}));
  EXPECT_THROW(OpCall("Unique").In(x()).Infer(/*constant=*/false), NeedsValue);
}

TEST(Unique, FindsSlicesOfAnAxis) {
  const auto x = [] { return Floats({2, 4, 2}, {1, 1, 0, 1, 2, 1, 0, 1, 1, 1, 0, 1, 2, 1, 0, 1}); };
  for (const int axis : {1, -2}) {
    const std::vector<Tensor> y =
        OpCall("Unique").Attr("axis", axis).Const(x()).Outputs(4).RunAll();
    ASSERT_EQ(y[0].shape(), (Shape{2, 3, 2}));
    EXPECT_EQ(ToVector<float>(y[0]), (F{0, 1, 1, 1, 2, 1, 0, 1, 1, 1, 2, 1}));
    EXPECT_EQ(ToVector<std::int64_t>(y[1]), (Ints{1, 0, 2}));
    EXPECT_EQ(ToVector<std::int64_t>(y[2]), (Ints{1, 0, 2, 0}));
    EXPECT_EQ(ToVector<std::int64_t>(y[3]), (Ints{2, 1, 1}));
  }
  // Slices that differ only further outside.
  const std::vector<Tensor> y = OpCall("Unique")
                                    .Attr("axis", 1)
                                    .Attr("sorted", 0)
                                    .Const(Floats({2, 3}, {1, 1, 1, 5, 4, 5}))
                                    .Outputs(4)
                                    .RunAll();
  EXPECT_EQ(ToVector<float>(y[0]), (F{1, 1, 5, 4}));
  EXPECT_EQ(ToVector<std::int64_t>(y[2]), (Ints{0, 1, 0}));
  EXPECT_EQ(OpCall("Unique").Attr("axis", 0).Const(Iota({3, 0})).RunOne().shape(), (Shape{1, 0}));
  EXPECT_EQ(OpCall("Unique").Attr("axis", 1).Const(Iota({3, 0})).RunOne().shape(), (Shape{3, 0}));
  EXPECT_THROW(OpCall("Unique").Attr("axis", 3).Const(x()).Infer(), Error);
}

template <typename T>
std::vector<T> Range(T start, T limit, T delta) {
  return ToVector<T>(OpCall("Range", 11)
                         .Const(Values<T>({}, {start}))
                         .Const(Values<T>({}, {limit}))
                         .Const(Values<T>({}, {delta}))
                         .RunOne());
}

TEST(Range, CountsUpAndDown) {
  using S = std::vector<std::int16_t>;
  EXPECT_EQ(Range<float>(1, 5, 2), (F{1, 3}));
  EXPECT_EQ(Range<float>(0, 1, 0.3f), (F{0, 0.3f, 0.6f, 3 * 0.3f}));
  EXPECT_EQ(Range<std::int64_t>(10, 4, -2), (Ints{10, 8, 6}));
  EXPECT_EQ(Range<std::int64_t>(10, 3, -3), (Ints{10, 7, 4}));
  EXPECT_EQ(Range<std::int64_t>(3, 3, 1), Ints{});
  EXPECT_EQ(Range<std::int64_t>(3, 5, -1), Ints{});
  EXPECT_EQ(Range<float>(3, 5, -1), F{});
  EXPECT_EQ(Range<float>(0, INFINITY, -1), F{});
  EXPECT_EQ(Range<std::int16_t>(-32768, 32767, 30000), (S{-32768, -2768, 27232}));
  EXPECT_EQ(Range<std::int64_t>(INT64_MIN, INT64_MAX, INT64_MAX),
            (Ints{INT64_MIN, -1, INT64_MAX - 1}));
  EXPECT_EQ(Range<std::int64_t>(INT64_MAX, INT64_MIN, INT64_MIN), (Ints{INT64_MAX, -1}));
  EXPECT_EQ(Range<double>(0, 1, 0.5), (std::vector<double>{0, 0.5}));
  EXPECT_THROW(Range<std::int32_t>(0, 1, 0), Error);
  EXPECT_THROW(Range<float>(0, 1, 0), Error);
  EXPECT_THROW(Range<float>(0, NAN, 1), Error);
  EXPECT_THROW(Range<float>(0, INFINITY, 1), Error);
  EXPECT_THROW(Range<std::uint8_t>(0, 1, 1), Error);
  EXPECT_THROW(Range<std::int64_t>(INT64_MIN, INT64_MAX, 1), Error);
  const auto mixed = [](Tensor delta) {
    return OpCall("Range").In(Floats({}, {0})).In(Floats({}, {1})).In(std::move(delta));
  };
  EXPECT_THROW(mixed(Values<std::int64_t>({}, {1})).Infer(), Error);
  EXPECT_THROW(mixed(Floats({2}, {1, 1})).Infer(), Error);
  EXPECT_THROW(mixed(Floats({}, {1})).Infer(/*constant=*/false), NeedsValue);
}

TEST(OneHot, MarksIndices) {
  const auto call = [](Tensor indices, Tensor depth, int axis = -1) {
    return OpCall("OneHot")
        .Attr("axis", axis)
        .In(std::move(indices))
        .Const(std::move(depth))
        .In(Values<std::int32_t>({2}, {2, 5}));
  };
  using I = std::vector<std::int32_t>;
  const auto three = [] { return Values<std::int64_t>({}, {3}); };
  EXPECT_EQ(ToVector<std::int32_t>(call(Int64s({0, 2}), three()).RunOne()), (I{5, 2, 2, 2, 2, 5}));
  // Negative ones count from the end, those out of range are nowhere.
  EXPECT_EQ(ToVector<std::int32_t>(call(Int64s({-1, 3, -4, -3}), three()).RunOne()),
            (I{2, 2, 5, 2, 2, 2, 2, 2, 2, 5, 2, 2}));
  EXPECT_EQ(
      ToVector<std::int32_t>(call(Values<std::uint64_t>({2}, {UINT64_MAX, 1}), three()).RunOne()),
      (I{2, 2, 2, 2, 5, 2}));
  EXPECT_EQ(ToVector<std::int32_t>(call(Floats({3}, {1.9f, -1.9f, 1e30f}), three()).RunOne()),
            (I{2, 5, 2, 2, 2, 5, 2, 2, 2}));
  const Tensor middle = call(Floats({2, 2}, {0, 1, 1, 0}), Floats({1}, {2}), 1).RunOne();
  ASSERT_EQ(middle.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(ToVector<std::int32_t>(middle), (I{5, 2, 2, 5, 2, 5, 5, 2}));
  EXPECT_EQ(call(Iota({4, 5}), three(), 0).RunOne().shape(), (Shape{3, 4, 5}));
  EXPECT_EQ(call(Iota({4, 5}), three(), -3).RunOne().shape(), (Shape{3, 4, 5}));
  EXPECT_EQ(ToVector<std::int32_t>(call(Floats({}, {1}), three()).RunOne()), (I{2, 5, 2}));
  EXPECT_EQ(call(Int64s({}), three()).RunOne().shape(), (Shape{0, 3}));
  EXPECT_THROW(call(Iota({4}), three(), 2).Infer(), Error);
  EXPECT_THROW(call(Iota({4}), Int64s({0})).Infer(), Error);
  EXPECT_THROW(call(Iota({4}), Int64s({2, 2})).Infer(), Error);
  EXPECT_THROW(call(Values<bool>({1}, {true}), three()).Infer(), Error);
  EXPECT_THROW(OpCall("OneHot").In(Iota({1})).Const(three()).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(OpCall("OneHot").In(Iota({1})).In(three()).In(Iota({2})).Infer(/*constant=*/false),
               NeedsValue);
}

TEST(EyeLike, HasOnesOnOneDiagonal) {
  const auto eye = [](std::int64_t k) {
    return ToVector<float>(OpCall("EyeLike").Attr("k", k).In(Iota({2, 3})).RunOne());
  };
  EXPECT_EQ(eye(0), (F{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(eye(2), (F{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(eye(-1), (F{0, 0, 0, 1, 0, 0}));
  for (const std::int64_t k : {std::int64_t{3}, std::int64_t{-2}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(eye(k), (F{0, 0, 0, 0, 0, 0})) << k;
  }
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("EyeLike").In(Iota<std::int64_t>({2, 2})).RunOne()),
            (Ints{1, 0, 0, 1}));
  EXPECT_EQ(ToVector<bool>(OpCall("EyeLike").Attr("dtype", 9).In(Iota({2, 1})).RunOne()),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(OpCall("EyeLike").Attr("dtype", 11).In(Iota({0, 1})).RunOne().dtype(), DType::kFloat64);
  EXPECT_THROW(OpCall("EyeLike").In(Iota({2})).Infer(), Error);
  EXPECT_THROW(OpCall("EyeLike").Attr("dtype", 8).In(Iota({2, 2})).Infer(), Error);
}

TEST(Trilu, KeepsOneSideOfADiagonal) {
  const Shape shape{2, 3, 4};
  const std::int64_t extremes[] = {INT64_MIN, -4, -3, -1, 0, 1, 2, 3, 4, 9, INT64_MAX};
  for (const bool upper : {false, true}) {
    for (const std::int64_t k : extremes) {
      const Tensor y = OpCall("Trilu", 14)
                           .Attr("upper", upper)
                           .In(Iota(shape))
                           .In(Values<std::int64_t>({}, {k}))
                           .RunOne();
      for (std::int64_t i = 0; i < y.size(); ++i) {
        const std::int64_t row = i / 4 % 3, column = i % 4;
        const bool kept = upper ? column - row >= k : column - row <= k;
        ASSERT_EQ(y.data<float>()[i], kept ? static_cast<float>(i) : 0.f)
            << "upper " << upper << " k " << k << " element " << i;
      }
    }
  }
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Trilu", 14).In(Iota<std::int64_t>({2, 2})).RunOne()),
            (Ints{0, 1, 0, 3}));
  EXPECT_EQ(OpCall("Trilu", 14).In(Iota({3, 0, 2})).RunOne().shape(), (Shape{3, 0, 2}));
  EXPECT_THROW(OpCall("Trilu", 14).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(OpCall("Trilu", 14).In(Iota({3, 3})).In(Floats({}, {1})).Infer(), Error);
  EXPECT_THROW(OpCall("Trilu", 14).In(Iota({3, 3})).In(Int64s({1, 2})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
