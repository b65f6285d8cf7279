// Tiles cannot be seen where networks are at their worst: in halftone, dither, noise, patterns of
// single pixels. Some networks answer these with values of thousands, and rounding errors with
// them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

#include "models/networks.h"
#include "models/weights.h"
#include "ops/error.h"
#include "tests/pipeline/compare_tiles.h"
#include "tests/pipeline/test_pictures.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

struct Pattern {
  const char* name;
  // Grey value at (x, y) of a picture of this width.
  double (*value)(std::int64_t x, std::int64_t y, std::int64_t width);
};

double Share(std::int64_t x, std::int64_t width) {
  return static_cast<double>(x) / static_cast<double>(width);
}

// Dots at 45 degrees that grow from left to right.
double Halftone(std::int64_t x, std::int64_t y, std::int64_t width) {
  constexpr double kTurn = 2 * std::numbers::pi / 4 * std::numbers::sqrt2 / 2;
  const double dots = (std::cos(kTurn * static_cast<double>(x + y)) +
                       std::cos(kTurn * static_cast<double>(x - y))) /
                      2;
  return dots > 1 - 2 * Share(x, width) ? 255 : 0;
}

double Checker(std::int64_t x, std::int64_t y, std::int64_t) { return (x + y) % 2 * 255.0; }

double Lines(std::int64_t x, std::int64_t, std::int64_t) { return x % 2 * 255.0; }

// A gradient by ordered dither.
double Dither(std::int64_t x, std::int64_t y, std::int64_t width) {
  constexpr double kBayer[4][4] = {{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};
  return 16 * Share(x, width) > kBayer[y % 4][x % 4] + 0.5 ? 255 : 0;
}

// Seeded noise below 1.
double Grain(std::int64_t x, std::int64_t y) {
  auto s = static_cast<std::uint32_t>(x * 7919 + y * 104729 + 1);
  for (int i = 0; i < 3; ++i) {
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
  }
  return static_cast<double>(s >> 8) * 0x1p-24;
}

double Noise(std::int64_t x, std::int64_t y, std::int64_t) { return std::floor(256 * Grain(x, y)); }

double Dark(std::int64_t x, std::int64_t y, std::int64_t) {
  return static_cast<double>((x / 40 + y / 40) % 4) + std::floor(2 * Grain(x, y));
}

double WhitePixel(std::int64_t x, std::int64_t y, std::int64_t width) {
  return x == width / 2 && y == 20 ? 255 : 0;
}

constexpr Pattern kPatterns[] = {{"halftone", Halftone},     {"checker", Checker}, {"lines", Lines},
                                 {"dither", Dither},         {"noise", Noise},     {"dark", Dark},
                                 {"white pixel", WhitePixel}};

Picture Draw(const Pattern& pattern, std::int64_t width, std::int64_t height) {
  Picture picture({.width = width, .height = height});
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      const auto value = static_cast<std::uint32_t>(pattern.value(x, y, width));
      for (int c = 0; c < 3; ++c) SetSample(picture, x, y, c, value);
    }
  }
  return picture;
}

// Samples that differ, and all, by their distance from a seam in input pixels: less than kNear, and
// from there to kFar. (Still farther away, most samples are those of the untiled run to the bit.)
constexpr std::int64_t kNear = 4, kFar = 12;
struct SeamCount {
  double near = 0, near_all = 0, far = 0, far_all = 0;
};

// The distance of each place of an axis from the next of the places where tiles begin.
template <typename Begin>
std::vector<std::int64_t> SeamDistances(const Tiling& tiling, std::int64_t length, Begin begin) {
  std::vector<std::int64_t> distances(static_cast<std::size_t>(length), length);
  for (const Tile& tile : tiling.tiles) {
    const std::int64_t seam = begin(tile.output);
    for (std::int64_t i = 0; i < length && seam > 0; ++i) {
      std::int64_t& distance = distances[static_cast<std::size_t>(i)];
      distance = std::min(distance, i < seam ? seam - 1 - i : i - seam);
    }
  }
  return distances;
}

