// `upscale --precision int8`: the model that it makes, and where that is kept.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/apps/small_upscaler.h"
#include "tests/apps/upscale_command.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

double Psnr(const Picture& a, const Picture& b) {
  double sum = 0;
  for (std::int64_t y = 0; y < a.height(); ++y) {
    for (std::int64_t x = 0; x < a.width(); ++x) {
      for (int c = 0; c < 3; ++c) {
        const double d = double{Sample(a, x, y, c) * 1.0} - double{Sample(b, x, y, c) * 1.0};
        sum += d * d;
      }
    }
  }
  return 10 * std::log10(255.0 * 255 * 3 * static_cast<double>(a.width() * a.height()) / sum);
}

class UpscalePrecision : public UpscaleCommand {
 protected:
  UpscalePrecision() {
    WriteBytes(model_, SmallUpscaler());
    picture_ = Gradient(70, 50);
    WritePicture(input_, ImageFormat::kPng, picture_, {.overwrite = true});
  }

  static Picture Gradient(std::int64_t width, std::int64_t height) {
    Picture picture({.width = width, .height = height});
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        SetSample(picture, x, y, 0, static_cast<std::uint32_t>(20 + 3 * x));
        SetSample(picture, x, y, 1, static_cast<std::uint32_t>(20 + 4 * y));
        SetSample(picture, x, y, 2, (x / 8 + y / 8) % 2 == 0 ? 60 : 190);
      }
    }
    return picture;
  }

  ProgramResult Int8(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--precision", "int8", "--overwrite"});
    return Upscale(std::move(arguments), {"XDG_CACHE_HOME=" + cache_});
  }
  // Files of the cache.
  std::vector<std::filesystem::path> Kept() const {
    std::vector<std::filesystem::path> files;
    std::error_code none;
    for (std::filesystem::directory_iterator it(cache_ + "/tessera/int8", none), end;
         !none && it != end; it.increment(none))
      files.push_back(it->path());
    return files;
  }

  std::string cache_ = Path("cache");
};

TEST_F(UpscalePrecision, ComesNearToFloatAndIsKept) {
  ASSERT_EQ(Upscale({input_, Path("fp32.png")}).exit_code, 0);
  const ProgramResult first = Int8({input_, output_});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("calibrated with " + input_));
  EXPECT_THAT(first.err, HasSubstr("2 of 2 convolutions"));
  ASSERT_EQ(Kept().size(), 1u);
  EXPECT_THAT(first.err, HasSubstr(Kept()[0].string()));
  const Picture int8 = ReadPicture(output_).picture, fp32 = ReadPicture(Path("fp32.png")).picture;
  EXPECT_GT(Psnr(int8, fp32), 38);
  EXPECT_FALSE(SamePixels(int8, fp32));

  // The second time it is there, whatever the picture.
  const std::string bytes = ReadBytes(output_);
  const ProgramResult second = Int8({input_, output_});
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_THAT(second.err, Not(HasSubstr("convolutions")));
  EXPECT_EQ(ReadBytes(output_), bytes);
  EXPECT_EQ(Kept().size(), 1u);
}

// What is kept is for all pictures, whatever the first one was.
TEST_F(UpscalePrecision, ABlackFirstPictureSpoilsNoOthers) {
  ASSERT_EQ(Upscale({input_, Path("fp32.png")}).exit_code, 0);
  WritePicture(Path("black.png"), ImageFormat::kPng, Picture({.width = 20, .height = 20}));
  ASSERT_EQ(Int8({Path("black.png"), Path("black2.png")}).exit_code, 0);
  ASSERT_EQ(Int8({input_, output_}).exit_code, 0);
  EXPECT_EQ(Kept().size(), 1u);
  EXPECT_GT(Psnr(ReadPicture(output_).picture, ReadPicture(Path("fp32.png")).picture), 37);
}

