// Tiles cannot be seen in what real networks make, and the bytes are the same for every number of
// workers and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/session.h"
#include "models/builtin_models.h"
#include "models/networks.h"
#include "models/weights.h"
#include "ops/error.h"
#include "pipeline/image_reader.h"
#include "pipeline/planes.h"
#include "pipeline/session_model.h"
#include "pipeline/tile_workers.h"
#include "tests/pipeline/compare_tiles.h"
#include "tests/pipeline/test_pictures.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

constexpr std::int64_t kSizes[][2] = {{1, 1}, {7, 5}, {123, 120}, {543, 37}};

// Gradients, edges, lines and texture, as photographs and drawings have them. For pure noise and
// 1-pixel patterns, see tiling_patterns_test.cc.
Picture TestPicture(std::int64_t width, std::int64_t height) {
  const Picture grain = NoisePicture({.width = width, .height = height}, 3);
  Picture picture({.width = width, .height = height});
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        double v = 120 + 70 * std::sin(0.11 * static_cast<double>(x + 2 * y) + c);
        if ((x / 17 + y / 13) % 4 == 0) v = 30 + 60 * c;
        if ((x + 3 * y) % 41 < 2) v = 235;
        v += Sample(grain, x, y, c) / 16.0;
        SetSample(picture, x, y, c, static_cast<std::uint32_t>(v));
      }
    }
  }
  return picture;
}

// A photograph, mirrored until it is large enough.
Picture Photograph(std::int64_t width, std::int64_t height) {
  const Picture sample =
      ReadPicture(std::filesystem::path(TESSERA_SOURCE_DIR) / "samples/mountain.png").picture;
  const auto mirror = [](std::int64_t i, std::int64_t n) {
    i %= 2 * n;
    return i < n ? i : 2 * n - 1 - i;
  };
  Picture picture({.width = width, .height = height});
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        SetSample(picture, x, y, c,
                  Sample(sample, mirror(x, sample.width()), mirror(y, sample.height()), c));
      }
    }
  }
  return picture;
}

// The picture's float planes at the model's own size, before they are rounded.
std::vector<float> Floats(TileModel& model, const Picture& in, int tile) {
  const TilePlan plan = PlanTiles(in.width(), in.height(), model, {.tile = tile, .threads = 2});
  const Tiling& tiling = plan.tiling;
  std::vector<float> planes(
      static_cast<std::size_t>(3 * tiling.output_width * tiling.output_height));
  ForEachTile(plan, [&](const Tile& t, int, Parallel& parallel) {
    const Tensor input(DType::kFloat32, {1, 3, t.input.height, t.input.width});
    for (int c = 0; c < 3; ++c) {
      ReadChannel(in, c, t.input, input.data<float>() + c * t.input.width * t.input.height);
    }
    std::vector<Tensor> outputs;
    model.Run(input.view(), outputs, parallel);
    const Shape& shape = outputs[0].shape();
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t y = t.output.y; y < t.output.bottom(); ++y) {
        const float* row = outputs[0].data<float>() + (c * shape[2] + y - t.output_y) * shape[3] +
                           t.output.x - t.output_x;
        std::copy(
            row, row + t.output.width,
            planes.begin() + (c * tiling.output_height + y) * tiling.output_width + t.output.x);
      }
    }
  });
  return planes;
}

using MakePicture = Picture (*)(std::int64_t width, std::int64_t height);

void CheckRule(const std::shared_ptr<Session>& session, MakePicture make_picture) {
  const std::unique_ptr<TileModel> model = MakeSessionModel(session, "model");
  for (const auto& [w, h] : kSizes) {
    const Picture in = make_picture(w, h);
    const Picture untiled = Upscale(session, in, {.tile = kUntiled, .threads = 2});
    const std::vector<float> untiled_floats = Floats(*model, in, kUntiled);
    const auto [low, high] = std::minmax_element(untiled_floats.begin(), untiled_floats.end());
    const float range = std::max(1.f, *high - *low);
    for (const int tile : {32, 96, 200}) {
      SCOPED_TRACE(StrCat(w, "x", h, ", tiles of ", tile));
      const Picture tiled = Upscale(session, in, {.tile = tile, .threads = 1, .workers = 1});
      const Difference difference = Compare(tiled, untiled);
      EXPECT_LE(difference.max, 1);
      EXPECT_LE(difference.share, 0.001);
      const std::vector<float> floats = Floats(*model, in, tile);
      float largest = 0;
      double squares = 0;
      for (std::size_t i = 0; i < floats.size(); ++i) {
        const float d = std::abs(floats[i] - untiled_floats[i]);
        largest = std::max(largest, d);
        squares += static_cast<double>(d) * static_cast<double>(d);
      }
      EXPECT_LT(std::sqrt(squares / static_cast<double>(floats.size())), 1e-6 * range);
      EXPECT_LT(largest, 1e-5f * range);
      for (const TileOptions& other : {TileOptions{.tile = tile, .threads = 2, .workers = 1},
                                       TileOptions{.tile = tile, .threads = 2, .workers = 2}}) {
        EXPECT_TRUE(SamePixels(Upscale(session, in, other), tiled))
            << other.threads << " threads, " << other.workers << " workers";
      }
    }
  }
}

void CheckRuleOnBoth(const std::shared_ptr<Session>& session) {
  CheckRule(session, TestPicture);
  CheckRule(session, Photograph);
}

class SharedModel : public testing::TestWithParam<const char*> {};

TEST_P(SharedModel, TilesDoNotShow) {
  const auto folder = SharedFolder();
  if (!folder) GTEST_SKIP() << "the folder of published networks is not there";
  CheckRuleOnBoth(Session::Load(*folder / "models" / GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Published, SharedModel,
                         testing::Values("x4v3.onnx", "animevideov3-x2.onnx", "spanx4.onnx",
                                         "spanx2.onnx"));

class BuiltNetwork : public testing::TestWithParam<const char*> {};

TEST_P(BuiltNetwork, TilesDoNotShow) {
  SeededWeights weights(1);
  const std::string bytes = BuildNetwork(*FindNetwork(GetParam()), weights).SerializeAsString();
  CheckRuleOnBoth(Session::LoadFromMemory(std::as_bytes(std::span(bytes)), GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seeded, BuiltNetwork, testing::Values("srvgg-animevideov3", "span-x4"));

// Its field reaches 94 pixels; the default halo stops at kMaxDefaultHalo.
TEST(DeepNetwork, AHaloOfAPartOfTheFieldIsEnough) {
  SeededWeights weights(1);
  const std::string bytes =
      BuildNetwork(*FindNetwork("rrdbnet-x4plus-anime-6b"), weights).SerializeAsString();
  const auto session = Session::LoadFromMemory(std::as_bytes(std::span(bytes)), "rrdbnet");
  const auto model = MakeSessionModel(session, "rrdbnet");
  ASSERT_GT(model->traits().field.width.before, kMaxDefaultHalo);
  const Picture in = Photograph(300, 20);
  ASSERT_GT(PlanTiles(300, 20, *model, {.tile = 96}).tiling.tiles.size(), 1u);
  const Difference difference =
      Compare(Upscale(session, in, {.tile = 96}), Upscale(session, in, {.tile = kUntiled}));
  EXPECT_LE(difference.max, 1);
  EXPECT_LE(difference.share, 0.001);
}

TEST(BuiltinModel, TilesDoNotShow) {
  for (const BuiltinModel& model : BuiltinModels()) {
    SCOPED_TRACE(model.name);
    CheckRuleOnBoth(Session::LoadFromMemory(model.onnx, std::string(model.name)));
  }
}

}  // namespace
}  // namespace tessera