void CountBySeams(const Picture& tiled, const Picture& untiled, const Tiling& tiling,
                  std::int64_t scale, SeamCount& count) {
  const auto columns = SeamDistances(tiling, tiled.width(), [](const Rect& r) { return r.x; });
  const auto rows = SeamDistances(tiling, tiled.height(), [](const Rect& r) { return r.y; });
  for (std::int64_t y = 0; y < tiled.height(); ++y) {
    for (std::int64_t x = 0; x < tiled.width(); ++x) {
      const std::int64_t distance =
          std::min(columns[static_cast<std::size_t>(x)], rows[static_cast<std::size_t>(y)]);
      if (distance >= kFar * scale) continue;
      const bool near = distance < kNear * scale;
      for (int c = 0; c < 3; ++c) {
        const double differs = Sample(tiled, x, y, c) != Sample(untiled, x, y, c) ? 1 : 0;
        (near ? count.near : count.far) += differs;
        (near ? count.near_all : count.far_all) += 1;
      }
    }
  }
}

void CheckPatterns(const std::shared_ptr<Session>& session) {
  struct Case {
    std::int64_t width, height;
    int tile;
  };
  constexpr Case kCases[] = {{105, 86, 32}, {301, 33, 96}, {301, 33, 200}};
  // So that tiles lie where PlanTiles puts them.
  const PictureOptions options{.zero_edges = true};
  const std::unique_ptr<TileModel> model = MakeSessionModel(session, "model");
  SeamCount sum;
  for (const Pattern& pattern : kPatterns) {
    for (const auto& [width, height, tile] : kCases) {
      SCOPED_TRACE(StrCat(pattern.name, ", ", width, "x", height, ", tiles of ", tile));
      const Picture in = Draw(pattern, width, height);
      const TileOptions tiles{.tile = tile, .threads = 2};
      const Picture untiled = Upscale(session, in, {.tile = kUntiled, .threads = 2}, options);
      const Picture tiled = Upscale(session, in, tiles, options);
      const Difference difference = Compare(tiled, untiled);
      EXPECT_LE(difference.max, 1);
      EXPECT_LE(difference.share, 0.001);
      CountBySeams(tiled, untiled, PlanTiles(width, height, *model, tiles).tiling,
                   model->traits().field.width.scale_num, sum);
    }
  }
  // What differs fades with the distance from a seam, but slowly: it draws no line there. Small
  // numbers tell nothing, hence three standard deviations more.
  const double expected = 2 * sum.far / sum.far_all * sum.near_all;
  EXPECT_LE(sum.near, expected + 3 * std::sqrt(std::max(10.0, expected)))
      << sum.near << ", " << sum.far << " of " << sum.far_all << " farther away, " << sum.near_all
      << " near seams";
}

// On demand not a bit differs, whatever the network makes of the picture.
void CheckExact(const std::shared_ptr<Session>& session) {
  for (const Pattern& pattern : {kPatterns[0], Pattern{"noise", Noise}}) {
    const Picture in = Draw(pattern, 601, 25);  // wide enough for several tiles
    const Picture untiled = Upscale(session, in, {.tile = kUntiled, .threads = 2});
    const Picture exact = Upscale(session, in, {.tile = 48, .exact = true, .threads = 2});
    EXPECT_TRUE(SamePixels(exact, untiled)) << pattern.name;
  }
}

class SharedModelOnPatterns : public testing::TestWithParam<const char*> {};

TEST_P(SharedModelOnPatterns, TilesDoNotShow) {
  const auto folder = SharedFolder();
  if (!folder) GTEST_SKIP() << "the folder of published networks is not there";
  CheckPatterns(Session::Load(*folder / "models" / GetParam()));
}

TEST_P(SharedModelOnPatterns, ExactTilesAreTheUntiledRun) {
  const auto folder = SharedFolder();
  if (!folder) GTEST_SKIP() << "the folder of published networks is not there";
  CheckExact(Session::Load(*folder / "models" / GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Published, SharedModelOnPatterns,
                         testing::Values("x4v3.onnx", "animevideov3-x2.onnx", "spanx4.onnx",
                                         "spanx2.onnx", "spanx2-fp16.onnx", "int8/spanx2_qdq.onnx",
                                         "int8/spanx2_qlinear.onnx",
                                         "ncnn/realesr-animevideov3-x2.param",
                                         "ncnn/realesr-general-x4v3.param",
                                         "ncnn/spanx4_ch48.param"));

class BuiltNetworkOnPatterns : public testing::TestWithParam<const char*> {};

TEST_P(BuiltNetworkOnPatterns, TilesDoNotShow) {
  SeededWeights weights(1);
  const std::string bytes = BuildNetwork(*FindNetwork(GetParam()), weights).SerializeAsString();
  CheckPatterns(Session::LoadFromMemory(std::as_bytes(std::span(bytes)), GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seeded, BuiltNetworkOnPatterns,
                         testing::Values("srvgg-animevideov3", "span-x4"));

}  // namespace
}  // namespace tessera
