#include "pipeline/upscaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "ops/error.h"
#include "tests/pipeline/fake_models.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

// Upscales at the model's own size and in the format of the input.
Picture Upscale(std::unique_ptr<TileModel> model, const Picture& in, const TileOptions& options) {
  const Upscaler upscaler(std::move(model), options);
  PictureFormat out = in.format();
  const Upscaler::Size size = upscaler.OwnSize(in.width(), in.height());
  out.width = size.width;
  out.height = size.height;
  return upscaler.Upscale(in, out);
}

constexpr std::int64_t kSizes[][2] = {{1, 1}, {7, 5}, {123, 120}, {543, 37}};

// The fakes compute a pixel from its surroundings to the bit; so tiles have to be invisible.
TEST(Upscaler, TilesDoNotShow) {
  const FakeConvOptions models[] = {
      {.radius = 3},
      {.scale = 4, .radius = 9, .phase = kTileGrid},
      {.scale = 1, .radius = 2},
      {.scale = 2, .radius = 5, .alignment = 2},
      {.scale = 3, .radius = 5, .alignment = 8},
      {.channels = 1, .scale = 2, .radius = 4},
  };
  for (const auto& [w, h] : kSizes) {
    const Picture in = NoisePicture({.width = w, .height = h});
    for (const FakeConvOptions& model : models) {
      const Picture untiled =
          Upscale(std::make_unique<FakeConv>(model), in, {.tile = 1 << 20, .threads = 1});
      for (const int tile : {1, 32, 96, 200}) {
        const Picture tiled =
            Upscale(std::make_unique<FakeConv>(model), in, {.tile = tile, .threads = 2});
        EXPECT_TRUE(SamePixels(tiled, untiled))
            << w << "x" << h << ", tiles of " << tile << ", scale " << model.scale;
      }
    }
  }
}

// The test above would see it if there were a halo too few.
TEST(Upscaler, TooSmallAnOverlapShows) {
  const Picture in = NoisePicture({.width = 176, .height = 176});
  const FakeConvOptions model{.radius = 3};
  const TileOptions untiled{.tile = 1 << 20};
  TileOptions tiled{.tile = 48, .overlap = 3};
  const Picture expected = Upscale(std::make_unique<FakeConv>(model), in, untiled);
  EXPECT_TRUE(SamePixels(Upscale(std::make_unique<FakeConv>(model), in, tiled), expected));
  tiled.overlap = 2;
  EXPECT_FALSE(SamePixels(Upscale(std::make_unique<FakeConv>(model), in, tiled), expected));
}

TEST(Upscaler, WorkersAndThreadsChangeNothing) {
  const Picture in = NoisePicture({.width = 300, .height = 111, .channels = 4, .bit_depth = 16});
  const FakeConvOptions model{.scale = 2, .radius = 4, .phase = kTileGrid};
  const Picture one =
      Upscale(std::make_unique<FakeConv>(model), in, {.tile = 60, .threads = 1, .workers = 1});
  for (const int threads : {1, 2, 5}) {
    for (const int workers : {1, 2, 3}) {
      const Picture other = Upscale(std::make_unique<FakeConv>(model), in,
                                    {.tile = 60, .threads = threads, .workers = workers});
      EXPECT_TRUE(SamePixels(other, one)) << threads << " threads, " << workers << " workers";
    }
  }
}

TEST(Upscaler, FixedInputsAreFilledByReflection) {
  const FakeConvOptions model{.scale = 2, .radius = 3, .fixed_input = ModelTraits::Size{64, 48}};
  FakeConvOptions free = model;
  free.fixed_input = {};
  for (const auto& [w, h] : kSizes) {
    const Picture in = NoisePicture({.width = w, .height = h});
    const Picture out = Upscale(std::make_unique<FakeConv>(model), in, {.threads = 2});
    const Picture expected = Upscale(std::make_unique<FakeConv>(free), in, {.threads = 1});
    ASSERT_EQ(out.format(), expected.format());
    // At the right and lower border there is a reflection where the free network sees zeros.
    for (std::int64_t y = 0; y < 2 * (h - 3); ++y)
      for (std::int64_t x = 0; x < 2 * (w - 3); ++x)
        for (int c = 0; c < 3; ++c)
          ASSERT_EQ(Sample(out, x, y, c), Sample(expected, x, y, c)) << x << "," << y;
  }
}

TEST(Upscaler, NearestIsNearestInEveryFormat) {
  for (const int channels : {1, 2, 3, 4}) {
    for (const int bits : {8, 16}) {
      for (const int model_channels : {1, 3}) {
        const Picture in =
            NoisePicture({.width = 31, .height = 14, .channels = channels, .bit_depth = bits});
        const Picture out = Upscale(std::make_unique<FakeNearest>(3, model_channels), in,
                                    {.tile = 12, .threads = 2});
        ASSERT_EQ(out.width(), 93);
        ASSERT_EQ(out.height(), 42);
        for (std::int64_t y = 0; y < out.height(); ++y)
          for (std::int64_t x = 0; x < out.width(); ++x)
            for (int c = 0; c < in.format().ColourChannels(); ++c)
              ASSERT_EQ(Sample(out, x, y, c), Sample(in, x / 3, y / 3, c))
                  << channels << " channels, " << bits << " bits";
      }
    }
  }
}

