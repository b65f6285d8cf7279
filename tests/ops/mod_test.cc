#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

template <typename T>
std::vector<T> Mod(std::int64_t fmod, const std::vector<T>& a, const std::vector<T>& b) {
  const auto n = static_cast<std::int64_t>(a.size()), m = static_cast<std::int64_t>(b.size());
  OpCall call("Mod", 13);
  return ToVector<T>(call.Attr("fmod", fmod).In(Values<T>({n}, a)).In(Values<T>({m}, b)).RunOne());
}

template <typename T>
void HasTheSignThatTheAttributeAsksFor() {
  EXPECT_EQ(Mod<T>(0, {-4, 7, 5, 4, -7, 8, 6}, {2, -3, 8, -2, 3, 5, -6}),
            (std::vector<T>{0, -2, 5, 0, 2, 3, 0}));
  EXPECT_EQ(Mod<T>(1, {-4, 7, 5, 4, -7, 8, 6}, {2, -3, 8, -2, 3, 5, -6}),
            (std::vector<T>{0, 1, 5, 0, -1, 3, 0}));
  // 0 and the lowest number by -1 would trap.
  const T lowest = std::numeric_limits<T>::lowest();
  for (int fmod = 0; fmod < 2; ++fmod) {
    EXPECT_EQ(Mod<T>(fmod, {lowest, lowest, 3, lowest}, {-1, 0, 0, lowest}),
              (std::vector<T>{0, 0, 0, 0}));
  }
  EXPECT_EQ(Mod<T>(0, {lowest}, {3, -3}).size(), 2u);
}

TEST(Mod, HasTheSignThatTheAttributeAsksFor) {
  HasTheSignThatTheAttributeAsksFor<std::int8_t>();
  HasTheSignThatTheAttributeAsksFor<std::int16_t>();
  HasTheSignThatTheAttributeAsksFor<std::int32_t>();
  HasTheSignThatTheAttributeAsksFor<std::int64_t>();
}

TEST(Mod, TakesUnsignedIntegers) {
  EXPECT_EQ(Mod<std::uint8_t>(0, {200, 7, 9}, {199, 0, 4}), (std::vector<std::uint8_t>{1, 0, 1}));
  EXPECT_EQ(Mod<std::uint64_t>(1, {UINT64_MAX}, {10}), (std::vector<std::uint64_t>{5}));
}

TEST(Mod, OfFloatsIsThatOfC) {
  EXPECT_EQ(Mod<double>(1, {-4.5, 7.5, 5}, {2, -3, 8}), (std::vector<double>{-0.5, 1.5, 5}));
  EXPECT_EQ(Mod<float>(1, {-4.5, 7.5}, {2}), (std::vector<float>{-0.5, 1.5}));
  EXPECT_TRUE(std::isnan(Mod<float>(1, {1}, {0})[0]));
  EXPECT_EQ(static_cast<float>(Mod<Half>(1, {Half(-4.5f)}, {Half(2.f)})[0]), -0.5f);
  EXPECT_THROW(OpCall("Mod", 13).In(Iota({1})).In(Iota({1})).Infer(), Error);
  EXPECT_THROW(OpCall("Mod").In(Values<bool>({1}, {true})).In(Values<bool>({1}, {true})).Infer(),
               Error);
}

}  // namespace
}  // namespace tessera
