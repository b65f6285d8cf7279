#include "pipeline/tile_plan.h"

#include <gtest/gtest.h>

#include "tests/pipeline/fake_models.h"

namespace tessera {
namespace {

bool SameTiles(const Tiling& a, const Tiling& b) {
  if (a.tiles.size() != b.tiles.size()) return false;
  for (std::size_t i = 0; i < a.tiles.size(); ++i) {
    if (a.tiles[i].input != b.tiles[i].input || a.tiles[i].output != b.tiles[i].output)
      return false;
  }
  return true;
}

TEST(PlanTiles, GivenTilesDoNotDependOnWorkers) {
  const FakeConv model;
  const TilePlan one = PlanTiles(700, 500, model, {.tile = 96, .threads = 1});
  for (const int threads : {1, 2, 3, 8}) {
    for (const int workers : {0, 1, 2, 5}) {
      const TilePlan plan =
          PlanTiles(700, 500, model, {.tile = 96, .threads = threads, .workers = workers});
      EXPECT_TRUE(SameTiles(plan.tiling, one.tiling));
    }
  }
}

TEST(PlanTiles, WorkersShareTheBudget) {
  const FakeConv model;
  for (const int threads : {1, 2, 3, 7, 16}) {
    for (const int workers : {0, 1, 2, 3, 40}) {
      for (const int tile : {0, 48, 4000}) {
        const TilePlan plan =
            PlanTiles(400, 300, model, {.tile = tile, .threads = threads, .workers = workers});
        EXPECT_GE(plan.workers, 1);
        EXPECT_LE(plan.workers, static_cast<int>(plan.tiling.tiles.size()));
        if (workers > 0) {
          EXPECT_LE(plan.workers, workers);
        }
        int sum = 0;
        for (int i = 0; i < plan.workers; ++i) {
          EXPECT_GE(plan.ThreadsOf(i), 1);
          sum += plan.ThreadsOf(i);
        }
        EXPECT_EQ(sum, threads);
      }
    }
  }
}

TEST(PlanTiles, AutomaticTilesFitIntoTheMemoryAndEndTogether) {
  const FakeConv model;  // 1000 bytes a pixel
  for (const int threads : {1, 2, 4}) {
    for (const std::size_t megabytes : {100, 300, 2000}) {
      const TilePlan plan = PlanTiles(
          1500, 1100, model, {.threads = threads, .memory_bytes = megabytes * 1000 * 1000});
      const Tiling& t = plan.tiling;
      EXPECT_LE(
          model.RunBytes(t.tile_width, t.tile_height) * static_cast<std::size_t>(plan.workers),
          megabytes * 1000 * 1000);
      // Little of the time is lost to halos and idle workers.
      const std::size_t rounds = (t.tiles.size() + static_cast<std::size_t>(plan.workers) - 1) /
                                 static_cast<std::size_t>(plan.workers);
      const double work = static_cast<double>(t.tile_width * t.tile_height) *
                          static_cast<double>(rounds) * plan.workers;
      EXPECT_LT(work, 1500 * 1100 * (megabytes == 100 ? 1.4 : 1.2))
          << threads << " threads, " << megabytes << " MB";
    }
  }
}

TEST(PlanTiles, TooLittleMemoryGivesTheSmallestTiles) {
  const FakeConv model;
  const TilePlan plan = PlanTiles(300, 300, model, {.threads = 4, .memory_bytes = 1});
  EXPECT_EQ(plan.workers, 1);
  EXPECT_LT(plan.tiling.tile_width, 2 * 9 + 2 * kTileGrid);
}

class Global : public FakeConv {
 public:
  Global() : traits_(FakeConv::traits()) { traits_.local = false; }
  const ModelTraits& traits() const override { return traits_; }

 private:
  ModelTraits traits_;
};

TEST(PlanTiles, NetworksThatSeeEverythingAreNotCutUnlessAskedTo) {
  const Global model;
  const TileOptions little{.threads = 2, .memory_bytes = 1000};
  EXPECT_EQ(PlanTiles(900, 700, model, little).tiling.tiles.size(), 1u);
  TileOptions asked = little;
  asked.tile = 200;
  EXPECT_GT(PlanTiles(900, 700, model, asked).tiling.tiles.size(), 9u);
}

TEST(PlanTiles, DeepFieldsAreCutShort) {
  const FakeConv deep({.radius = 400}), shallow({.radius = 30});
  const TileOptions options{.tile = 120, .threads = 1};
  EXPECT_LT(PlanTiles(4000, 4000, deep, options).tiling.tile_width,
            120 + 2 * kMaxDefaultHalo + kTileGrid);
  EXPECT_GE(PlanTiles(4000, 4000, shallow, options).tiling.tile_width, 120 + 2 * 36);
}

}  // namespace
}  // namespace tessera
