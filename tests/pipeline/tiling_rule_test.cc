// Tiles cannot be seen in what real networks make, and the bytes are the same for every number of
// workers and threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/cpu_budget.h"
#include "engine/session.h"
#include "models/builtin_models.h"
#include "ops/error.h"
#include "pipeline/image_reader.h"
#include "pipeline/planes.h"
#include "pipeline/session_model.h"
#include "pipeline/tile_plan.h"
#include "pipeline/upscaler.h"
#include "tests/engine/test_model.h"
#include "tests/pipeline/test_pictures.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

constexpr std::int64_t kSizes[][2] = {{1, 1}, {7, 5}, {123, 120}, {543, 37}};
constexpr int kUntiled = 1 << 20;

// Smooth areas, edges and noise, as networks treat them differently.
Picture DrawnPicture(std::int64_t width, std::int64_t height) {
  Picture picture = NoisePicture({.width = width, .height = height}, 3);
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      if ((x / 16 + y / 16) % 3 == 0) continue;
      for (int c = 0; c < 3; ++c) {
        double v = 0.5 + 0.3 * std::sin(0.11 * static_cast<double>(x + 2 * y) + c);
        if ((x / 7 + y / 5) % 4 == 0) v = 0.1 * c;
        SetSample(picture, x, y, c, static_cast<std::uint32_t>(v * 255));
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

Picture Upscale(const std::shared_ptr<Session>& session, const Picture& in,
                const TileOptions& options) {
  const Upscaler upscaler(MakeSessionModel(session, "model"), options);
  PictureFormat out = in.format();
  const Upscaler::Size size = upscaler.OwnSize(in.width(), in.height());
  out.width = size.width;
  out.height = size.height;
  return upscaler.Upscale(in, out);
}

struct Difference {
  int max = 0;
  double share = 0;  // of the samples that differ
};

Difference Compare(const Picture& a, const Picture& b) {
  Difference difference;
  std::int64_t differing = 0, all = 0;
  for (std::int64_t y = 0; y < a.height(); ++y) {
    for (std::int64_t x = 0; x < a.width(); ++x) {
      for (int c = 0; c < a.format().channels; ++c, ++all) {
        const int d =
            std::abs(static_cast<int>(Sample(a, x, y, c)) - static_cast<int>(Sample(b, x, y, c)));
        difference.max = std::max(difference.max, d);
        differing += d != 0;
      }
    }
  }
  difference.share = static_cast<double>(differing) / static_cast<double>(all);
  return difference;
}

Tensor InputOf(const Picture& picture, const Rect& rect) {
  Tensor input(DType::kFloat32, {1, 3, rect.height, rect.width});
  for (int c = 0; c < 3; ++c) {
    ReadChannel(picture, c, rect, input.data<float>() + c * rect.width * rect.height);
  }
  return input;
}

// The largest difference, before anything is rounded, between the untiled result and the parts
// that are taken from tiles; as a share of the range of the untiled result, which is 1 at least.
double DifferenceBeforeRounding(TileModel& model, const Picture& picture, int tile) {
  ThreadTeam team(2);
  std::vector<Tensor> whole, part;
  model.Run(InputOf(picture, {0, 0, picture.width(), picture.height()}).view(), whole, team);
  const std::span<float> values = whole[0].values<float>();
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double range = std::max(1.0, static_cast<double>(*high) - *low);
  const Shape& shape = whole[0].shape();
  double worst = 0;
  const TilePlan plan = PlanTiles(picture.width(), picture.height(), model, {.tile = tile});
  for (const Tile& t : plan.tiling.tiles) {
    model.Run(InputOf(picture, t.input).view(), part, team);
    const Shape& tile_shape = part[0].shape();
    for (int c = 0; c < 3; ++c) {
      for (std::int64_t y = t.output.y; y < t.output.y + t.output.height; ++y) {
        for (std::int64_t x = t.output.x; x < t.output.x + t.output.width; ++x) {
          const float a = whole[0].data<float>()[(c * shape[2] + y) * shape[3] + x];
          const float b =
              part[0].data<float>()[(c * tile_shape[2] + y - t.output_y) * tile_shape[3] + x -
                                    t.output_x];
          worst = std::max(worst, static_cast<double>(std::abs(a - b)));
        }
      }
    }
  }
  return worst / range;
}

void CheckRule(const std::shared_ptr<Session>& session,
               Picture (*make)(std::int64_t, std::int64_t)) {
  for (const auto& [w, h] : kSizes) {
    const Picture in = make(w, h);
    const Picture untiled = Upscale(session, in, {.tile = kUntiled, .threads = 2});
    for (const int tile : {32, 96, 200}) {
      SCOPED_TRACE(StrCat(w, "x", h, ", tiles of ", tile));
      const Picture tiled = Upscale(session, in, {.tile = tile, .threads = 1, .workers = 1});
      const Difference difference = Compare(tiled, untiled);
      EXPECT_LE(difference.max, 1);
      EXPECT_LE(difference.share, 0.001);
      const double before = DifferenceBeforeRounding(*MakeSessionModel(session, "model"), in, tile);
      EXPECT_LT(before, 1e-5);
      std::printf("  %dx%d, tiles of %d: %.5f %% differ, by %.1e before rounding\n",
                  static_cast<int>(w), static_cast<int>(h), tile, 100 * difference.share, before);
      for (const TileOptions& other : {TileOptions{.tile = tile, .threads = 2, .workers = 1},
                                       TileOptions{.tile = tile, .threads = 2, .workers = 2}}) {
        EXPECT_TRUE(SamePixels(Upscale(session, in, other), tiled))
            << other.threads << " threads, " << other.workers << " workers";
      }
    }
  }
}

class SharedModel : public testing::TestWithParam<const char*> {};

TEST_P(SharedModel, TilesDoNotShow) {
  const auto folder = SharedFolder();
  if (!folder) GTEST_SKIP() << "the folder of published networks is not there";
  CheckRule(Session::Load(*folder / "models" / GetParam()), Photograph);
}

INSTANTIATE_TEST_SUITE_P(Published, SharedModel,
                         testing::Values("x4v3.onnx", "animevideov3-x2.onnx", "spanx4.onnx",
                                         "spanx2.onnx"));

TEST(BuiltinModel, TilesDoNotShow) {
  const BuiltinModel& model = DefaultModel();
  const auto session = Session::LoadFromMemory(model.onnx, std::string(model.name));
  CheckRule(session, Photograph);
  CheckRule(session, DrawnPicture);
}

}  // namespace
}  // namespace tessera
