#include "pipeline/tracking/search_path.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace tessera {
namespace {

struct Case {
  double width, height, x, y, side;
};
const Case kCases[] = {{320, 240, 160, 120, 130},  {320, 240, 0, 240, 130},
                       {1920, 1080, 30, 1000, 90}, {100, 2000, 50, 10, 41},
                       {16, 16, 8, 8, 300},        {4000, 20, 3999, 3, 55}};

TEST(SearchPath, BeginsWhereTheTargetWasLostAndGrows) {
  SearchPath path(320, 240, 100, 80, 60);
  double last = 0;
  for (int i = 0; i < 3; ++i) {
    const SearchPath::Place place = path.Next();
    EXPECT_EQ(place.x, 100);
    EXPECT_EQ(place.y, 80);
    EXPECT_GT(place.enlargement, last);
    last = place.enlargement;
  }
  EXPECT_EQ(last, SearchPath::kMaxEnlargement);
}

// Every point of the picture comes to lie within 0.3 of a window's side from its middle.
TEST(SearchPath, CoversThePictureAgainAndAgain) {
  for (const Case& c : kCases) {
    SearchPath path(c.width, c.height, c.x, c.y, c.side);
    const double step = 0.6 * SearchPath::kMaxEnlargement * c.side;
    const auto windows =
        static_cast<int>((std::ceil(c.width / step) + 2) * (std::ceil(c.height / step) + 2));
    for (int round = 0; round < 3; ++round) {
      std::vector<SearchPath::Place> places;
      for (int i = 0; i < 2 * windows + 3; ++i) {
        places.push_back(path.Next());
        EXPECT_GE(places.back().x, 0);
        EXPECT_GE(places.back().y, 0);
        EXPECT_LE(places.back().x, c.width);
        EXPECT_LE(places.back().y, c.height);
      }
      for (double y = 0; y <= c.height; y += c.height / 13) {
        for (double x = 0; x <= c.width; x += c.width / 17) {
          bool seen = false;
          for (const SearchPath::Place& place : places) {
            const double reach = 0.3 * place.enlargement * c.side + 1e-6;
            seen = seen || (std::abs(place.x - x) <= reach && std::abs(place.y - y) <= reach);
          }
          EXPECT_TRUE(seen) << x << ", " << y << " of " << c.width << "x" << c.height << ", round "
                            << round;
        }
      }
    }
  }
}

// As what comes back may be larger or smaller.
TEST(SearchPath, LooksCloserInOtherSizesRoundByRound) {
  SearchPath path(320, 240, 160, 120, 400);
  std::set<double> sizes;
  EXPECT_EQ(path.Next().closer, 1);
  for (int i = 0; i < 60; ++i) sizes.insert(path.Next().closer);
  EXPECT_GE(sizes.size(), 3U);
  EXPECT_LT(*sizes.begin(), 1);
  EXPECT_GT(*sizes.rbegin(), 1);
}

TEST(SearchPath, GoesFromNearToFarAndComesBack) {
  SearchPath path(3000, 2000, 1500, 1000, 60);
  for (int i = 0; i < 3; ++i) path.Next();
  double last = 0;
  for (int i = 0; i < 200; ++i) {
    const SearchPath::Place place = path.Next();
    const double away = std::max(std::abs(place.x - 1500), std::abs(place.y - 1000));
    if (i % 2 == 1) {
      EXPECT_EQ(away, 0);
      continue;
    }
    EXPECT_GE(away, last - 1e-6);
    last = away;
  }
  EXPECT_GT(last, 300);
}

}  // namespace
}  // namespace tessera
