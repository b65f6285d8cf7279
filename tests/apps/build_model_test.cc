// The command build-model: what it writes, says and returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "models/networks.h"
#include "tests/apps/run_program.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class BuildModelCommand : public testing::Test {
 protected:
  BuildModelCommand() {
    std::string folder = testing::TempDir() + "build-model-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~BuildModelCommand() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }

  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    std::ostringstream content;
    content << file.rdbuf();
    return std::move(content).str();
  }

  void Write(const std::string& name, const std::vector<float>& values) const {
    std::ofstream(Path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
  }

  std::size_t NumFiles() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  // Fails with one line that holds `reason`, and writes nothing.
  void ExpectFailure(int exit_code, const std::string& reason,
                     std::vector<std::string> arguments) const {
    const std::size_t files = NumFiles();
    arguments.insert(arguments.begin(), "build-model");
    const ProgramResult result = RunProgram(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(reason));
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(NumFiles(), files);
  }

 private:
  fs::path folder_;
};

TEST_F(BuildModelCommand, ListsEveryNetwork) {
  const ProgramResult result = RunProgram({"build-model", "--list"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const NetworkDef& network : Networks()) {
    EXPECT_THAT(result.out, HasSubstr(std::string(network.name)));
    EXPECT_THAT(result.out, HasSubstr(std::to_string(CountParameters(network))));
  }
}

TEST_F(BuildModelCommand, WritesTheSeededNetwork) {
  const ProgramResult result =
      RunProgram({"build-model", "f5dctnet-v1s", Path("a.onnx"), "--seed", "5"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out + result.err, "");
  SeededWeights weights(5);
  EXPECT_EQ(Read("a.onnx"),
            BuildNetwork(*FindNetwork("f5dctnet-v1s"), weights).SerializeAsString());
  EXPECT_EQ(NumFiles(), 1u);
}

TEST_F(BuildModelCommand, TakesTrainedWeightsAndStoresThemAsFloat16) {
  const NetworkDef& network = *FindNetwork("default-x4");
  std::vector<float> values(static_cast<std::size_t>(CountParameters(network)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) / 8;
  Write("weights.f32", values);
  const ProgramResult result = RunProgram(
      {"build-model", "default-x4", Path("a.onnx"), "--weights", Path("weights.f32"), "--fp16"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  ListedWeights weights(values);
  EXPECT_EQ(Read("a.onnx"),
            BuildNetwork(network, weights, WeightStorage::kFloat16).SerializeAsString());
}

TEST_F(BuildModelCommand, WrongUsage) {
  ExpectFailure(2, "NAME and OUT", {});
  ExpectFailure(2, "NAME and OUT", {"span-x4"});
  ExpectFailure(2, "no network 'span'", {"span", Path("a.onnx")});
  ExpectFailure(2, "--bogus", {"span-x4", Path("a.onnx"), "--bogus"});
  ExpectFailure(2, "excludes",
                {"span-x4", Path("a.onnx"), "--seed", "1", "--weights", Path("w.f32")});
}

TEST_F(BuildModelCommand, FilesThatCannotBeUsed) {
  ExpectFailure(1, "none/a.onnx: ", {"span-x4", Path("none/a.onnx")});
  ExpectFailure(1, "none.f32: ", {"span-x4", Path("a.onnx"), "--weights", Path("none.f32")});
  Write("short.f32", {1, 2, 3});
  ExpectFailure(1, "short.f32: 3 weights, span-x4 takes 426288",
                {"span-x4", Path("a.onnx"), "--weights", Path("short.f32")});
  Write("large.f32", std::vector<float>(426288, 70000.0f));
  ExpectFailure(1, "does not fit in float16",
                {"span-x4", Path("a.onnx"), "--weights", Path("large.f32"), "--fp16"});
  std::ofstream(Path("odd.f32")) << "12345";
  ExpectFailure(1, "odd.f32: not a list of float32",
                {"span-x4", Path("a.onnx"), "--weights", Path("odd.f32")});
}

}  // namespace
}  // namespace tessera
