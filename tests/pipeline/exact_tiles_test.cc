#include "pipeline/exact_tiles.h"

#include <gtest/gtest.h>

#include <limits>

#include "pipeline/upscaler.h"
#include "tests/pipeline/fake_models.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

// Its halo is kGridMargin more than the field; that is not enough for what this one looks at.
constexpr FakeConvOptions kFarSighted{.radius = 17, .rounding = 16};
constexpr FakeConvOptions kLoud{.radius = 17, .rounding = 16, .gain = 40};

struct Result {
  Picture picture;
  int runs = 0;
};

Result UpscaleWith(const FakeConvOptions& model_options, const TileOptions& options) {
  auto model = std::make_unique<FakeConv>(model_options);
  const FakeConv& fake = *model;
  const Picture in = NoisePicture({.width = 150, .height = 130});
  const Upscaler upscaler(std::move(model), options, {.zero_edges = true});
  const Upscaler::Size size = upscaler.OwnSize(in.width(), in.height());
  Result result{upscaler.Upscale(in, {.width = size.width, .height = size.height})};
  result.runs = fake.runs;
  return result;
}

std::size_t NumTiles(const FakeConvOptions& model, const TileOptions& options) {
  return PlanTiles(150, 130, FakeConv(model), options).tiling.tiles.size();
}

TEST(ExactTiles, ReplaceTilesWhoseRoundingShows) {
  const TileOptions tiled{.tile = 36, .threads = 1};
  const Result untiled = UpscaleWith(kLoud, {.tile = 1 << 20, .threads = 1});
  EXPECT_EQ(untiled.runs, 1);
  const Result result = UpscaleWith(kLoud, tiled);
  EXPECT_TRUE(SamePixels(result.picture, untiled.picture));
  EXPECT_EQ(result.runs, static_cast<int>(2 * NumTiles(kLoud, tiled)));
  // Little memory makes more of them.
  for (const std::size_t memory : {1, 20'000'000}) {
    TileOptions small = tiled;
    small.memory_bytes = memory;
    EXPECT_TRUE(SamePixels(UpscaleWith(kLoud, small).picture, untiled.picture));
  }
}

TEST(ExactTiles, AreNotRunForOthers) {
  const TileOptions tiled{.tile = 36, .threads = 1};
  EXPECT_EQ(UpscaleWith(kFarSighted, tiled).runs, static_cast<int>(NumTiles(kFarSighted, tiled)));
  // An overlap that was asked for is what is done.
  const TileOptions given{.tile = 36, .overlap = 5, .threads = 1};
  const Result result = UpscaleWith(kLoud, given);
  EXPECT_EQ(result.runs, static_cast<int>(NumTiles(kLoud, given)));
  EXPECT_FALSE(SamePixels(result.picture, UpscaleWith(kLoud, {.tile = 1 << 20}).picture));
}

TEST(ExactTiles, WorkersDoNotChangeTheBytes) {
  const Result one = UpscaleWith(kLoud, {.tile = 36, .threads = 1});
  const Result two = UpscaleWith(kLoud, {.tile = 36, .threads = 2, .workers = 2});
  EXPECT_TRUE(SamePixels(one.picture, two.picture));
}

TEST(ExactTiles, FitIntoTheMemoryBesideTheOthers) {
  const FakeConv model({.radius = 100, .rounding = 80});
  for (const int tile : {0, 24, 96, 240}) {
    for (const std::size_t bytes : {200'000'000, 400'000'000, 2'000'000'000}) {
      const TilePlan plan =
          PlanTiles(3000, 2500, model, {.tile = tile, .threads = 2, .memory_bytes = bytes});
      ASSERT_TRUE(plan.exact);
      const Tiling& t = plan.tiling;
      const std::size_t own = model.RunBytes(t.tile_width, t.tile_height);
      const std::size_t exact = model.RunBytes(plan.exact->width, plan.exact->height);
      EXPECT_TRUE(exact == own || (own + exact) * static_cast<std::size_t>(plan.workers) <= bytes)
          << "tiles of " << tile << ", " << bytes << " bytes";
    }
  }
}

TEST(ExactTiles, AreNotMadeWhereNothingIsToBeGained) {
  const TileOptions options{.tile = 96};
  EXPECT_TRUE(PlanTiles(900, 800, FakeConv(kFarSighted), options).exact);
  EXPECT_FALSE(PlanTiles(90, 80, FakeConv(kFarSighted), options).exact);  // one tile
  // Their halos would be too wide.
  EXPECT_FALSE(PlanTiles(900, 800, FakeConv({.radius = 300, .rounding = 270}), options).exact);
  // Inputs have one size.
  FakeConvOptions fixed = kFarSighted;
  fixed.fixed_input = {96, 96};
  EXPECT_FALSE(PlanTiles(900, 800, FakeConv(fixed), options).exact);
}

TEST(RoundingMayShow, OfValuesFarOutOfRange) {
  EXPECT_FALSE(RoundingMayShow({}));
  EXPECT_FALSE(RoundingMayShow(std::vector<float>{0, 1, -1.5f, 2.5f}));
  EXPECT_TRUE(RoundingMayShow(std::vector<float>{0, 1, 3.5f, 0.5f}));
  EXPECT_TRUE(RoundingMayShow(std::vector<float>{0, -2.5f}));
  EXPECT_TRUE(RoundingMayShow(std::vector<float>{std::numeric_limits<float>::quiet_NaN()}));
}

}  // namespace
}  // namespace tessera
