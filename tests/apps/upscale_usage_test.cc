// The command line: what is understood, and what is refused.
#include <cstdlib>
#include <sstream>

#include "simd/cpu_target.h"
#include "tests/apps/upscale_command.h"

namespace tessera {
namespace {

using testing::HasSubstr;

TEST_F(UpscaleCommand, ShortFormsOfOtherTools) {
  const ProgramResult result = RunProgram(
      {"upscale", "-i", input_, "-o", output_, "-m", model_, "-s", "2", "-t", "24", "-j", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ExpectDoubled(ReadPicture(output_).picture, picture_);
}

// As their users type them.
TEST_F(UpscaleCommand, HabitsFromTheNcnnTools) {
  WriteBytes(Path("triple.onnx"), NearestModel(3));
  const ProgramResult result = RunProgram({"upscale",
                                           "-i",
                                           input_,
                                           "-o",
                                           output_,
                                           "-s",
                                           "2",
                                           "-t",
                                           "0",
                                           "-m",
                                           folder_.path().string(),
                                           "-n",
                                           "triple",
                                           "-g",
                                           "-1",
                                           "-j",
                                           "1:2:2",
                                           "-f",
                                           "png",
                                           "-x",
                                           "-v"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ReadPicture(output_).picture.width(), 2 * 37);
  const ProgramResult gpu = Upscale({input_, output_, "-g", "0"});
  EXPECT_EQ(gpu.exit_code, 2);
  EXPECT_THAT(gpu.err, HasSubstr("there is no support for GPUs"));
}

TEST_F(UpscaleCommand, WrongUsageIsExitCode2) {
  ExpectFailure(2, "", "an input and an output are needed", {});
  ExpectFailure(2, "", "an input and an output are needed", {input_});
  ExpectFailure(2, "", "", {input_, output_, "more", "-o", output_});
  ExpectFailure(2, "", "--frobnicate", {input_, output_, "--frobnicate"});
  ExpectFailure(2, "out.xyz", "extension", {input_, Path("out.xyz")});
  ExpectFailure(2, "out", "extension", {input_, Path("out")});
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
  for (const char* workers : {"1:2", "1:2:2:2", "0:1:1", "1:2:", ":", "2,2", "+2"}) {
    ExpectFailure(2, "", "--workers", {input_, output_, "-j", workers});
  }
  for (const char* colour : {"red", "#12345", "#1234567", "#12345g", "1,2", "1,2,256", "1,2,3,4"}) {
    ExpectFailure(2, "", "--background", {input_, Path("o.jpg"), "--background", colour});
  }
  ExpectFailure(2, "", "want reflect or zero", {input_, output_, "--edge", "wrap"});
  ExpectFailure(2, "", "want x, y or xy", {input_, output_, "--wrap", "z"});
  ExpectFailure(2, "", "bicubic or model", {input_, output_, "--alpha", "none"});
  ExpectFailure(2, "", "--bit-depth", {input_, output_, "--bit-depth", "12"});
  ExpectFailure(2, "", "--max-pixels", {input_, output_, "--max-pixels", "0"});
  ExpectFailure(2, "", "--denoise", {input_, output_, "--denoise", "1.1"});
  for (const char* blend : {"b.onnx", "b.onnx:", ":0.5", "b.onnx:2", "b.onnx:0,5"}) {
    ExpectFailure(2, "", "--blend", {input_, output_, "--blend", blend});
  }
  ExpectFailure(2, "", "no known format", {input_, output_, "--format", "xyz"});
}

TEST_F(UpscaleCommand, OptionsThatExcludeEachOther) {
  const auto expect_refused = [&](const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {input_, output_};
    arguments.insert(arguments.end(), options.begin(), options.end());
    ExpectFailure(2, "", "", arguments);
  };
  expect_refused({"--scale", "2", "--width", "100"});
  expect_refused({"--height", "100", "--longest", "100"});
  expect_refused({"--longest", "100", "--shortest", "100"});
  expect_refused({"--overwrite", "--skip-existing"});
  expect_refused({"--blend", model_ + ":0.5", "--denoise", "0.5"});
  expect_refused({"--verbose"});  // with --quiet
  expect_refused({"--progress", "json"});
  ExpectFailure(2, "", "{scale}", {input_, Path("o/"), "--name", "{scale}{ext}", "--width", "50"});
  for (const char* option : {"--overwrite", "--skip-existing"})
    ExpectFailure(2, "", "standard output", {input_, "-", option});
  ExpectFailure(2, "", "--dry-run", {input_, output_, "--dry-run", "--progress", "bar"});
}

// "A flag that is accepted has an effect."
TEST_F(UpscaleCommand, OptionsThatNoOutputCanFollow) {
  ExpectFailure(2, "", "PNG has none", {input_, output_, "--quality", "50"});
  ExpectFailure(2, "", "no output is a PNG", {input_, Path("o.jpg"), "--png-level", "3"});
  ExpectFailure(2, "", "PNG keeps transparency", {input_, output_, "--background", "black"});
  ExpectFailure(2, "o.jpg", "JPEG has no 16 bits", {input_, Path("o.jpg"), "--bit-depth", "16"});
  ExpectFailure(2, "", "", {input_, output_, "--format", "jpg"});
  // One of several is enough.
  WritePicture(Path("a.jpg"), ImageFormat::kJpeg, picture_);
  EXPECT_EQ(Upscale({input_, Path("a.jpg"), Path("out") + "/", "--quality", "50"}).exit_code, 0);
}

TEST_F(UpscaleCommand, NamesWithALeadingDash) {
  std::filesystem::copy(input_, folder_ / "-dn");
  const std::string command = "cd '" + folder_.path().string() + "' && '" + TESSERA_BIN_DIR +
                              "/upscale' -q -m double.onnx -- -dn -o.png";
  EXPECT_EQ(std::system(command.c_str()), 0);
  ExpectDoubled(ReadPicture(Path("-o.png")).picture, picture_);
}

TEST_F(UpscaleCommand, NamesInBracketsAreNoLists) {
  for (const char* name : {"[1]", "[a,b]", "[]"}) {
    WritePicture(Path(std::string(name) + ".png"), ImageFormat::kPng, picture_);
    std::filesystem::create_directory(folder_ / name);
    WritePicture(folder_ / name / "a.png", ImageFormat::kPng, picture_);
  }
  std::filesystem::current_path(folder_.path());
  for (const std::string name : {"[1]", "[a,b]", "[]"}) {
    const ProgramResult result = Upscale({name, "[out]" + name});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    ExpectDoubled(ReadPicture(Path("[out]" + name + "/a.png")).picture, picture_);
  }
  EXPECT_EQ(Upscale({"-i", "[1]", "-o", "[2]"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "[2]" / "a.png"));
  EXPECT_EQ(Upscale({"[1].png", "[1]/a.png", "[both]/"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "[both]" / "[1].png"));
  std::filesystem::current_path("/");
}

// Else a file would be opened as the stream, and what is said would be written into it.
TEST_F(UpscaleCommand, ClosedStreamsDoPicturesNoHarm) {
  std::filesystem::create_directory(folder_ / "in");
  for (int i = 0; i < 12; ++i)
    WritePicture(folder_ / "in" / StrCat(i, ".png"), ImageFormat::kPng, picture_);
  for (const int closed : {0, 1, 2}) {
    const std::string out = Path(StrCat("out", closed));
    const ProgramResult result = RunProgram(WithModel({Path("in"), out, "-v", "-f", "tif"}), {},
                                            "/dev/null", [closed] { ::close(closed); });
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (int i = 0; i < 12; ++i)
      ExpectDoubled(ReadPicture(out + StrCat("/", i, ".tif")).picture, picture_);
  }
  EXPECT_EQ(RunProgram(WithModel({input_, "-"}), {}, "/dev/null", [] { ::close(1); }).exit_code, 1);
  EXPECT_EQ(RunProgram(WithModel({"-", output_}), {}, "/dev/null", [] { ::close(0); }).exit_code,
            1);
}

TEST_F(UpscaleCommand, ReadsStandardInputAndWritesStandardOutput) {
  const ProgramResult result = Upscale({"-", "-"}, {}, input_);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  WriteBytes(output_, result.out);  // which holds nothing but the picture
  ExpectDoubled(ReadPicture(output_).picture, picture_);

  const ProgramResult bmp = Upscale({"-i", "-", "-o", "-", "-f", "bmp", "--quiet"}, {}, input_);
  ASSERT_EQ(bmp.exit_code, 0) << bmp.err;
  EXPECT_THAT(bmp.out, testing::StartsWith("BM"));
  EXPECT_EQ(Upscale({"-", Path("o.bmp"), "--quiet"}, {}, input_).exit_code, 0);
  EXPECT_EQ(bmp.out, ReadBytes(Path("o.bmp")));

  const ProgramResult bad = Upscale({"-", "-", "--quiet"}, {}, model_);
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_EQ(bad.out, "");
  EXPECT_THAT(bad.err, HasSubstr("upscale: standard input: "));
  const std::string full = std::string("'") + TESSERA_BIN_DIR + "/upscale' -q -m '" + model_ +
                           "' '" + input_ + "' - >/dev/full 2>/dev/null";
  const int status = std::system(full.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
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

TEST_F(UpscaleCommand, VersionAndHelp) {
  const ProgramResult version = RunProgram({"upscale", "--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("upscale [0-9.]+ \\([A-Z0-9_]+\\)\n"));
  for (const std::string& target : AvailableCpuTargets()) {
    EXPECT_THAT(RunProgram({"upscale", "--version"}, {"TESSERA_TARGET=" + target}).out,
                HasSubstr("(" + target + ")"));
    EXPECT_THAT(RunProgram({"upscale", "--version", "--target", target}).out,
                HasSubstr("(" + target + ")"));
  }
  const ProgramResult help = RunProgram({"upscale", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(RunProgram({"upscale", "-h"}).out, help.out);
  std::istringstream lines(help.out);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  EXPECT_LE(longest, 100u);
  EXPECT_LT(Lines(help.out), 75);
  for (const char* group : {"Files", "Size", "Model", "Picture", "Work", "Messages"})
    EXPECT_THAT(help.out, HasSubstr(std::string("\n") + group + ":\n"));
}

}  // namespace
}  // namespace tessera
