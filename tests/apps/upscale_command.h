// What the tests of `upscale` share: a model whose results are known, and the program with it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/image_reader.h"
#include "pipeline/image_writer.h"
#include "tests/apps/run_program.h"
#include "tests/engine/test_model.h"
#include "tests/pipeline/test_pictures.h"

namespace tessera {

// A model that repeats pixels, `gain` times as bright.
inline std::string NearestModel(std::int64_t scale, float gain = 1) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y");
  std::vector<float> weights(static_cast<std::size_t>(9 * scale * scale));
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t k = 0; k < scale * scale; ++k) {
      weights[static_cast<std::size_t>(3 * (c * scale * scale + k) + c)] = gain;
    }
  }
  m.Floats("w", {3 * scale * scale, 3, 1, 1}, weights);
  m.Node("Conv", {"x", "w"}, {"c"})
      .Node("DepthToSpace", {"c"}, {"y"}, {{"blocksize", scale}, {"mode", std::string("CRD")}});
  return m.Bytes();
}

inline void ExpectDoubled(const Picture& large, const Picture& small) {
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

inline std::ptrdiff_t Lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

class UpscaleCommand : public testing::Test {
 protected:
  UpscaleCommand() {
    WriteBytes(model_, NearestModel(2));
    WritePicture(input_, ImageFormat::kPng, picture_);
  }

  // The command line with the doubling model.
  std::vector<std::string> WithModel(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "upscale");
    arguments.insert(arguments.end(), {"--model", model_});
    return arguments;
  }
  ProgramResult Upscale(std::vector<std::string> arguments,
                        const std::vector<std::string>& environment = {},
                        const std::string& input = "/dev/null") const {
    return RunProgram(WithModel(std::move(arguments)), environment, input);
  }

  // Fails with one line about `file`, and leaves no new file.
  void ExpectFailure(int exit_code, const std::string& file, const std::string& reason,
                     std::vector<std::string> arguments) const {
    const std::size_t files = folder_.NumFiles();
    arguments.push_back("--quiet");
    const ProgramResult result = Upscale(std::move(arguments));
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, testing::StartsWith("upscale: "));
    EXPECT_THAT(result.err, testing::HasSubstr(file));
    EXPECT_THAT(result.err, testing::HasSubstr(reason));
    EXPECT_EQ(Lines(result.err), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(folder_.NumFiles(), files);
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
  std::string model_ = Path("double.onnx"), input_ = Path("in.png"), output_ = Path("out.png");
  Picture picture_ = NoisePicture({.width = 37, .height = 29});
};

}  // namespace tessera
