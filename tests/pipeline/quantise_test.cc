#include "pipeline/quantise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tessera {
namespace {

template <typename T>
T One(float v) {
  T out = 99;
  EXPECT_EQ(Quantise(&v, 1, &out), -1);
  return out;
}

TEST(Quantise, TiesGoToTheEvenNeighbour) {
  // k / 255 + 0.5 / 255 is no tie in floats for most k; these are.
  int ties = 0;
  for (int k = 0; k < 255; ++k) {
    const float v = (static_cast<float>(k) + 0.5f) / 255.f;
    if (v * 255.f != static_cast<float>(k) + 0.5f) continue;
    ++ties;
    EXPECT_EQ(One<std::uint8_t>(v), k % 2 == 0 ? k : k + 1);
  }
  EXPECT_GT(ties, 50);
}

TEST(Quantise, EveryLevelSurvives) {
  for (int k = 0; k < 256; ++k) EXPECT_EQ(One<std::uint8_t>(static_cast<float>(k) / 255.f), k);
  for (int k = 0; k < 65536; ++k) {
    ASSERT_EQ(One<std::uint16_t>(static_cast<float>(k) / 65535.f), k);
  }
}

TEST(Quantise, ClampsAndAgreesWithNearbyint) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-0.5, 1.5);
  std::vector<float> src(1003);
  for (float& v : src) v = uniform(random);
  src[0] = -0.f;
  src[1] = std::numeric_limits<float>::max();
  src[2] = std::numeric_limits<float>::lowest();
  src[3] = std::numeric_limits<float>::denorm_min();
  std::vector<std::uint8_t> eight(3 * src.size(), 7);
  std::vector<std::uint16_t> sixteen(src.size());
  EXPECT_EQ(Quantise(src.data(), 1003, eight.data() + 1, 3), -1);
  EXPECT_EQ(Quantise(src.data(), 1003, sixteen.data()), -1);
  for (std::size_t i = 0; i < src.size(); ++i) {
    const float clamped = std::min(std::max(src[i], 0.f), 1.f);
    ASSERT_EQ(eight[3 * i + 1], std::nearbyint(clamped * 255.f)) << src[i];
    ASSERT_EQ(sixteen[i], std::nearbyint(clamped * 65535.f)) << src[i];
    ASSERT_EQ(eight[3 * i], 7);
    ASSERT_EQ(eight[3 * i + 2], 7);
  }
}

TEST(Quantise, FindsTheFirstValueThatIsNoNumber) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t at : {0u, 255u, 256u, 999u}) {
      std::vector<float> src(1000, 0.5f), clamped(1000);
      src[at] = src[999] = bad;
      std::vector<std::uint8_t> dst(1000);
      EXPECT_EQ(Quantise(src.data(), 1000, dst.data()), static_cast<std::int64_t>(at));
      EXPECT_EQ(ClampToUnit(src.data(), 1000, clamped.data()), static_cast<std::int64_t>(at));
    }
  }
}

}  // namespace
}  // namespace tessera