TEST_F(UpscalePrecision, Fp32IsTheDefault) {
  ASSERT_EQ(Upscale({input_, Path("a.png")}).exit_code, 0);
  ASSERT_EQ(Upscale({input_, Path("b.png"), "--precision", "fp32"}).exit_code, 0);
  EXPECT_EQ(ReadBytes(Path("a.png")), ReadBytes(Path("b.png")));
  const ProgramResult wrong = Upscale({input_, output_, "--precision", "int4"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("fp32 or int8"));
}

TEST_F(UpscalePrecision, ABrokenFileOfTheCacheIsMadeAnew) {
  ASSERT_EQ(Int8({input_, output_}).exit_code, 0);
  ASSERT_EQ(Kept().size(), 1u);
  const std::string kept = ReadBytes(Kept()[0]), result = ReadBytes(output_);
  for (const std::string& broken :
       {std::string(), kept.substr(0, kept.size() / 2), std::string(kept.size(), '\0')}) {
    WriteBytes(Kept()[0], broken);
    const ProgramResult again = Int8({input_, output_});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(ReadBytes(output_), result);
    EXPECT_EQ(ReadBytes(Kept()[0]), kept);
  }
}

TEST_F(UpscalePrecision, WithoutACacheItWorksAndSaysSo) {
  WriteBytes(cache_, "a file where a folder should be");
  const ProgramResult result = Int8({input_, output_});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("not kept"));
  EXPECT_EQ(ReadPicture(output_).picture.width(), 2 * picture_.width());
  const ProgramResult nowhere = Upscale({input_, output_, "--precision", "int8", "--overwrite"},
                                        {"XDG_CACHE_HOME=", "HOME="});
  EXPECT_EQ(nowhere.exit_code, 0) << nowhere.err;
  EXPECT_THAT(nowhere.err, HasSubstr("not kept"));
}

TEST_F(UpscalePrecision, TwoAtOnceDoNotDisturbEachOther) {
  const auto start = [this](const std::string& output) {
    return std::make_unique<RunningProgram>(WithModel({input_, output, "--precision", "int8"}),
                                            std::vector<std::string>{"XDG_CACHE_HOME=" + cache_});
  };
  const auto a = start(Path("a.png")), b = start(Path("b.png"));
  EXPECT_EQ(a->Wait().exit_code, 0);
  EXPECT_EQ(b->Wait().exit_code, 0);
  EXPECT_EQ(ReadBytes(Path("a.png")), ReadBytes(Path("b.png")));
  EXPECT_EQ(Kept().size(), 1u);
}

TEST_F(UpscalePrecision, AFileThatIsQuantisedIsTaken) {
  ASSERT_EQ(Int8({input_, output_}).exit_code, 0);
  const std::string result = ReadBytes(output_);
  std::filesystem::copy_file(Kept()[0], Path("own.onnx"));
  std::filesystem::remove_all(cache_);
  model_ = Path("own.onnx");
  for (const char* precision : {"int8", "fp32"}) {
    const ProgramResult taken = Upscale({input_, output_, "--precision", precision, "--overwrite"},
                                        {"XDG_CACHE_HOME=" + cache_});
    EXPECT_EQ(taken.exit_code, 0) << taken.err;
    EXPECT_EQ(ReadBytes(output_), result);
  }
  EXPECT_THAT(Kept(), testing::IsEmpty());
}

TEST_F(UpscalePrecision, OfManyFilesTheFirstThatCanBeReadCalibrates) {
  WriteBytes(Path("a_broken.png"), "no picture");
  WritePicture(Path("z.png"), ImageFormat::kPng, Gradient(30, 40));
  std::filesystem::create_directory(Path("out"));
  const ProgramResult result = Int8({Path("a_broken.png"), input_, Path("z.png"), Path("out")});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("calibrated with " + input_));
  EXPECT_TRUE(std::filesystem::exists(Path("out/in.png")));
  EXPECT_TRUE(std::filesystem::exists(Path("out/z.png")));
  EXPECT_EQ(Kept().size(), 1u);
}

