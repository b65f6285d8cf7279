// What the tests of `track` share: a network that needs no training, clips for it, and the program.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/tracking/box.h"
#include "tests/apps/run_program.h"
#include "tests/engine/test_model.h"
#include "tests/pipeline/video/test_frames.h"
#include "tests/temporary_folder.h"

namespace tessera {

// Features of one channel: how bright the surroundings of a point are. In the shapes of NanoTrack 1
// and 2, but for the number of channels.
inline std::string BrightnessBackbone() {
  constexpr std::int64_t kKernel = 63;
  TestModel m;
  m.Input("input", {1, 3, -1, -1}).Output("output");
  const std::size_t weights = 3 * kKernel * kKernel;
  m.Floats("w", {1, 3, kKernel, kKernel},
           std::vector<float>(weights, 1 / static_cast<float>(weights)));
  m.Node("Conv", {"input", "w"}, {"output"},
         {{"strides", std::vector<std::int64_t>{16, 16}},
          {"pads", std::vector<std::int64_t>{31, 31, 31, 31}}});
  return m.Bytes();
}

// Says that the target is where it is bright, and that it keeps its size.
inline std::string BrightnessHead() {
  TestModel m;
  m.Input("input1", {1, 1, 8, 8}).Input("input2", {1, 1, 16, 16}).Output("output1");
  m.Output("output2");
  m.Floats("zero", {1}, {0}).Floats("cw", {2, 1, 1, 1}, {0, 0.05f}).Floats("cb", {2}, {0, -9});
  m.Floats("bw", {4, 1, 1, 1}, {0, 0, 0, 0}).Floats("bb", {4}, {32, 32, 32, 32});
  m.Node("GlobalAveragePool", {"input1"}, {"mean"})
      .Node("Mul", {"mean", "zero"}, {"nothing"})
      .Node("Add", {"input2", "nothing"}, {"sum"})
      .Node("Conv", {"sum", "cw", "cb"}, {"output1"})
      .Node("Conv", {"sum", "bw", "bb"}, {"output2"});
  return m.Bytes();
}

// A bright square that wanders over a dark ground.
inline Box SquareBox(int frame) { return {30 + 3.0 * frame, 40 + 2.0 * frame, 40, 40}; }

inline cv::Mat SquareFrame(int frame, cv::Size size = {320, 240}) {
  cv::Mat pixels(size, CV_8UC3, cv::Scalar(60, 50, 40));
  const Box box = SquareBox(frame);
  const cv::Rect square(static_cast<int>(box.x), static_cast<int>(box.y), 40, 40);
  pixels(square & cv::Rect({}, size)).setTo(cv::Scalar(250, 250, 250));
  return pixels;
}

inline void WriteSquareVideo(const std::filesystem::path& path, int frames, double rate = 20,
                             cv::Size size = {320, 240}) {
  WriteFrames(path, frames, [&](std::int64_t i) { return SquareFrame(static_cast<int>(i), size); },
              {.frames_per_second = rate, .overwrite = true});
}

struct CsvRow {
  int frame = 0;
  double time = 0;
  Box box;
  double score = 0;
  int lost = 0;
};

// Fails the test if the text is not that of records.
inline std::vector<CsvRow> ReadRows(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "frame,time,x,y,w,h,score,lost");
  std::vector<CsvRow> rows;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::ranges::count(line, ','), 7) << line;
    std::ranges::replace(line, ',', ' ');
    std::istringstream values(line);
    CsvRow row;
    values >> row.frame >> row.time >> row.box.x >> row.box.y >> row.box.width >> row.box.height >>
        row.score >> row.lost;
    EXPECT_TRUE(values) << line;
    rows.push_back(row);
  }
  return rows;
}

class TrackCommand : public testing::Test {
 protected:
  TrackCommand() {
    WriteBytes(backbone_, BrightnessBackbone());
    WriteBytes(head_, BrightnessHead());
  }

  // The command line with the network.
  std::vector<std::string> WithModel(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "track");
    arguments.insert(arguments.end(), {"--model", backbone_, "--head", head_, "--variant", "v1"});
    return arguments;
  }
  ProgramResult Track(std::vector<std::string> arguments,
                      const std::vector<std::string>& environment = {}) const {
    return RunProgram(WithModel(std::move(arguments)), environment);
  }
  // With the square's box.
  std::vector<std::string> WithInit(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--init", "30,40,40,40"});
    return arguments;
  }

  // Fails with one line that holds all of `parts`, and leaves no new file.
  void ExpectFailure(int exit_code, const std::vector<std::string>& parts,
                     std::vector<std::string> arguments,
                     const std::vector<std::string>& environment = {}) const {
    const std::size_t files = folder_.NumFiles();
    const ProgramResult result = Track(std::move(arguments), environment);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_THAT(result.err, testing::StartsWith("track: "));
    for (const std::string& part : parts) EXPECT_THAT(result.err, testing::HasSubstr(part));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(folder_.NumFiles(), files);
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
  std::string backbone_ = Path("backbone.onnx"), head_ = Path("head.onnx");
  std::string video_ = Path("in.mp4");
};

}  // namespace tessera
