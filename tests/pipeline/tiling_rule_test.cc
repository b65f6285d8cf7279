// Tiles cannot be seen in what real networks make, and the bytes are the same for every number of
// workers and threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "engine/session.h"
#include "models/builtin_models.h"
#include "ops/error.h"
#include "pipeline/session_model.h"
#include "pipeline/upscaler.h"
#include "tests/engine/test_model.h"
#include "tests/pipeline/test_pictures.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

constexpr std::int64_t kSizes[][2] = {{1, 1}, {7, 5}, {123, 120}, {543, 37}};
constexpr int kUntiled = 1 << 20;

// Smooth areas, edges and noise, as networks treat them differently.
Picture TestPicture(std::int64_t width, std::int64_t height, int bits) {
  Picture picture = NoisePicture({.width = width, .height = height, .bit_depth = bits}, 3);
  const double max = picture.format().MaxValue();
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      if ((x / 16 + y / 16) % 3 == 0) continue;
      for (int c = 0; c < 3; ++c) {
        double v = 0.5 + 0.3 * std::sin(0.11 * static_cast<double>(x + 2 * y) + c);
        if ((x / 7 + y / 5) % 4 == 0) v = 0.1 * c;
        SetSample(picture, x, y, c, static_cast<std::uint32_t>(v * max));
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

void CheckRule(const std::shared_ptr<Session>& session) {
  for (const auto& [w, h] : kSizes) {
    // 16 bits stand for what is there before rounding: 1e-5 of the range are 0.66 levels.
    const Picture deep = TestPicture(w, h, 16), in = TestPicture(w, h, 8);
    const Picture deep_untiled = Upscale(session, deep, {.tile = kUntiled, .threads = 2});
    const Picture untiled = Upscale(session, in, {.tile = kUntiled, .threads = 2});
    for (const int tile : {32, 96, 200}) {
      SCOPED_TRACE(StrCat(w, "x", h, ", tiles of ", tile));
      const Picture tiled = Upscale(session, in, {.tile = tile, .threads = 1, .workers = 1});
      const Difference difference = Compare(tiled, untiled);
      EXPECT_LE(difference.max, 1);
      EXPECT_LE(difference.share, 0.001);
      const Difference rounding =
          Compare(Upscale(session, deep, {.tile = tile, .threads = 2}), deep_untiled);
      EXPECT_LE(rounding.max, 1);
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
  CheckRule(Session::Load(*folder / "models" / GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Published, SharedModel,
                         testing::Values("x4v3.onnx", "animevideov3-x2.onnx", "spanx4.onnx",
                                         "spanx2.onnx"));

TEST(BuiltinModel, TilesDoNotShow) {
  const BuiltinModel& model = DefaultModel();
  CheckRule(Session::LoadFromMemory(model.onnx, std::string(model.name)));
}

}  // namespace
}  // namespace tessera
