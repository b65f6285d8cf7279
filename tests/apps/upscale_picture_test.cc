// One picture: what is written, and what is said when it is not.
#include <sys/resource.h>

#include <csignal>
#include <limits>

#include "tests/apps/upscale_command.h"

namespace tessera {
namespace {

using testing::HasSubstr;

TEST_F(UpscaleCommand, WritesTheLargerPicture) {
  const ProgramResult result = Upscale({input_, output_, "--quiet"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
  ExpectDoubled(ReadPicture(output_).picture, picture_);
  EXPECT_EQ(folder_.NumFiles(), 3u);
}

TEST_F(UpscaleCommand, KeepsChannelsAndDepth) {
  for (const int channels : {1, 2, 3, 4}) {
    for (const int bits : {8, 16}) {
      const Picture picture =
          NoisePicture({.width = 21, .height = 33, .channels = channels, .bit_depth = bits});
      // Under nothing at all colours are made up.
      for (std::int64_t y = 0; y < 33 && picture.format().HasAlpha(); ++y)
        for (std::int64_t x = 0; x < 21; ++x) SetSample(picture, x, y, channels - 1, 200);
      WritePicture(input_, ImageFormat::kPng, picture);
      const ProgramResult result = Upscale({input_, output_, "--overwrite", "--quiet"});
      ASSERT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.err, "");
      ExpectDoubled(ReadPicture(output_).picture, picture);
    }
  }
}

TEST_F(UpscaleCommand, ContentDecidesNotTheName) {
  std::filesystem::rename(input_, Path("in.jpg"));
  EXPECT_EQ(Upscale({Path("in.jpg"), output_}).exit_code, 0);
  ExpectDoubled(ReadPicture(output_).picture, picture_);
}

TEST_F(UpscaleCommand, ScalesToExactlyTheRoundedSize) {
  const struct {
    const char* scale;
    std::int64_t width, height;
  } cases[] = {{"1", 37, 29},   {"1.5", 56, 44}, {"3", 111, 87},
               {"0.5", 19, 15}, {"0.001", 1, 1}, {"2.0", 74, 58}};
  for (const auto& c : cases) {
    // Numbers have a '.' in every locale.
    const ProgramResult result = Upscale({input_, output_, "--overwrite", "--scale", c.scale},
                                         {"LC_ALL=de_DE.UTF-8", "LANG=de_DE.UTF-8"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Picture out = ReadPicture(output_).picture;
    EXPECT_EQ(out.width(), c.width) << c.scale;
    EXPECT_EQ(out.height(), c.height) << c.scale;
  }
}

TEST_F(UpscaleCommand, TilesWorkersAndThreadsGiveTheSameBytes) {
  const Picture picture = NoisePicture({.width = 150, .height = 90});
  WritePicture(input_, ImageFormat::kPng, picture);
  ASSERT_EQ(Upscale({input_, output_}).exit_code, 0);
  const std::string expected = ReadBytes(output_);
  for (const char* tile : {"0", "1", "32", "1000"}) {
    for (const char* threads : {"1", "2"}) {
      for (const char* workers : {"1", "2"}) {
        ASSERT_EQ(Upscale({input_, output_, "--tile", tile, "--threads", threads, "--workers",
                           workers, "--overlap", "4", "--memory", "100", "--overwrite"})
                      .exit_code,
                  0);
        EXPECT_EQ(ReadBytes(output_), expected);
      }
    }
  }
}

TEST_F(UpscaleCommand, ExactTilesGiveTheBytesOfOne) {
  WritePicture(input_, ImageFormat::kPng, NoisePicture({.width = 400, .height = 30}));
  const auto run = [&](const std::string& name, std::vector<std::string> options) {
    options.insert(options.begin(), {"upscale", input_, Path(name), "--model", "default-x2"});
    const ProgramResult result = RunProgram(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadBytes(Path(name));
  };
  EXPECT_EQ(run("exact.png", {"--exact", "--tile", "24"}), run("one.png", {"--tile", "10000"}));
  ExpectFailure(2, "--exact", "exclude", {input_, output_, "--exact", "--overlap", "3"});
}

TEST_F(UpscaleCommand, WritesEveryFormat) {
  for (const char* name : {"o.png", "o.jpg", "o.JPEG", "o.webp", "o.tif", "o.tiff", "o.bmp",
                           "o.ppm", "o.pgm", "o.pnm"}) {
    const ProgramResult result = Upscale({input_, Path(name)});
    ASSERT_EQ(result.exit_code, 0) << name << ": " << result.err;
    EXPECT_EQ(ReadPicture(Path(name)).picture.width(), 74) << name;
  }
  Upscale({input_, Path("a.jpg"), "--quality", "20"});
  EXPECT_LT(2 * ReadBytes(Path("a.jpg")).size(), ReadBytes(Path("o.jpg")).size());
}

TEST_F(UpscaleCommand, SaysWhatTheOutputCannotHold) {
  WritePicture(input_, ImageFormat::kPng,
               NoisePicture({.width = 20, .height = 20, .channels = 4, .bit_depth = 16}));
  const ProgramResult result = Upscale({input_, Path("o.jpg")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err,
              HasSubstr("in.png: note: JPEG has no alpha: flattened on the background\n"));
  EXPECT_THAT(result.err, HasSubstr("in.png: note: JPEG has no 16 bits: reduced to 8\n"));
}

TEST_F(UpscaleCommand, MayReplaceItsInput) {
  ExpectFailure(2, "in.png", "--overwrite", {input_, input_});
  EXPECT_TRUE(SamePixels(ReadPicture(input_).picture, picture_));
  EXPECT_EQ(Upscale({input_, input_, "--overwrite"}).exit_code, 0);
  ExpectDoubled(ReadPicture(input_).picture, picture_);
  EXPECT_EQ(folder_.NumFiles(), 2u);
}

TEST_F(UpscaleCommand, BadInputsAreExitCode1) {
  ExpectFailure(1, "none.png", "No such file", {Path("none.png"), output_});
  WriteBytes(Path("empty.png"), "");
  ExpectFailure(1, "empty.png", "empty", {Path("empty.png"), output_});
  WriteBytes(Path("text.png"), "no picture");
  ExpectFailure(1, "text.png", "", {Path("text.png"), output_});
  WriteBytes(Path("cut.png"), ReadBytes(input_).substr(0, 500));
  ExpectFailure(1, "cut.png", "ends too soon", {Path("cut.png"), output_});
  WritePicture(Path("a.bmp"), ImageFormat::kBmp, picture_);
  WriteBytes(Path("cut.bmp"), ReadBytes(Path("a.bmp")).substr(0, 500));
  ExpectFailure(1, "cut.bmp", "", {Path("cut.bmp"), output_});
  ExpectFailure(1, "out.png", "folder", {input_, Path("no/such/out.png")});
  ExpectFailure(1, "in.png", "WebP", {input_, Path("o.webp"), "-s", "1000"});
}

TEST_F(UpscaleCommand, NotANumberIsAFailure) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y");
  m.Floats("w", {3, 3, 1, 1}, std::vector<float>(9, std::numeric_limits<float>::quiet_NaN()));
  m.Node("Conv", {"x", "w"}, {"y"});
  model_ = Path("nan.onnx");
  WriteBytes(model_, m.Bytes());
  ExpectFailure(1, "in.png", "no finite number at (0, 0)", {input_, output_});
}

TEST_F(UpscaleCommand, AnOldOutputSurvivesAFailure) {
  WriteBytes(output_, "old");
  WriteBytes(Path("cut.png"), ReadBytes(input_).substr(0, 500));
  ExpectFailure(1, "cut.png", "", {Path("cut.png"), output_, "--overwrite"});
  EXPECT_EQ(ReadBytes(output_), "old");
  // And a disk that is full.
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit little = old;
  little.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ExpectFailure(1, "out.png", "File too large", {input_, output_, "--overwrite"});
  std::signal(SIGXFSZ, old_handler);
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(ReadBytes(output_), "old");
}

TEST_F(UpscaleCommand, NamesOfAnyBytes) {
  for (const std::string name : {"with space.png", "new\nline.png", "-dash.png", "\xFF\xFE.png"}) {
    std::filesystem::copy(input_, folder_ / name);
    const ProgramResult result = Upscale({Path(name), Path("o" + name)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("o" + name)));
  }
  const ProgramResult result = Upscale({Path("no\nsuch.png"), output_});
  EXPECT_THAT(result.err, HasSubstr("no\\nsuch.png: "));
}

}  // namespace
}  // namespace tessera
