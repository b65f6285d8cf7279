#include <cstdint>
#include <vector>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

template <typename T>
std::vector<T> Shift(const char* direction, std::vector<T> a, std::vector<T> bits) {
  const auto n = static_cast<std::int64_t>(a.size()), m = static_cast<std::int64_t>(bits.size());
  OpCall call("BitShift", 11);
  call.Attr("direction", direction).In(Values<T>({n}, a)).In(Values<T>({m}, bits));
  return ToVector<T>(call.RunOne());
}

template <typename T>
void ShiftsOutEveryBit() {
  const T all = static_cast<T>(~T{0}), width = static_cast<T>(8 * sizeof(T));
  EXPECT_EQ(Shift<T>("LEFT", {all, all, all, 1, 3, all}, {0, 1, width, width, 4, all}),
            (std::vector<T>{all, static_cast<T>(all - 1), 0, 0, 48, 0}));
  EXPECT_EQ(Shift<T>("RIGHT", {all, all, all, 1, 48, all},
                     {0, static_cast<T>(width - 1), width, 1, 4, all}),
            (std::vector<T>{all, 1, 0, 0, 3, 0}));
}

TEST(BitShift, ShiftsOutEveryBit) {
  ShiftsOutEveryBit<std::uint8_t>();
  ShiftsOutEveryBit<std::uint16_t>();
  ShiftsOutEveryBit<std::uint32_t>();
  ShiftsOutEveryBit<std::uint64_t>();
}

TEST(BitShift, BroadcastsBothWays) {
  EXPECT_EQ(Shift<std::uint32_t>("LEFT", {1, 2, 3}, {2}), (std::vector<std::uint32_t>{4, 8, 12}));
  EXPECT_EQ(Shift<std::uint32_t>("RIGHT", {12}, {0, 1, 2}), (std::vector<std::uint32_t>{12, 6, 3}));
}

TEST(BitShift, RefusesOtherTypesAndDirections) {
  const auto call = [](auto value) {
    using T = decltype(value);
    OpCall c("BitShift", 11);
    return std::move(c.In(Values<T>({1}, {value})).In(Values<T>({1}, {value})));
  };
  EXPECT_NO_THROW(call(std::uint8_t{1}).Attr("direction", "LEFT").Infer());
  EXPECT_THROW(call(std::uint8_t{1}).Infer(), Error);
  EXPECT_THROW(call(std::uint8_t{1}).Attr("direction", "left").Infer(), Error);
  EXPECT_THROW(call(std::int32_t{1}).Attr("direction", "LEFT").Infer(), Error);
}

TEST(Bitwise, CombinesIntegers) {
  const auto run = [](const char* type) {
    return ToVector<std::int8_t>(OpCall(type, 18)
                                     .In(Values<std::int8_t>({2, 2}, {12, -1, 0, -128}))
                                     .In(Values<std::int8_t>({2}, {10, 127}))
                                     .RunOne());
  };
  EXPECT_EQ(run("BitwiseAnd"), (std::vector<std::int8_t>{8, 127, 0, 0}));
  EXPECT_EQ(run("BitwiseOr"), (std::vector<std::int8_t>{14, -1, 10, -1}));
  EXPECT_EQ(run("BitwiseXor"), (std::vector<std::int8_t>{6, -128, 10, -1}));
  const std::uint64_t high = std::uint64_t{1} << 63;
  EXPECT_EQ(ToVector<std::uint64_t>(OpCall("BitwiseXor", 18)
                                        .In(Values<std::uint64_t>({}, {high}))
                                        .In(Values<std::uint64_t>({2}, {high + 5, 3}))
                                        .RunOne()),
            (std::vector<std::uint64_t>{5, high + 3}));
}

TEST(Bitwise, NotTakesEveryIntegerType) {
  EXPECT_EQ(ToVector<std::uint8_t>(
                OpCall("BitwiseNot", 18).In(Values<std::uint8_t>({3}, {0, 1, 255})).RunOne()),
            (std::vector<std::uint8_t>{255, 254, 0}));
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("BitwiseNot", 18).In(Int64s({5, INT64_MIN})).RunOne()),
            (std::vector<std::int64_t>{-6, INT64_MAX}));
  EXPECT_EQ(OpCall("BitwiseNot", 18).In(Values<std::int16_t>({3, 0}, {})).RunOne().shape(),
            (Shape{3, 0}));
}

TEST(Bitwise, RefusesFloatsBoolsAndMixedTypes) {
  EXPECT_THROW(OpCall("BitwiseAnd", 18).In(Iota({1})).In(Iota({1})).Infer(), Error);
  EXPECT_THROW(OpCall("BitwiseNot", 18).In(Values<bool>({1}, {true})).Infer(), Error);
  EXPECT_THROW(OpCall("BitwiseOr", 18).In(Int64s({1})).In(Values<std::int32_t>({1}, {1})).Infer(),
               Error);
}

}  // namespace
}  // namespace tessera
