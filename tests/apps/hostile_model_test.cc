// Models that ask for too much, and machines that have too little, through the programs.
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <new>
#include <thread>

#include "tests/apps/upscale_command.h"
#include "tests/pipeline/file_size_limit.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

// An upscaler with a constant of 4 GB.
std::string HungryModel() {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Ints("shape", {1, 1 << 15, 1 << 15});
  m.Node("ConstantOfShape", {"shape"}, {"c"}).Node("ReduceMean", {"c"}, {"zero"});
  m.Node("Add", {"x", "zero"}, {"y"}).Output("y");
  return m.Bytes();
}

class HostileModel : public UpscaleCommand {
 protected:
  HostileModel() { WriteBytes(hungry_, HungryModel()); }
  void ExpectRefused(const std::vector<std::string>& words) const {
    const ProgramResult result = RunProgram(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, AllOf(StartsWith(words[0] + ": "), HasSubstr(hungry_),
                                  HasSubstr("node 'ConstantOfShape_c' (ConstantOfShape): "),
                                  HasSubstr(" MB are needed, 100 MB are allowed (--max-memory)")));
    EXPECT_EQ(Lines(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_LT(result.peak_kb, 400'000);
  }

  std::string hungry_ = Path("hungry.onnx");
};

TEST_F(HostileModel, IsRefusedByEveryProgram) {
  ExpectRefused({"upscale", input_, output_, "--model", hungry_, "--max-memory", "100"});
  ExpectRefused({"onnx-bench", hungry_, "--input", "x:1x3x8x8", "--max-memory", "100"});
  ExpectRefused({"track", input_, "--model", hungry_, "--head", hungry_, "--init", "1,1,9,9",
                 "--max-memory", "100"});
  std::filesystem::create_directory(folder_ / "pictures");
  std::filesystem::copy(input_, folder_ / "pictures");
  ExpectRefused(
      {"quantize", hungry_, Path("int8.onnx"), "--calib", Path("pictures"), "--max-memory", "100"});
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(HostileModel, MaxMemoryIsANumberOfMegabytes) {
  for (const char* text : {"0", "-1", "many", "1e3"}) {
    EXPECT_EQ(Upscale({input_, output_, "--max-memory", text}).exit_code, 2) << text;
  }
  EXPECT_EQ(Upscale({input_, output_, "--max-memory", "300"}).exit_code, 0);
  ExpectDoubled(ReadPicture(output_).picture, picture_);
}

// With less and less address space there is a result, or a message about memory, and no wreck.
TEST_F(HostileModel, MachinesWithoutMemoryAreToldFrom) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve terabytes";
#endif
  WritePicture(input_, ImageFormat::kPng, NoisePicture({.width = 400, .height = 300}));
  const auto with_limit = [&](rlim_t bytes, std::vector<std::string> words) {
    return RunProgram(std::move(words), {}, "/dev/null", [bytes] {
      const rlimit limit = {bytes, bytes};
      ::setrlimit(RLIMIT_AS, &limit);
    });
  };
  // What the program with its libraries takes before it does anything.
  constexpr rlim_t kStep = rlim_t{1} << 20;
  rlim_t low = 0, high = rlim_t{4} << 30;
  while (high - low > kStep) {
    const rlim_t middle = (low + high) / 2;
    (with_limit(middle, {"upscale", "--version"}).exit_code == 0 ? high : low) = middle;
  }
  int failures = 0, results = 0;
  for (rlim_t more = kStep; more <= 64 * kStep; more *= 2) {
    std::filesystem::remove(output_);
    const ProgramResult result =
        with_limit(high + more, WithModel({input_, output_, "--quiet", "--threads", "2"}));
    ASSERT_EQ(result.signal, 0) << more / kStep << " MB: " << result.err;
    if (result.exit_code == 0) {
      ++results;
      continue;
    }
    ++failures;
    EXPECT_THAT(result.exit_code, AnyOf(1, 2)) << result.err;
    EXPECT_THAT(result.err, HasSubstr("memory")) << more / kStep << " MB";
    EXPECT_FALSE(std::filesystem::exists(output_));
  }
  EXPECT_GT(failures, 0);
  EXPECT_GT(results, 0);
}

// Whoever writes the model while it is read gives a model or an error, not the end of the program.
TEST_F(HostileModel, FilesThatShrinkWhileTheyAreReadAreErrors) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {3, 3, 501, 501}).Node("Identity", {"x"}, {"y"});
  m.Node("Identity", {"w"}, {"v"}).Output("y");
  const std::string bytes = m.Bytes();  // 9 MB
  std::jthread writer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      WriteBytes(model_, bytes);
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      std::error_code ignored;
      std::filesystem::resize_file(model_, bytes.size() / 3, ignored);
    }
  });
  for (int i = 0; i < 8; ++i) {
    const ProgramResult result =
        RunProgram({"onnx-bench", model_, "--input", "x:1x3x8x8", "--iters", "1"});
    EXPECT_EQ(result.signal, 0) << result.err;
    EXPECT_THAT(result.exit_code, AnyOf(0, 2));
    if (result.exit_code == 2) {
      EXPECT_THAT(result.err, HasSubstr(model_));
    }
  }
}

TEST_F(HostileModel, OnnxBenchNoticesWhatTheDiskDoesNotTake) {
  const std::string half = Path("half.onnx");
  WriteBytes(model_, NearestModel(8));
  const auto full = [] { new FileSizeLimit(300); };  // stays until the program ends
  const auto run = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"onnx-bench", model_, "--input", "x:1x3x64x64"};
    words.insert(words.end(), more.begin(), more.end());
    return RunProgram(std::move(words), {}, "/dev/null", full);
  };
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--export", half},
                                               {"--trace", Path("trace.json")},
                                               {"--dump", Path("dump")}}) {
    const ProgramResult result = run(more);
    EXPECT_EQ(result.signal, 0);
    EXPECT_EQ(result.exit_code, 2) << more[0];
    EXPECT_THAT(result.err, AllOf(HasSubstr(more[1]), HasSubstr("cannot write: "))) << more[0];
  }
  EXPECT_FALSE(std::filesystem::exists(half));
}

TEST_F(HostileModel, OnnxBenchDoesNotPrintIntoItsFiles) {
  const std::string trace = Path("trace.json");
  const ProgramResult result =
      RunProgram({"onnx-bench", model_, "--input", "x:1x3x8x8", "--trace", trace}, {}, "/dev/null",
                 [] { ::close(STDOUT_FILENO); });
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("standard output cannot be written"));
  EXPECT_THAT(ReadBytes(trace), StartsWith("{"));
}

}  // namespace
}  // namespace tessera
