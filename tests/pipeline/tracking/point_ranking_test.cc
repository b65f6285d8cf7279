#include "pipeline/tracking/point_ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tessera {
namespace {

// Maps of n x n points at which nothing is seen, and boxes of `size` around each point.
struct FakeMaps {
  FakeMaps(std::int64_t n_in, float size, int channels = 2)
      : n(n_in),
        classes(static_cast<std::size_t>(channels * n * n), 0),
        boxes(static_cast<std::size_t>(4 * n * n), size / 2) {
    for (std::int64_t i = 0; i < n * n; ++i) classes[static_cast<std::size_t>(i)] = 9;
  }

  float& Class(std::int64_t channel, std::int64_t row, std::int64_t column) {
    return classes[static_cast<std::size_t>((channel * n + row) * n + column)];
  }
  float& Distance(std::int64_t side, std::int64_t row, std::int64_t column) {
    return boxes[static_cast<std::size_t>((side * n + row) * n + column)];
  }
  SiameseNetwork::Maps view() const { return {classes.data(), boxes.data()}; }

  std::int64_t n;
  std::vector<float> classes, boxes;
};

TrackerConfig Config(ScoreKind score = ScoreKind::kSoftmax, BoxKind box = BoxKind::kPixels) {
  TrackerConfig config;
  config.score = score;
  config.box = box;
  return config;
}

TEST(PointRanking, BoxesAreDistancesFromThePoint) {
  FakeMaps maps(16, 60);
  maps.Class(1, 3, 10) = 12;  // against 9: the best by far, as others have 0
  const float distances[] = {10, 20, 40, 60};
  for (int side = 0; side < 4; ++side) maps.Distance(side, 3, 10) = distances[side];
  const PointChoice choice = PointRanking(Config(), 16).Choose(maps.view(), 60, 60, 0.1);
  ASSERT_TRUE(choice.found());
  EXPECT_EQ(choice.row, 3);
  EXPECT_EQ(choice.column, 10);
  EXPECT_DOUBLE_EQ(choice.score, 1 / (1 + std::exp(-3.0)));
  EXPECT_DOUBLE_EQ(choice.width, 50);
  EXPECT_DOUBLE_EQ(choice.height, 80);
  EXPECT_DOUBLE_EQ(choice.dx, (10 - 8) * 16 + (40 - 10) / 2.0);
  EXPECT_DOUBLE_EQ(choice.dy, (3 - 8) * 16 + (60 - 20) / 2.0);
  // The middle of an odd map is that of the patch.
  FakeMaps odd(15, 60);
  odd.Class(1, 7, 7) = 12;
  EXPECT_EQ(PointRanking(Config(), 15).Choose(odd.view(), 60, 60, 0.1).dx, 0);
}

TEST(PointRanking, RankIsThatOfTheSpecification) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> logits(-4, 4), lengths(1, 90);
  for (const std::int64_t n : {15, 16}) {
    for (int round = 0; round < 20; ++round) {
      FakeMaps maps(n, 0);
      for (float& v : maps.classes) v = logits(random);
      for (float& v : maps.boxes) v = lengths(random);
      TrackerConfig config = Config();
      config.penalty = 0.15;
      const double w = lengths(random), h = lengths(random), omega = 0.4;
      // Straight from the formulas, in two passes.
      std::vector<double> ranks, penalties, scores;
      const auto eq = [](double a, double b) {
        return std::sqrt((a + (a + b) / 2) * (b + (a + b) / 2));
      };
      const auto big = [](double r) { return r > 1 ? r : 1 / r; };
      const auto hann = [n](std::int64_t i) {
        return 0.5 - 0.5 * std::cos(2 * M_PI * static_cast<double>(i) / static_cast<double>(n - 1));
      };
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          const double bw = maps.Distance(0, i, j) + static_cast<double>(maps.Distance(2, i, j)),
                       bh = maps.Distance(1, i, j) + static_cast<double>(maps.Distance(3, i, j));
          const double c0 = maps.Class(0, i, j), c1 = maps.Class(1, i, j);
          scores.push_back(1 / (1 + std::exp(c0 - c1)));
          penalties.push_back(
              std::exp(-0.15 * (big(eq(bw, bh) / eq(w, h)) * big((w / h) / (bw / bh)) - 1)));
          ranks.push_back((1 - omega) * penalties.back() * scores.back() +
                          omega * hann(i) * hann(j));
        }
      }
      const auto best =
          static_cast<std::size_t>(std::max_element(ranks.begin(), ranks.end()) - ranks.begin());
      const PointChoice choice = PointRanking(config, n).Choose(maps.view(), w, h, omega);
      ASSERT_EQ(choice.row * n + choice.column, static_cast<std::int64_t>(best));
      EXPECT_NEAR(choice.score, scores[best], 1e-12);
      EXPECT_NEAR(choice.penalty, penalties[best], 1e-12);
      std::vector<double> others = ranks;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(best));
      EXPECT_NEAR(choice.rank_margin, ranks[best] - *std::max_element(others.begin(), others.end()),
                  1e-12);
    }
  }
}