TEST_F(UpscalePrecision, StandardInputIsReadTwice) {
  const ProgramResult file = Int8({input_, output_});
  ASSERT_EQ(file.exit_code, 0);
  const Picture wanted = ReadPicture(output_).picture;
  const auto expect_wanted = [&](const std::string& bytes) {
    WriteBytes(Path("out"), bytes);
    EXPECT_TRUE(SamePixels(ReadPicture(Path("out")).picture, wanted));
  };
  std::filesystem::remove_all(cache_);
  const ProgramResult from_file =
      Upscale({"-", "-", "--precision", "int8"}, {"XDG_CACHE_HOME=" + cache_}, input_);
  EXPECT_EQ(from_file.exit_code, 0) << from_file.err;
  expect_wanted(from_file.out);
  std::filesystem::remove_all(cache_);
  // Through a pipe.
  const std::string pipe = Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string bytes = ReadBytes(input_);
  const pid_t writer = ::fork();
  if (writer == 0) {
    WriteBytes(pipe, bytes);
    ::_exit(0);
  }
  const ProgramResult piped =
      Upscale({"-", "-", "--precision", "int8"}, {"XDG_CACHE_HOME=" + cache_}, pipe);
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  expect_wanted(piped.out);
  ::waitpid(writer, nullptr, 0);
}

TEST_F(UpscalePrecision, NothingIsMadeForADryRunOrWithoutAPicture) {
  EXPECT_EQ(Int8({input_, output_, "--dry-run"}).exit_code, 0);
  EXPECT_THAT(Kept(), testing::IsEmpty());
  EXPECT_EQ(Int8({Path("none.png"), output_}).exit_code, 1);
  EXPECT_THAT(Kept(), testing::IsEmpty());
}

TEST_F(UpscalePrecision, JsonStaysJson) {
  const ProgramResult result = Int8({input_, output_, "--progress", "json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, testing::StartsWith("{"));
  EXPECT_THAT(result.err, Not(HasSubstr("convolutions")));
  std::filesystem::remove_all(cache_);
  EXPECT_EQ(Int8({input_, output_, "--quiet"}).err, "");
}

TEST_F(UpscalePrecision, BlendsAreModelsOfTheirOwn) {
  WriteBytes(Path("other.onnx"), SmallUpscaler(-1, 0.05F));
  for (const char* weight : {"0.25", "0.5", "0.25"}) {
    const ProgramResult result =
        Int8({input_, output_, "--blend", Path("other.onnx") + ":" + weight});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(Kept().size(), 2u);
}

TEST_F(UpscalePrecision, BuiltInModelsAndThoseOfOneSizeAreQuantised) {
  const ProgramResult built_in =
      RunProgram({"upscale", input_, output_, "--scale", "2", "--precision", "int8"},
                 {"XDG_CACHE_HOME=" + cache_});
  EXPECT_EQ(built_in.exit_code, 0) << built_in.err;
  EXPECT_THAT(built_in.err, HasSubstr("an int8 model of default-x2"));
  WriteBytes(model_, SmallUpscaler(48));
  const ProgramResult fixed = Int8({input_, output_});
  EXPECT_EQ(fixed.exit_code, 0) << fixed.err;
  EXPECT_EQ(Kept().size(), 2u);
}

TEST_F(UpscalePrecision, ANetworkWithNaNIsRefused) {
  WriteBytes(model_, SmallUpscaler(-1, std::numeric_limits<float>::quiet_NaN()));
  const ProgramResult result = Int8({input_, output_});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr(model_));
  EXPECT_THAT(result.err, HasSubstr("no number"));
  EXPECT_FALSE(std::filesystem::exists(output_));
  EXPECT_THAT(Kept(), testing::IsEmpty());
}

TEST_F(UpscalePrecision, LargePicturesGoTileByTile) {
  WritePicture(input_, ImageFormat::kPng, Gradient(80, 60), {.overwrite = true});
  ASSERT_EQ(Int8({input_, Path("one.png")}).exit_code, 0);
  const ProgramResult tiled = Int8({input_, Path("tiles.png"), "--tile", "32", "--verbose"});
  ASSERT_EQ(tiled.exit_code, 0) << tiled.err;
  EXPECT_THAT(tiled.err, Not(HasSubstr(" 1 tiles")));
  const Picture one = ReadPicture(Path("one.png")).picture;
  const Picture tiles = ReadPicture(Path("tiles.png")).picture;
  EXPECT_GT(Psnr(one, tiles), 55);
}

}  // namespace
}  // namespace tessera
