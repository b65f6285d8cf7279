#include "pipeline/tracking/presence.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

double Score(double logit) { return 1 / (1 + std::exp(-logit)); }

TEST(Presence, SomeFramesOfDoubtMakeALoss) {
  Presence presence(0.5, 0.7);
  for (int i = 0; i < 20; ++i) presence.Followed(Score(8));
  EXPECT_FALSE(presence.doubted());
  presence.Followed(Score(2));
  EXPECT_TRUE(presence.doubted());
  presence.Followed(Score(2));
  EXPECT_FALSE(presence.lost());
  presence.Followed(Score(8));  // takes one back
  presence.Followed(Score(2));
  EXPECT_FALSE(presence.lost());
  presence.Followed(Score(2));
  EXPECT_TRUE(presence.lost());
}

TEST(Presence, ASlowChangeIsNone) {
  Presence presence(0.5, 0.7);
  for (double logit = 12; logit > 1; logit -= 0.04) {
    presence.Followed(Score(logit));
    ASSERT_FALSE(presence.doubted()) << logit;
  }
}

TEST(Presence, ScoresBelowTheLimitAlwaysLeaveDoubt) {
  Presence presence(0.9, 0.95);
  for (int i = 0; i < 3; ++i) presence.Followed(0.89);
  EXPECT_TRUE(presence.lost());
}

TEST(Presence, IsFoundByMoreThanWhatItWasLostBy) {
  Presence presence(0.5, 0.7);
  for (int i = 0; i < 20; ++i) presence.Followed(Score(10));
  for (int i = 0; i < 3; ++i) presence.Followed(Score(2.6));
  ASSERT_TRUE(presence.lost());
  EXPECT_FALSE(presence.Found(Score(2.8)));
  EXPECT_FALSE(presence.Found(Score(4.6)));
  EXPECT_TRUE(presence.lost());
  EXPECT_TRUE(presence.Found(Score(4.8)));
  EXPECT_FALSE(presence.lost());
  EXPECT_FALSE(presence.doubted());
}

// Networks of other kinds may never be sure of anything.
TEST(Presence, ScoresMayUsuallyBeLow) {
  Presence presence(0.2, 0.35);
  for (int i = 0; i < 20; ++i) {
    presence.Followed(0.4);
    ASSERT_FALSE(presence.doubted()) << i;
  }
  for (int i = 0; i < 3; ++i) presence.Followed(0.19);
  EXPECT_TRUE(presence.lost());
  EXPECT_FALSE(presence.Found(0.3));
  EXPECT_TRUE(presence.Found(0.42));
}

TEST(Presence, ANewTargetKnowsNothingOfTheOld) {
  Presence presence(0.5, 0.7);
  for (int i = 0; i < 20; ++i) presence.Followed(1);
  for (int i = 0; i < 3; ++i) presence.Followed(0);
  ASSERT_TRUE(presence.lost());
  presence.Reset();
  EXPECT_FALSE(presence.lost());
  presence.Followed(0.8);
  EXPECT_FALSE(presence.doubted());
}

TEST(Presence, ScoresThatAreNoNumbersLeaveDoubt) {
  Presence presence(0.5, 0.7);
  presence.Followed(0.9);
  for (int i = 0; i < 3; ++i) presence.Followed(std::nan(""));
  EXPECT_TRUE(presence.lost());
  EXPECT_FALSE(presence.Found(std::nan("")));
}

}  // namespace
}  // namespace tessera