TEST(Upscaler, AlphaIsSmoothAndKeepsItsExtremes) {
  Picture in(PictureFormat{.width = 60, .height = 20, .channels = 4, .bit_depth = 8});
  for (std::int64_t y = 0; y < 20; ++y) {
    for (std::int64_t x = 0; x < 60; ++x) {
      for (int c = 0; c < 3; ++c) SetSample(in, x, y, c, 90);
      SetSample(in, x, y, 3, x < 20 ? 0 : x < 40 ? 255 : 128);
    }
  }
  const Upscaler upscaler(std::make_unique<FakeNearest>(4), {.tile = 12, .threads = 2});
  for (const int factor : {1, 2, 4, 5}) {
    const Picture out = upscaler.Upscale(
        in, {.width = 60 * factor, .height = 20 * factor, .channels = 4, .bit_depth = 8});
    bool between = false;
    for (std::int64_t y = 0; y < out.height(); ++y) {
      for (std::int64_t x = 0; x < out.width(); ++x) {
        const std::uint32_t a = Sample(out, x, y, 3);
        const std::int64_t from = x / factor;
        if (from < 18) {
          ASSERT_EQ(a, 0u);
        }
        if (from >= 22 && from < 38) {
          ASSERT_EQ(a, 255u);
        }
        if (from >= 42) {
          ASSERT_EQ(a, 128u);
        }
        between = between || (a > 20 && a < 110);
        ASSERT_EQ(Sample(out, x, y, 0), 90u);
      }
    }
    EXPECT_EQ(between, factor > 1);
  }
}

TEST(Upscaler, AlphaWithoutAChannelIsFlattenedOnWhite) {
  Picture in(PictureFormat{.width = 3, .height = 1, .channels = 4, .bit_depth = 8});
  const std::uint32_t alphas[] = {0, 255, 51};
  for (std::int64_t x = 0; x < 3; ++x) {
    for (int c = 0; c < 3; ++c) SetSample(in, x, 0, c, 100);
    SetSample(in, x, 0, 3, alphas[x]);
  }
  const Upscaler upscaler(std::make_unique<FakeNearest>(1), {});
  const Picture out =
      upscaler.Upscale(in, {.width = 3, .height = 1, .channels = 3, .bit_depth = 8});
  EXPECT_EQ(Sample(out, 0, 0, 1), 255u);
  EXPECT_EQ(Sample(out, 1, 0, 1), 100u);
  EXPECT_EQ(Sample(out, 2, 0, 1), 224u);  // 0.2 * 100 + 0.8 * 255
}

TEST(Upscaler, OtherSizesAreResampled) {
  // A ramp stays one, whatever the size.
  Picture in(PictureFormat{.width = 64, .height = 48, .channels = 3, .bit_depth = 16});
  for (std::int64_t y = 0; y < 48; ++y)
    for (std::int64_t x = 0; x < 64; ++x)
      for (int c = 0; c < 3; ++c)
        SetSample(in, x, y, c, static_cast<std::uint32_t>(x * 700 + y * 300 + 2000));
  const Upscaler upscaler(std::make_unique<FakeNearest>(4), {.threads = 2});
  for (const auto& [w, h] : {std::pair{32, 24}, {96, 72}, {101, 33}}) {
    const Picture out =
        upscaler.Upscale(in, {.width = w, .height = h, .channels = 3, .bit_depth = 16});
    for (int y = 6; y < h - 6; ++y) {
      for (int x = 6; x < w - 6; ++x) {
        const double fx = (x + 0.5) * 64 / w - 0.5, fy = (y + 0.5) * 48 / h - 0.5;
        ASSERT_NEAR(Sample(out, x, y, 1), fx * 700 + fy * 300 + 2000, 120);
      }
    }
  }
}

TEST(Upscaler, BadNumbersAreErrorsWithAPlace) {
  Picture in(PictureFormat{.width = 50, .height = 40, .channels = 3, .bit_depth = 8});
  for (std::int64_t y = 0; y < 40; ++y)
    for (std::int64_t x = 0; x < 50; ++x)
      for (int c = 0; c < 3; ++c) SetSample(in, x, y, c, x == 30 && y == 21 ? 77 : 10);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto model = std::make_unique<FakeNearest>(2);
    model->spoil_at = 77 / 255.f;
    model->spoil_with = bad;
    const Upscaler upscaler(std::move(model), {.tile = 12, .threads = 2});
    for (const int width : {100, 75}) {
      try {
        upscaler.Upscale(in, {.width = width, .height = 80, .channels = 3, .bit_depth = 8});
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("(60, 42)"));
      }
    }
  }
}

class Refusing : public FakeConv {
 public:
  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) override {
    if (runs == 3) throw Error("node 'x' refuses");
    FakeConv::Run(input, outputs, parallel);
  }
};

TEST(Upscaler, ErrorsOfWorkersReachTheCallerAndStopTheOthers) {
  const Picture in = NoisePicture({.width = 600, .height = 600});
  for (const int workers : {1, 3}) {
    auto model = std::make_unique<Refusing>();
    Refusing* const observed = model.get();
    const Upscaler upscaler(std::move(model), {.tile = 24, .threads = 3, .workers = workers});
    EXPECT_THROW(upscaler.Upscale(in, {.width = 1200, .height = 1200}), Error);
    EXPECT_LT(observed->runs, 10);
  }
}

TEST(Upscaler, ReportsEveryTile) {
  const Picture in = NoisePicture({.width = 200, .height = 100});
  const Upscaler upscaler(std::make_unique<FakeConv>(), {.tile = 48, .threads = 3});
  std::size_t expected = 0, all = 0;
  upscaler.Upscale(in, {.width = 400, .height = 200}, [&](std::size_t done, std::size_t total) {
    EXPECT_EQ(done, ++expected);
    all = total;
  });
  EXPECT_GT(all, 4u);
  EXPECT_EQ(expected, all);
}

}  // namespace
}  // namespace tessera
