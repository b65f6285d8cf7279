// The command: what it writes, says and returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/resource.h>
#include <termios.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "simd/cpu_target.h"
#include "tests/apps/run_program.h"
#include "tests/engine/test_model.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A model that repeats pixels: what it makes is known.
std::string NearestModel(std::int64_t scale) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y");
  std::vector<float> weights(static_cast<std::size_t>(9 * scale * scale));
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t k = 0; k < scale * scale; ++k) {
      weights[static_cast<std::size_t>(3 * (c * scale * scale + k) + c)] = 1;
    }
  }
  m.Floats("w", {3 * scale * scale, 3, 1, 1}, weights);
  m.Node("Conv", {"x", "w"}, {"c"})
      .Node("DepthToSpace", {"c"}, {"y"}, {{"blocksize", scale}, {"mode", std::string("CRD")}});
  return m.Bytes();
}

class UpscaleCommand : public testing::Test {
 protected:
  UpscaleCommand() {
    WriteBytes(model_, NearestModel(2));
    WritePicture(input_, ImageFormat::kPng, picture_);
  }

  // Runs `upscale` with the doubling model.
  ProgramResult Run(std::vector<std::string> arguments,
                    const std::vector<std::string>& environment = {}) const {
    arguments.insert(arguments.begin(), "upscale");
    arguments.insert(arguments.end(), {"--model", model_});
    return RunProgram(std::move(arguments), environment);
  }

  // Fails with one line about `file`, and leaves no new file.
  void ExpectFailure(int exit_code, const std::string& file, const std::string& reason,
                     std::vector<std::string> arguments) const {
    const std::size_t files = folder_.NumFiles();
    const ProgramResult result = Run(std::move(arguments));
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, StartsWith("upscale: "));
    EXPECT_THAT(result.err, HasSubstr(file));
    EXPECT_THAT(result.err, HasSubstr(reason));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(folder_.NumFiles(), files);
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
  std::string model_ = Path("double.onnx"), input_ = Path("in.png"), output_ = Path("out.png");
  Picture picture_ = NoisePicture({.width = 37, .height = 29});
};

// Whether the program has taken the signal into its own hands. (Before that it just ends.)
bool Blocks(pid_t pid, int signal) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("SigBlk:")) {
      return std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1;
    }
  }
  return true;  // it has ended, which the test will see
}

void ExpectDoubled(const Picture& large, const Picture& small) {
  ASSERT_EQ(large.width(), 2 * small.width());
  ASSERT_EQ(large.height(), 2 * small.height());
  ASSERT_EQ(large.format().channels, small.format().channels);
  ASSERT_EQ(large.format().bit_depth, small.format().bit_depth);
  for (std::int64_t y = 0; y < large.height(); ++y) {
    for (std::int64_t x = 0; x < large.width(); ++x) {
      for (int c = 0; c < small.format().ColourChannels(); ++c) {
        ASSERT_EQ(Sample(large, x, y, c), Sample(small, x / 2, y / 2, c));
      }
    }
  }
}

TEST_F(UpscaleCommand, WritesTheLargerPictureAndSaysNothing) {
  const ProgramResult result = Run({input_, output_});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
  ExpectDoubled(ReadPicture(output_).picture, picture_);
  EXPECT_EQ(folder_.NumFiles(), 3u);
}

