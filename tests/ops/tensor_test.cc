#include "ops/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/error.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

TEST(Half, EveryValueSurvivesARoundTrip) {
  for (std::uint32_t h = 0; h < 0x10000; ++h) {
    const float f = HalfToFloat(static_cast<std::uint16_t>(h));
    if (std::isnan(f)) continue;
    EXPECT_EQ(FloatToHalf(f), h);
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(FloatToHalf(1.0f + 0x1p-11f), 0x3C00);  // a tie goes to the even neighbour
  EXPECT_EQ(FloatToHalf(1.0f + 3 * 0x1p-11f), 0x3C02);
  EXPECT_EQ(FloatToHalf(65519.f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.f), 0x7C00);
  EXPECT_EQ(FloatToHalf(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(FloatToHalf(0x1p-25f), 0);  // half of the smallest subnormal, a tie
  EXPECT_EQ(FloatToHalf(0x1.8p-25f), 1);
}

TEST(Shape, RefusesProductsThatOverflow) {
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_EQ(Shape({big}).NumElements(), big);
  EXPECT_EQ(Shape({big, 0}).NumElements(), 0);
  EXPECT_THROW(Shape({big, 2}).NumElements(), Error);
  // Empty for a third dimension, but strides are products of the others.
  EXPECT_THROW(Shape({big, big, 0}).NumElements(), Error);
  EXPECT_EQ(Shape({}).NumElements(), 1);
  EXPECT_THROW(Shape({-1}), Error);
}

TEST(Shape, Broadcasts) {
  EXPECT_EQ(BroadcastShapes({2, 1, 4}, {3, 1}), Shape({2, 3, 4}));
  EXPECT_EQ(BroadcastShapes({}, {5}), Shape({5}));
  EXPECT_THROW(BroadcastShapes({2}, {3}), Error);
}

TEST(BlockedLayout, KeepsRowsAndPlanesApartInTheCache) {
  for (int w : {1, 7, 64, 256, 1024}) {
    const BlockedLayout b(Shape{1, 33, 16, w});
    EXPECT_EQ(b.blocks, (33 + FloatLanes() - 1) / FloatLanes());
    EXPECT_NE(b.row_stride % 1024, 0);
    EXPECT_NE(b.plane_stride % 1024, 0);
    EXPECT_GE(b.row_stride, w * b.lanes);
    EXPECT_EQ(b.row_stride % 16, 0);
  }
}

}  // namespace
}  // namespace tessera