TEST(PointRanking, OfEqualPointsTheFirstIsTaken) {
  FakeMaps maps(16, 60);
  // The window has its maximum at four points of an even map.
  const PointChoice choice = PointRanking(Config(), 16).Choose(maps.view(), 60, 60, 0.5);
  EXPECT_EQ(choice.row, 7);
  EXPECT_EQ(choice.column, 7);
  EXPECT_EQ(choice.rank_margin, 0);
}

TEST(PointRanking, WithoutWindowThePlaceDoesNotMatter) {
  FakeMaps maps(16, 60);
  maps.Class(1, 0, 0) = 11;
  maps.Class(1, 8, 8) = 10.5;
  const PointRanking ranking(Config(), 16);
  EXPECT_EQ(ranking.Choose(maps.view(), 60, 60, 0).row, 0);
  EXPECT_EQ(ranking.Choose(maps.view(), 60, 60, 0.5).row, 8);
}

TEST(PointRanking, ScoresAndBoxesMayBeGivenInOtherWays) {
  for (const ScoreKind kind : {ScoreKind::kSigmoid, ScoreKind::kProbability}) {
    FakeMaps maps(16, 60, 1);
    for (float& v : maps.classes) v = kind == ScoreKind::kSigmoid ? -9.F : 0.F;
    maps.Class(0, 4, 5) = kind == ScoreKind::kSigmoid ? 2.F : 0.75F;
    const PointChoice choice = PointRanking(Config(kind), 16).Choose(maps.view(), 60, 60, 0.1);
    EXPECT_EQ(choice.row, 4);
    EXPECT_EQ(choice.column, 5);
    EXPECT_DOUBLE_EQ(choice.score, kind == ScoreKind::kSigmoid ? 1 / (1 + std::exp(-2.0)) : 0.75);
  }
  FakeMaps maps(16, 4);
  maps.Class(1, 4, 5) = 12;
  const auto width = [&](BoxKind kind) {
    return PointRanking(Config(ScoreKind::kSoftmax, kind), 16)
        .Choose(maps.view(), 60, 60, 0.1)
        .width;
  };
  EXPECT_DOUBLE_EQ(width(BoxKind::kPixels), 4);
  EXPECT_DOUBLE_EQ(width(BoxKind::kLogPixels), 2 * std::exp(2.0));
  EXPECT_DOUBLE_EQ(width(BoxKind::kCells), 64);
}

TEST(PointRanking, WhatIsNoNumberIsPassedOver) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity, -infinity, 3e38F}) {
    FakeMaps maps(16, 60);
    maps.Class(1, 8, 8) = 12;
    maps.Class(1, 2, 2) = 11;
    for (int side = 0; side < 4; ++side) maps.Distance(side, 8, 8) = bad;
    const PointRanking ranking(Config(), 16);
    const PointChoice choice = ranking.Choose(maps.view(), 60, 60, 0.1);
    ASSERT_TRUE(choice.found());
    EXPECT_EQ(choice.row, 2) << bad;
    maps.Class(1, 2, 2) = nan;
    EXPECT_NE(ranking.Choose(maps.view(), 60, 60, 0.1).row, 2);
  }
  FakeMaps maps(16, 60);
  for (float& v : maps.classes) v = nan;
  EXPECT_FALSE(PointRanking(Config(), 16).Choose(maps.view(), 60, 60, 0.1).found());
  // Boxes that are empty, or turned inside out, are none.
  EXPECT_FALSE(PointRanking(Config(), 16).Choose(FakeMaps(16, 0).view(), 60, 60, 0.1).found());
  EXPECT_FALSE(PointRanking(Config(), 16).Choose(FakeMaps(16, -9).view(), 60, 60, 0.1).found());
}

}  // namespace
}  // namespace tessera
