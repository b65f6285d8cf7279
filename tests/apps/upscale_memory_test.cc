// Memory of the program does not grow with the picture, nor with the number of pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pipeline/atomic_file.h"
#include "tests/apps/upscale_command.h"

namespace tessera {
namespace {

using testing::HasSubstr;

// What the program takes whatever it does, its libraries and the network, in KB.
constexpr long kProgramKb = 120 * 1024;

// A network of 3x3 convolutions that is cheap enough for large pictures.
std::string CheapNetwork() {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y");
  std::vector<float> weights(std::size_t{12} * 3 * 9);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = i % 9 == 4 && i / 9 % 3 == i / 108 ? 0.9f : 0.01f;
  m.Floats("w", {12, 3, 3, 3}, weights);
  m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}})
      .Node("DepthToSpace", {"c"}, {"y"},
            {{"blocksize", std::int64_t{2}}, {"mode", std::string("CRD")}});
  return m.Bytes();
}

class UpscaleMemory : public UpscaleCommand {
 protected:
  UpscaleMemory() { WriteBytes(model_, CheapNetwork()); }

  // Writes a picture without holding it.
  void WriteSlope(const std::string& name, ImageFormat format, const PictureFormat& picture) const {
    AtomicFile file(Path(name));
    const auto writer = MakeImageWriter(format, picture, {}, file.stream());
    const std::int64_t strip = StripRows(format, picture);
    const Picture rows(picture, strip + 1);
    for (std::int64_t y = 0; y < picture.height; y += strip) {
      const std::int64_t end = std::min(picture.height, y + strip);
      for (std::int64_t i = y; i < end; ++i) {
        for (std::int64_t x = 0; x < picture.width; ++x)
          for (int c = 0; c < picture.channels; ++c)
            SetSample(rows, x, i, c, static_cast<std::uint32_t>((x + i * (c + 1)) >> 3 | 1));
      }
      writer->WriteStrip(rows, y, end, writer->PackStrip(rows, y, end));
    }
    writer->Finish();
    file.Commit();
  }

  // Row 800 of the result of a slope of that width is brightened by the network's known factor.
  static void ExpectSlope(const std::string& file, std::int64_t width, double scale) {
    const std::unique_ptr<ImageReader> reader = OpenImage(file);
    ASSERT_EQ(reader->format().width, std::lround(static_cast<double>(width) * scale));
    const int channels = reader->format().channels;
    std::vector<std::uint8_t> row(reader->format().RowBytes());
    constexpr std::int64_t kRow = 800;
    for (std::int64_t y = 0; y <= kRow; ++y)
      reader->ReadRow(reinterpret_cast<std::byte*>(row.data()));
    int looked_at = 0;
    for (std::int64_t x = 100; x < reader->format().width - 100; x += 17) {
      const auto at = [scale](std::int64_t i) {
        return static_cast<std::int64_t>((static_cast<double>(i) + 0.5) / scale);
      };
      double expected = 0;
      bool step = false;  // from 255 to 0, nearby
      for (std::int64_t c = 0; c < 3; ++c) {
        const std::int64_t value = (at(x) + at(kRow) * (c + 1)) % 2048;
        step = step || value < 200 || value > 1848;
        expected += (c == 0 ? 0.98 : 0.09) * static_cast<double>(value) / 8;
      }
      if (step) continue;
      EXPECT_NEAR(row[static_cast<std::size_t>(x * channels)], std::min(255.0, expected), 8) << x;
      ++looked_at;
    }
    EXPECT_GT(looked_at, 10);
  }
};

TEST_F(UpscaleMemory, RowsOfLargePicturesPassThrough) {
  // 144 MB of input, 576 MB of result.
  WriteSlope("large.png", ImageFormat::kPng, {.width = 8000, .height = 6000});
  const ProgramResult result =
      Upscale({Path("large.png"), output_, "--memory", "150", "--threads", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(result.peak_kb, kProgramKb + 150 * 1024);
  ExpectSlope(output_, 8000, 2);
}

TEST_F(UpscaleMemory, AlphaAndOtherSizesPassThroughToo) {
  WriteSlope("large.png", ImageFormat::kPng, {.width = 4000, .height = 5000, .channels = 4});
  for (const char* scale : {"0.3", "2", "2.7"}) {
    const ProgramResult result = Upscale({Path("large.png"), output_, "--overwrite", "--scale",
                                          scale, "--memory", "150", "--threads", "2"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LT(result.peak_kb, kProgramKb + 150 * 1024) << scale;
    ExpectSlope(output_, 4000, std::stod(scale));
  }
}

TEST_F(UpscaleMemory, JpegsPassThroughToo) {
  WriteSlope("large.jpg", ImageFormat::kJpeg, {.width = 8000, .height = 4000});
  const ProgramResult result =
      Upscale({Path("large.jpg"), Path("out.jpg"), "--memory", "150", "--threads", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(result.peak_kb, kProgramKb + 150 * 1024);
  ExpectSlope(Path("out.jpg"), 8000, 2);
}

TEST_F(UpscaleMemory, ManyPicturesTakeNoMoreThanAFew) {
  std::filesystem::create_directory(folder_ / "in");
  const auto run = [&](int begin, int end) {
    for (int i = begin; i < end; ++i)
      WriteSlope(StrCat("in/", i, ".png"), ImageFormat::kPng,
                 {.width = 100 + 20 * (i % 5), .height = 300 - 30 * (i % 4)});
    return Upscale({Path("in"), Path("out"), "--skip-existing", "--threads", "2"});
  };
  const ProgramResult few = run(0, 80), many = run(80, 480);
  ASSERT_EQ(few.exit_code, 0) << few.err;
  ASSERT_EQ(many.exit_code, 0) << many.err;
  EXPECT_THAT(many.err, HasSubstr("400 done"));
  // Which pictures meet in work is chance, and worth some MB; 50 KB a picture would be seen.
  EXPECT_LT(many.peak_kb, few.peak_kb + 16 * 1024);
}

// What does not fit is said before anything is done.
TEST_F(UpscaleMemory, AResultThatDoesNotFitIsRefusedWithTheNumbers) {
  WriteSlope("large.png", ImageFormat::kPng, {.width = 20000, .height = 10});
  ExpectFailure(1, "large.png", "MB of memory",
                {Path("large.png"), output_, "--width", "1000000000", "--height", "60"});
}

}  // namespace
}  // namespace tessera
