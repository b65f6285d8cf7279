#include "pipeline/tracking/box.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Box, OverlapIsThatOfBothToThatOfEither) {
  const Box box{10, 20, 4, 6};
  EXPECT_DOUBLE_EQ(Overlap(box, box), 1);
  EXPECT_DOUBLE_EQ(Overlap(box, {12, 20, 4, 6}), 12.0 / 36);
  EXPECT_DOUBLE_EQ(Overlap({11, 22, 2, 3}, box), 0.25);
  EXPECT_EQ(Overlap(box, {14, 20, 4, 6}), 0);
  EXPECT_EQ(Overlap(box, {11, 21, 0, 3}), 0);
  EXPECT_EQ(Overlap({}, {}), 0);
}

TEST(Box, CentreDistanceIsThatOfTheMiddles) {
  EXPECT_DOUBLE_EQ(CentreDistance({0, 0, 10, 10}, {3, 4, 10, 10}), 5);
  EXPECT_DOUBLE_EQ(CentreDistance({0, 0, 10, 10}, {2, 2, 6, 6}), 0);
}

}  // namespace
}  // namespace tessera
