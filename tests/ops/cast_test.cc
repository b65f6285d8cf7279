#include <cmath>
#include <limits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

enum OnnxType {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint64 = 13
};

Tensor Cast(Tensor x, int to) {
  return OpCall("Cast", 13).Attr("to", to).In(std::move(x)).RunOne(0);
}

TEST(Cast, TruncatesFloatsToIntegers) {
  const auto x = [] { return Floats({6}, {1.9f, -1.9f, 0.5f, -0.5f, 100.f, -100.f}); };
  EXPECT_EQ(ToVector<std::int32_t>(Cast(x(), kInt32)),
            (std::vector<std::int32_t>{1, -1, 0, 0, 100, -100}));
  EXPECT_EQ(ToVector<std::int8_t>(Cast(x(), kInt8)),
            (std::vector<std::int8_t>{1, -1, 0, 0, 100, -100}));
  // Out of range: defined here, although the specification leaves it open.
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ToVector<std::uint8_t>(Cast(Floats({4}, {300, -1, inf, NAN}), kUint8)),
            (std::vector<std::uint8_t>{255, 0, 255, 0}));
  EXPECT_EQ(ToVector<std::int64_t>(Cast(Floats({2}, {9.3e18f, -inf}), kInt64)),
            (std::vector<std::int64_t>{INT64_MAX, INT64_MIN}));
  EXPECT_EQ(
      ToVector<std::int32_t>(Cast(Values<double>({2}, {2147483647.9, -2147483648.9}), kInt32)),
      (std::vector<std::int32_t>{INT32_MAX, INT32_MIN}));
}

TEST(Cast, ConvertsBetweenIntegersByTheirBits) {
  EXPECT_EQ(ToVector<std::int8_t>(Cast(Int64s({255, 128, -129}), kInt8)),
            (std::vector<std::int8_t>{-1, -128, 127}));
  EXPECT_EQ(ToVector<std::uint64_t>(Cast(Int64s({-1}), kUint64)),
            (std::vector<std::uint64_t>{UINT64_MAX}));
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(ToVector<std::int64_t>(Cast(Int64s({big}), kInt64)), (std::vector<std::int64_t>{big}));
}

TEST(Cast, KnowsBoolAndHalf) {
  EXPECT_EQ(ToVector<bool>(Cast(Floats({4}, {0, -0.f, 0.1f, NAN}), kBool)),
            (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(ToVector<float>(Cast(Values<bool>({2}, {true, false}), kFloat)),
            (std::vector<float>{1, 0}));
  const Tensor half = Cast(Floats({3}, {1.0004883f, 65520.f, -2.5f}), kFloat16);
  EXPECT_EQ(half.dtype(), DType::kFloat16);
  const Tensor back = Cast(half.Clone(), kFloat);
  EXPECT_EQ(ToVector<float>(back),
            (std::vector<float>{1.f, std::numeric_limits<float>::infinity(), -2.5f}));
  EXPECT_EQ(ToVector<bool>(Cast(Values<Half>({2}, {0.f, 0.5f}), kBool)),
            (std::vector<bool>{false, true}));
  EXPECT_EQ(ToVector<std::int32_t>(Cast(Values<Half>({1}, {-3.75f}), kInt32)),
            (std::vector<std::int32_t>{-3}));
  EXPECT_EQ(ToVector<double>(Cast(Values<std::int16_t>({2}, {-7, 300}), kDouble)),
            (std::vector<double>{-7, 300}));
}

TEST(Cast, RoundsToHalfOnce) {
  // Just above the middle of two halves, the lower of which is even; float would not tell.
  const double step = 0x1p-10, middle = 1 + step / 2;
  const auto cast = [](double value) {
    const Tensor y = Cast(Cast(Values<double>({2}, {value, -value}), kFloat16), kDouble);
    EXPECT_EQ(y.data<double>()[1], -y.data<double>()[0]);
    return y.data<double>()[0];
  };
  EXPECT_EQ(cast(middle), 1);
  EXPECT_EQ(cast(middle + 0x1p-40), 1 + step);
  EXPECT_EQ(cast(middle - 0x1p-40), 1);
  EXPECT_EQ(cast(1 + 3 * step / 2), 1 + 2 * step);
  EXPECT_EQ(cast(1 + 3 * step / 2 - 0x1p-40), 1 + step);
  EXPECT_EQ(cast(65520 - 0x1p-30), 65504);
  EXPECT_EQ(cast(65520), std::numeric_limits<double>::infinity());
  EXPECT_EQ(cast(1e300), std::numeric_limits<double>::infinity());
  EXPECT_EQ(cast(0x1p-25), 0);
  EXPECT_EQ(cast(0x1p-25 + 0x1p-60), 0x1p-24);
  EXPECT_EQ(cast(5e-324), 0);
}

TEST(CastLike, TakesTheTypeOfItsSecondInput) {
  EXPECT_EQ(FindOp("CastLike")->first_opset, 15);
  const auto like = [](Tensor other) {
    return OpCall("CastLike", 15).In(Floats({2}, {-1.5f, 3})).In(std::move(other)).RunOne(0);
  };
  EXPECT_EQ(ToVector<std::int8_t>(like(Values<std::int8_t>({}, {0}))),
            (std::vector<std::int8_t>{-1, 3}));
  EXPECT_EQ(ToVector<bool>(like(Values<bool>({0}, {}))), (std::vector<bool>{true, true}));
  EXPECT_EQ(ToVector<float>(like(Iota({3, 3}))), (std::vector<float>{-1.5f, 3}));
}

TEST(Cast, RefusesTypesThatThereAreNot) {
  EXPECT_THROW(OpCall("Cast").Attr("to", 8).In(Iota({1})).Infer(), Error);  // string
  EXPECT_THROW(OpCall("Cast").In(Iota({1})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