TEST_F(UpscaleCommand, ShortFormsOfOtherTools) {
  const ProgramResult result = RunProgram(
      {"upscale", "-i", input_, "-o", output_, "-m", model_, "-s", "2", "-t", "24", "-j", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ExpectDoubled(ReadPicture(output_).picture, picture_);
}

TEST_F(UpscaleCommand, KeepsChannelsAndDepth) {
  for (const int channels : {1, 2, 3, 4}) {
    for (const int bits : {8, 16}) {
      const Picture picture =
          NoisePicture({.width = 21, .height = 33, .channels = channels, .bit_depth = bits});
      WritePicture(input_, ImageFormat::kPng, picture);
      const ProgramResult result = Run({input_, output_});
      ASSERT_EQ(result.exit_code, 0) << result.err;
      EXPECT_EQ(result.err, "");
      ExpectDoubled(ReadPicture(output_).picture, picture);
    }
  }
}

TEST_F(UpscaleCommand, ContentDecidesNotTheName) {
  std::filesystem::rename(input_, Path("in.jpg"));
  EXPECT_EQ(Run({Path("in.jpg"), output_}).exit_code, 0);
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
    const ProgramResult result =
        Run({input_, output_, "--scale", c.scale}, {"LC_ALL=de_DE.UTF-8", "LANG=de_DE.UTF-8"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Picture out = ReadPicture(output_).picture;
    EXPECT_EQ(out.width(), c.width) << c.scale;
    EXPECT_EQ(out.height(), c.height) << c.scale;
  }
}

TEST_F(UpscaleCommand, TilesWorkersAndThreadsGiveTheSameBytes) {
  const Picture picture = NoisePicture({.width = 150, .height = 90});
  WritePicture(input_, ImageFormat::kPng, picture);
  ASSERT_EQ(Run({input_, output_}).exit_code, 0);
  const std::string expected = ReadBytes(output_);
  for (const char* tile : {"0", "1", "32", "1000"}) {
    for (const char* threads : {"1", "2"}) {
      for (const char* workers : {"1", "2"}) {
        ASSERT_EQ(Run({input_, output_, "--tile", tile, "--threads", threads, "--workers", workers,
                       "--overlap", "4", "--memory", "1"})
                      .exit_code,
                  0);
        EXPECT_EQ(ReadBytes(output_), expected);
      }
    }
  }
}

TEST_F(UpscaleCommand, WritesEveryFormat) {
  for (const char* name : {"o.png", "o.jpg", "o.JPEG", "o.webp", "o.tif", "o.tiff", "o.bmp",
                           "o.ppm", "o.pgm", "o.pnm"}) {
    const ProgramResult result = Run({input_, Path(name)});
    ASSERT_EQ(result.exit_code, 0) << name << ": " << result.err;
    EXPECT_EQ(ReadPicture(Path(name)).picture.width(), 74) << name;
  }
  Run({input_, Path("a.jpg"), "--quality", "20"});
  EXPECT_LT(2 * ReadBytes(Path("a.jpg")).size(), ReadBytes(Path("o.jpg")).size());
}

TEST_F(UpscaleCommand, SaysWhatTheOutputCannotHold) {
  WritePicture(input_, ImageFormat::kPng,
               NoisePicture({.width = 20, .height = 20, .channels = 4, .bit_depth = 16}));
  const ProgramResult result = Run({input_, Path("o.jpg")});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("in.png: note: JPEG has no alpha: flattened on white\n"));
  EXPECT_THAT(result.err, HasSubstr("in.png: note: JPEG has no 16 bits: reduced to 8\n"));
}

TEST_F(UpscaleCommand, MayReplaceItsInput) {
  EXPECT_EQ(Run({input_, input_}).exit_code, 0);
  ExpectDoubled(ReadPicture(input_).picture, picture_);
  EXPECT_EQ(folder_.NumFiles(), 2u);
}

TEST_F(UpscaleCommand, WrongUsageIsExitCode2) {
  ExpectFailure(2, "", "an input and an output are needed", {});
  ExpectFailure(2, "", "an input and an output are needed", {input_});
  ExpectFailure(2, "", "", {input_, output_, "more"});
  ExpectFailure(2, "", "--frobnicate", {input_, output_, "--frobnicate"});
  ExpectFailure(2, "out.xyz", "extension", {input_, Path("out.xyz")});
  ExpectFailure(2, "out", "extension", {input_, Path("out")});
  ExpectFailure(2, folder_.path().string(), "is a folder", {input_, folder_.path().string()});
  for (const char* scale : {"0", "-1", "nan", "inf", "2x", "", "1,5", "1e999"}) {
    ExpectFailure(2, "", "--scale", {input_, output_, "-s", scale});
  }
  const ProgramResult empty = RunProgram({"upscale", input_, output_, "--model", ""});
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.err, HasSubstr("--model: is empty"));
  ExpectFailure(2, "", "tile", {input_, output_, "--tile", "-5"});
  ExpectFailure(2, "", "a\\nb\\x1B[31m", {input_, output_, "--tile", "a\nb\x1b[31m"});
  ExpectFailure(2, "", "threads", {input_, output_, "--threads", "0"});
  ExpectFailure(2, "", "workers", {input_, output_, "--workers", "x"});
  ExpectFailure(2, "", "quality", {input_, Path("o.jpg"), "--quality", "101"});
  ExpectFailure(2, "", "PNG", {input_, output_, "--quality", "50"});
}

TEST_F(UpscaleCommand, WrongModelsAreExitCode2) {
  const auto expect_failure = [&](const std::string& name, const std::string& reason) {
    model_ = Path(name);
    ExpectFailure(2, name, reason, {input_, output_});
  };
  expect_failure("none.onnx", "no such file");
  WriteBytes(Path("text.onnx"), "this is no model");
  expect_failure("text.onnx", "");
  WriteBytes(Path("cut.onnx"), NearestModel(2).substr(0, 100));
  expect_failure("cut.onnx", "");
  TestModel m;
  m.Input("x", {1, 100}).Output("y").Node("Identity", {"x"}, {"y"});
  WriteBytes(Path("flat.onnx"), m.Bytes());
  expect_failure("flat.onnx", "no picture");
}

// Models come from anywhere, and so do the names in them.
TEST_F(UpscaleCommand, NamesInModelsCannotForgeMessages) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y").Node("No\n\x1b[31mSuch", {"x"}, {"y"});
  model_ = Path("evil.onnx");
  WriteBytes(model_, m.Bytes());
  // ExpectFailure wants one line; it holds no escape that a terminal would obey either.
  ExpectFailure(2, "evil.onnx", "[31mSuch", {input_, output_});
  const ProgramResult result = Run({input_, output_});
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << result.err;
}

TEST_F(UpscaleCommand, ResultsThatNobodyTakesAreAFailure) {
  for (const char* option : {"--list-models", "--version", "--help"}) {
    const std::string command =
        std::string("exec '") + TESSERA_BIN_DIR + "/upscale' " + option + " >/dev/full 2>/dev/null";
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << option << " " << status;
  }
}

TEST_F(UpscaleCommand, MessagesThatNobodyReadsDoNoHarm) {
  WritePicture(input_, ImageFormat::kPng, NoisePicture({.width = 8, .height = 8, .channels = 4}));
  const std::string out = Path("o.jpg");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    const std::string program = std::string(TESSERA_BIN_DIR) + "/upscale";
    ::execl(program.c_str(), "upscale", input_.c_str(), out.c_str(), "-m", model_.c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;  // there is a note to say
  EXPECT_EQ(ReadPicture(out).picture.width(), 16);
}

TEST_F(UpscaleCommand, BadInputsAreExitCode1) {
  ExpectFailure(1, "none.png", "No such file", {Path("none.png"), output_});
  ExpectFailure(1, folder_.path().string(), "Is a directory", {folder_.path().string(), output_});
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
  ExpectFailure(1, "cut.png", "", {Path("cut.png"), output_});
  EXPECT_EQ(ReadBytes(output_), "old");
  // And a disk that is full.
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit little = old;
  little.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ExpectFailure(1, "out.png", "File too large", {input_, output_});
  std::signal(SIGXFSZ, old_handler);
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(ReadBytes(output_), "old");
}

TEST_F(UpscaleCommand, NamesOfAnyBytes) {
  for (const std::string name : {"with space.png", "new\nline.png", "-dash.png", "\xFF\xFE.png"}) {
    std::filesystem::copy(input_, folder_ / name);
    const ProgramResult result = Run({Path(name), Path("o" + name)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(std::filesystem::exists(folder_ / ("o" + name)));
  }
  const ProgramResult result = Run({Path("no\nsuch.png"), output_});
  EXPECT_THAT(result.err, HasSubstr("no\\nsuch.png: "));
}

TEST_F(UpscaleCommand, TheBuiltInModelNeedsNoFile) {
  ASSERT_EQ(RunProgram({"upscale", input_, output_}).exit_code, 0);
  const Picture by_default = ReadPicture(output_).picture;
  EXPECT_EQ(by_default.width(), 4 * 37);
  ASSERT_EQ(RunProgram({"upscale", input_, output_, "--model", "default-x4"}).exit_code, 0);
  EXPECT_TRUE(SamePixels(ReadPicture(output_).picture, by_default));
}

TEST_F(UpscaleCommand, TheDefaultModelGoesByScale) {
  const struct {
    const char *scale, *model;
  } cases[] = {
      {"1.5", "default-x2"}, {"2", "default-x2"}, {"2.5", "default-x4"}, {"5", "default-x4"}};
  for (const auto& c : cases) {
    ASSERT_EQ(RunProgram({"upscale", input_, output_, "-s", c.scale}).exit_code, 0);
    const Picture by_default = ReadPicture(output_).picture;
    ASSERT_EQ(RunProgram({"upscale", input_, output_, "-s", c.scale, "-m", c.model}).exit_code, 0);
    EXPECT_TRUE(SamePixels(ReadPicture(output_).picture, by_default)) << c.scale;
  }
}

TEST_F(UpscaleCommand, FindsModelsByName) {
  // tripling in a folder that is named, doubling in the user's own, under two names each.
  const std::filesystem::path named = folder_ / "named", own = folder_ / "data/tessera/models";
  std::filesystem::create_directories(named);
  std::filesystem::create_directories(own);
  for (const char* name : {"both.onnx", "default-x4.onnx"}) {
    WriteBytes(named / name, NearestModel(3));
    WriteBytes(own / name, NearestModel(2));
  }
  WriteBytes(own / "own.onnx", NearestModel(2));
  const std::vector<std::string> data = {"XDG_DATA_HOME=" + Path("data")};
  const auto width = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"upscale", input_, output_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = RunProgram(arguments, data);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return ReadPicture(output_).picture.width() / 37;
  };
  EXPECT_EQ(width({"-m", "own"}), 2);
  EXPECT_EQ(width({"-m", "both"}), 2);
  EXPECT_EQ(width({"-m", "both", "--model-path", named.string()}), 3);
  EXPECT_EQ(width({"-m", "default-x4", "--model-path", named.string()}), 3);
  ASSERT_EQ(RunProgram({"upscale", "-m", "both", "--model-path", named.string(), input_, output_})
                .exit_code,
            0);
  EXPECT_EQ(width({"-m", (own / "both.onnx").string(), "--model-path", named.string()}), 2);

  const ProgramResult unknown =
      RunProgram({"upscale", input_, output_, "-m", "own", "--model-path", named.string()});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("own: no such file, nor a model of that name"));
  const ProgramResult no_folder = RunProgram({"upscale", "--list-models", "--model-path", input_});
  EXPECT_EQ(no_folder.exit_code, 2);
  EXPECT_THAT(no_folder.err, HasSubstr("in.png: is no folder"));
  EXPECT_EQ(no_folder.out, "");
  // A path is none of the names, wherever it would lead from a folder of models.
  const ProgramResult path = RunProgram(
      {"upscale", input_, output_, "-m", "../named/both", "--model-path", named.string()});
  EXPECT_EQ(path.exit_code, 2);
}

// The doubling model as ncnn's two files.
void WriteNcnnModel(const std::filesystem::path& stem) {
  std::string weights(4, '\0');  // the tag of float32
  for (int row = 0; row < 12; ++row) {
    for (int channel = 0; channel < 3; ++channel) {
      const float weight = row / 4 == channel ? 1 : 0;
      weights.append(reinterpret_cast<const char*>(&weight), sizeof(weight));
    }
  }
  WriteBytes(stem.string() + ".param",
             "7767517\n3 3\nInput data 0 1 data\nConvolution c 1 1 data c 0=12 1=1 6=36\n"
             "PixelShuffle p 1 1 c output 0=2\n");
  WriteBytes(stem.string() + ".bin", weights);
}

TEST_F(UpscaleCommand, TakesNcnnModels) {
  ASSERT_EQ(Run({input_, output_}).exit_code, 0);
  const std::string expected = ReadBytes(output_);
  WriteNcnnModel(folder_ / "ncnn");
  for (const std::string& model : {Path("ncnn.param"), Path("ncnn.bin"), Path("ncnn")}) {
    const std::string output = Path("by-ncnn.png");
    const ProgramResult result = RunProgram({"upscale", input_, output, "-m", model});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(ReadBytes(output), expected);
    std::filesystem::remove(output);
  }
  const std::string folder = folder_.path().string();
  ASSERT_EQ(
      RunProgram({"upscale", input_, output_, "-m", "ncnn", "--model-path", folder}).exit_code, 0);
  const ProgramResult list = RunProgram({"upscale", "--list-models", "--model-path", folder});
  EXPECT_THAT(list.out,
              testing::ContainsRegex("ncnn +x2 +36 +unknown +" + Path("ncnn.param") + "\n"));
  std::filesystem::remove(folder_ / "ncnn.bin");
  const ProgramResult half = RunProgram({"upscale", input_, output_, "-m", Path("ncnn.param")});
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_THAT(half.err, HasSubstr("the weights have to be beside it, in ncnn.bin"));
}

TEST_F(UpscaleCommand, ListsModels) {
  using testing::ContainsRegex;
  const std::filesystem::path own = folder_ / "data/tessera/models";
  std::filesystem::create_directories(own);
  WriteBytes(own / "double.onnx", NearestModel(3));  // hidden by that of --model-path
  onnx::ModelProto licensed;
  ASSERT_TRUE(licensed.ParseFromString(NearestModel(3)));
  auto* entry = licensed.add_metadata_props();
  entry->set_key("license");
  entry->set_value("MIT");
  WriteBytes(own / "triple.onnx", licensed.SerializeAsString());
  WriteBytes(own / "text.onnx", "no model");
  WriteBytes(own / "readme.txt", "no model");
  const ProgramResult list =
      RunProgram({"upscale", "--list-models", "--model-path", folder_.path().string()},
                 {"XDG_DATA_HOME=" + Path("data")});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out, ContainsRegex("double +x2 +36 +unknown +" + model_ + "\n"));
  EXPECT_THAT(list.out, ContainsRegex("triple +x3 +81 +MIT +[^ ]*/models/triple.onnx\n"));
  EXPECT_THAT(list.out, ContainsRegex("default-x2 +x2 +256572 +Apache-2.0 +built in\n"));
  EXPECT_THAT(list.out, ContainsRegex("default-x4 +x4 +272160 +Apache-2.0 +built in\n"));
  EXPECT_THAT(list.out, ContainsRegex("default-x4-restore +x4 +272160 +Apache-2.0 +built in\n"));
  EXPECT_THAT(list.out, Not(ContainsRegex("double +x3")));
  EXPECT_THAT(list.err, HasSubstr("text.onnx: "));
  EXPECT_EQ(std::count(list.err.begin(), list.err.end(), '\n'), 1) << list.err;
}

TEST_F(UpscaleCommand, VersionAndHelp) {
  const ProgramResult version = RunProgram({"upscale", "--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("upscale [0-9.]+ \\([A-Z0-9]+\\)\n"));
  for (const std::string& target : AvailableCpuTargets()) {
    EXPECT_THAT(RunProgram({"upscale", "--version"}, {"TESSERA_TARGET=" + target}).out,
                HasSubstr("(" + target + ")"));
  }
  const ProgramResult help = RunProgram({"upscale", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--model"));
}

TEST_F(UpscaleCommand, InterruptedIsExitCode130AndLeavesNothing) {
  // Far too large to be done in time.
  WritePicture(input_, ImageFormat::kPng, NoisePicture({.width = 3000, .height = 2000}));
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::size_t files = folder_.NumFiles();
    RunningProgram program({"upscale", input_, output_, "--threads", "1"});
    for (int i = 0; i < 6000 && !Blocks(program.pid(), signal); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // into the work
    ::kill(program.pid(), signal);
    const auto sent = std::chrono::steady_clock::now();
    EXPECT_EQ(program.Wait().exit_code, 130);
    EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds(20));
    EXPECT_EQ(folder_.NumFiles(), files);
  }
}

TEST_F(UpscaleCommand, ProgressOnATerminalOnly) {
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    const std::string program = std::string(TESSERA_BIN_DIR) + "/upscale";
    ::execl(program.c_str(), "upscale", input_.c_str(), output_.c_str(), "-m", model_.c_str(), "-t",
            "12", nullptr);
    ::_exit(127);
  }
  std::string shown;
  char buffer[1000];
  for (ssize_t n; (n = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    shown.append(buffer, static_cast<std::size_t>(n));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  ::close(terminal);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(shown, HasSubstr("tiles"));
}

}  // namespace
}  // namespace tessera
