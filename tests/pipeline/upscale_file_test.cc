// What becomes of a file: sizes, formats, what is refused beforehand.
#include "pipeline/upscale_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "ops/error.h"
#include "tests/pipeline/fake_models.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class UpscaleFileTest : public testing::Test {
 protected:
  // Writes a picture of that format, upscales it and reads what came of it.
  Picture Upscaled(const PictureFormat& format, FileJob job, const PictureOptions& options = {}) {
    WritePicture(folder_ / "in.png", ImageFormat::kPng, NoisePicture(format));
    job.output = folder_ / "out.png";
    PictureInput input(folder_ / "in.png");
    const Upscaler upscaler(std::make_unique<FakeNearest>(4), {.threads = 2}, options);
    const FilePlan plan = PlanFile(upscaler, input, job);
    const FileResult result = UpscaleFile(upscaler, input, job);
    EXPECT_EQ(plan.output, result.output);
    Picture out = ReadPicture(job.output).picture;
    EXPECT_EQ(out.format(), result.output);
    return out;
  }

  std::string PlanError(const PictureFormat& format, const FileJob& job) {
    WritePicture(folder_ / "in.png", ImageFormat::kPng, Picture(format));
    PictureInput input(folder_ / "in.png");
    const Upscaler upscaler(std::make_unique<FakeNearest>(4), {.threads = 2});
    try {
      CheckMemory(PlanFile(upscaler, input, job));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  const TemporaryFolder folder_;
};

TEST_F(UpscaleFileTest, SizesAreThoseAskedFor) {
  const struct {
    SizeOptions size;
    std::int64_t width, height;
  } cases[] = {
      {{}, 148, 84},
      {{.scale = 2}, 74, 42},
      {{.scale = 4}, 148, 84},
      {{.scale = 2.5}, 93, 53},  // 92.5 and 52.5
      {{.scale = 0.5}, 19, 11},
      {{.scale = 0.001}, 1, 1},
      {{.scale = 7.3}, 270, 153},
      {{.width = 100}, 100, 57},
      {{.height = 100}, 176, 100},
      {{.width = 50, .height = 90}, 50, 90},
      {{.longest = 200}, 200, 114},
      {{.shortest = 10}, 18, 10},
  };
  for (const auto& c : cases) {
    const Picture out = Upscaled({.width = 37, .height = 21}, {.size = c.size});
    EXPECT_EQ(out.width(), c.width);
    EXPECT_EQ(out.height(), c.height);
  }
  // The longer side is the height here.
  EXPECT_EQ(Upscaled({.width = 21, .height = 37}, {.size = {.longest = 200}}).height(), 200);
  EXPECT_EQ(Upscaled({.width = 21, .height = 37}, {.size = {.shortest = 10}}).width(), 10);
}

TEST_F(UpscaleFileTest, BitDepthIsThatOfTheInputOrWhatIsAskedFor) {
  for (const int channels : {1, 2, 3, 4}) {
    for (const int in_bits : {8, 16}) {
      for (const std::optional<int> asked : {std::optional<int>(), {8}, {16}}) {
        const PictureFormat format{
            .width = 9, .height = 8, .channels = channels, .bit_depth = in_bits};
        const Picture out = Upscaled(format, {.bit_depth = asked});
        ASSERT_EQ(out.format().bit_depth, asked.value_or(in_bits));
        ASSERT_EQ(out.format().channels, channels);
        const Picture in = NoisePicture(format);
        const int out_max = out.format().MaxValue(), in_max = format.MaxValue();
        for (std::int64_t y = 0; y < 32; ++y) {
          for (std::int64_t x = 0; x < 36; ++x) {
            // What is transparent has colours of its neighbours.
            if (format.HasAlpha() && Sample(in, x / 4, y / 4, channels - 1) == 0) continue;
            for (int c = 0; c < out.format().ColourChannels(); ++c) {
              const double expected =
                  static_cast<double>(Sample(in, x / 4, y / 4, c)) * out_max / in_max;
              ASSERT_NEAR(Sample(out, x, y, c), expected, 0.501);
            }
          }
        }
      }
    }
  }
}

TEST_F(UpscaleFileTest, TransparencyBecomesTheBackgroundWhereThereIsNoAlpha) {
  Picture in({.width = 12, .height = 8, .channels = 4});
  for (std::int64_t y = 0; y < 8; ++y) {
    for (std::int64_t x = 0; x < 12; ++x) {
      const std::uint32_t pixel[] = {255, 0, 0, x < 6 ? 255u : 0u};
      for (int c = 0; c < 4; ++c) SetSample(in, x, y, c, pixel[c]);
    }
  }
  WritePicture(folder_ / "in.png", ImageFormat::kPng, in);
  PictureInput input(folder_ / "in.png");
  const Upscaler upscaler(std::make_unique<FakeNearest>(2), {}, {.background = {10, 200, 30}});
  const FileJob job{.output = folder_ / "out.ppm", .format = ImageFormat::kPnm};
  const FileResult result = UpscaleFile(upscaler, input, job);
  EXPECT_THAT(result.notes, testing::ElementsAre(HasSubstr("no alpha")));
  const Picture out = ReadPicture(job.output).picture;
  ASSERT_EQ(out.format().channels, 3);
  for (const auto& [x, expected] : {std::pair{2, std::array{255u, 0u, 0u}}, {21, {10u, 200u, 30u}}})
    for (int c = 0; c < 3; ++c)
      EXPECT_EQ(Sample(out, x, 8, c), expected[static_cast<std::size_t>(c)]);
}

// Green under what cannot be seen does not shine through at the edge of what can.
TEST_F(UpscaleFileTest, ColoursUnderTransparencyDoNotShineThrough) {
  Picture in({.width = 40, .height = 40, .channels = 4});
  for (std::int64_t y = 0; y < 40; ++y) {
    for (std::int64_t x = 0; x < 40; ++x) {
      const bool seen = (x - 20) * (x - 20) + (y - 20) * (y - 20) < 100;
      const std::uint32_t pixel[] = {seen ? 255u : 0u, seen ? 0u : 255u, 0, seen ? 255u : 0u};
      for (int c = 0; c < 4; ++c) SetSample(in, x, y, c, pixel[c]);
    }
  }
  WritePicture(folder_ / "in.png", ImageFormat::kPng, in);
  for (const double scale : {1.0, 2.0, 3.0}) {
    for (const AlphaMode alpha : {AlphaMode::kBicubic, AlphaMode::kModel}) {
      PictureInput input(folder_ / "in.png");
      const Upscaler upscaler(std::make_unique<FakeConv>(FakeConvOptions{.scale = 2, .radius = 3}),
                              {}, {.alpha = alpha});
      const FileJob job{.output = folder_ / "out.png", .size = {.scale = scale}};
      UpscaleFile(upscaler, input, job);
      const Picture out = ReadPicture(job.output).picture;
      const auto s = static_cast<std::int64_t>(scale);
      std::uint32_t green = 0;
      bool soft = false;
      for (std::int64_t y = 0; y < out.height(); ++y) {
        for (std::int64_t x = 0; x < out.width(); ++x) {
          const std::uint32_t a = Sample(out, x, y, 3);
          if (a != 0) green = std::max(green, Sample(out, x, y, 1));
          soft = soft || (a > 60 && a < 200);
        }
      }
      // The fake adds up to 0.02 to all channels.
      EXPECT_LE(green, 8u) << scale;
      EXPECT_EQ(soft, scale > 1) << scale;
      EXPECT_EQ(Sample(out, 20 * s, 20 * s, 3), 255u);
      EXPECT_EQ(Sample(out, 2 * s, 2 * s, 3), 0u);
    }
  }
}

// Nor where the result is so small that a pixel of it looks hundreds of rows far.
TEST_F(UpscaleFileTest, ColoursUnderTransparencyStayAwayFromSmallResults) {
  for (const bool above : {true, false}) {
    Picture in({.width = 20, .height = 600, .channels = 4});
    for (std::int64_t y = 0; y < 600; ++y) {
      for (std::int64_t x = 0; x < 20; ++x) {
        const bool seen = (y < 300) != above;
        const std::uint32_t pixel[] = {seen ? 255u : 0u, seen ? 0u : 255u, 0, seen ? 255u : 0u};
        for (int c = 0; c < 4; ++c) SetSample(in, x, y, c, pixel[c]);
      }
    }
    WritePicture(folder_ / "in.png", ImageFormat::kPng, in);
    for (const double scale : {0.3, 0.1, 0.05, 0.01}) {
      PictureInput input(folder_ / "in.png");
      const Upscaler upscaler(std::make_unique<FakeNearest>(2), {.tile = 48, .threads = 2});
      const FileJob job{.output = folder_ / "out.png", .size = {.scale = scale}};
      UpscaleFile(upscaler, input, job);
      const Picture out = ReadPicture(job.output).picture;
      for (std::int64_t y = 0; y < out.height(); ++y) {
        if (Sample(out, 0, y, 3) == 0) continue;
        ASSERT_EQ(Sample(out, 0, y, 0), 255u) << scale << ", row " << y;
        ASSERT_EQ(Sample(out, 0, y, 1), 0u) << scale << ", row " << y;
      }
    }
  }
}

// Its first tile takes so long that the other workers run ahead as far as they are let.
class SlowAtFirst : public FakeNearest {
 public:
  using FakeNearest::FakeNearest;
  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel& parallel) override {
    if (!first_.test_and_set()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    FakeNearest::Run(input, outputs, parallel);
  }

 private:
  std::atomic_flag first_;
};

TEST_F(UpscaleFileTest, NoWorkerRunsAheadOfTheRowsThatAreHeld) {
  for (const int channels : {3, 4}) {
    const Picture in({.width = 20, .height = 600, .channels = channels});
    WritePicture(folder_ / "in.png", ImageFormat::kPng, in);
    for (const double scale : {2.0, 0.3, 0.01}) {
      PictureInput input(folder_ / "in.png");
      const Upscaler upscaler(std::make_unique<SlowAtFirst>(2), {.tile = 20, .threads = 2});
      const FileJob job{.output = folder_ / "out.png", .size = {.scale = scale}};
      EXPECT_NO_THROW(UpscaleFile(upscaler, input, job)) << channels << " channels, " << scale;
      EXPECT_EQ(ReadPicture(job.output).picture.height(), std::lround(600 * scale));
    }
  }
}

TEST_F(UpscaleFileTest, WhatCannotBeIsRefusedBeforehand) {
  const PictureFormat format{.width = 5000, .height = 10};
  EXPECT_THAT(PlanError(format, {.format = ImageFormat::kWebp}),
              testing::AllOf(HasSubstr("in.png: the result has 20000x40 pixels"),
                             HasSubstr("WebP holds at most 16383")));
  EXPECT_THAT(PlanError(format, {.format = ImageFormat::kJpeg, .size = {.scale = 20}}),
              HasSubstr("JPEG holds at most"));
  EXPECT_THAT(PlanError(format, {.size = {.scale = 1e9}}), HasSubstr("pixels long"));
  // Each quickly, and without tables for so many pixels.
  for (const auto& [width, height] : {std::pair{2000000000, 100000}, {100000, 2000000000}})
    EXPECT_THAT(PlanError(format, {.size = {.width = width, .height = height}}),
                HasSubstr("the limit is 68719476736 in all"));
  EXPECT_THAT(PlanError(format, {.size = {.width = 2000000000, .height = 30}, .bit_depth = 16}),
              HasSubstr("MB of memory"));
  EXPECT_EQ(PlanError(format, {}), "no error");
}

}  // namespace
}  // namespace tessera
