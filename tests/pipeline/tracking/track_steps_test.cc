#include "pipeline/tracking/track_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "ops/error.h"
#include "tests/shared_files.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// All values of a step, so that two can be compared at once.
auto Values(const TrackStep& s) {
  return std::tuple(s.frame, s.before.cx, s.before.cy, s.before.width, s.before.height,
                    s.step.window.x, s.step.window.y, s.step.window.side, s.step.row, s.step.column,
                    s.step.score, s.step.penalty, s.step.rank_margin, s.after.cx, s.after.cy,
                    s.after.width, s.after.height);
}

const std::string kHeader =
    "frame,cx0,cy0,w0,h0,crop_x,crop_y,crop_side,row,col,score,penalty,rank_margin,cx1,cy1,w1,h1\n";
const std::string kLine = "3,1.5,2,30,40,-7,8,255,9,10,0.5,0.25,1e-05,16,17,18,19\n";

class StepFile : public ::testing::Test {
 protected:
  std::string ErrorOf(const std::string& text) {
    WriteBytes(path_, text);
    try {
      ReadSteps(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "steps.csv";
};

const TrackStep kStep{.frame = 3,
                      .before = {1.5, 2, 30, 40},
                      .step = {.window = {-7, 8, 255},
                               .row = 9,
                               .column = 10,
                               .score = 0.5,
                               .penalty = 0.25,
                               .rank_margin = 1e-5},
                      .after = {16, 17, 18, 19}};

TEST_F(StepFile, EveryColumnHasItsPlace) {
  WriteSteps(path_, {kStep}, false);
  EXPECT_EQ(ReadBytes(path_), kHeader + kLine);
  for (const std::string& header : {kHeader, std::string()}) {
    WriteBytes(path_, header + kLine);
    const auto steps = ReadSteps(path_);
    ASSERT_EQ(steps.size(), 1U);
    EXPECT_EQ(Values(steps[0]), Values(kStep));
  }
}

TEST_F(StepFile, NumbersComeBackAsTheyWere) {
  std::vector<TrackStep> steps;
  for (int i = 0; i < 100; ++i) {
    const double x = std::sqrt(i + 2.0) * std::pow(10, i % 40 - 20);
    steps.push_back({.frame = 1LL << (i % 53),
                     .before = {x, -x, std::sqrt(i + 3.0), 1 / std::sqrt(i + 3.0)},
                     .step = {.window = {-i, i * i, 1},
                              .row = i,
                              .column = 100 - i,
                              .score = std::nextafter(1.0, 0.0),
                              .penalty = std::numeric_limits<double>::denorm_min(),
                              .rank_margin = x / 7},
                     .after = {x * 1.1, x + 0.1, x - 0.1, std::numeric_limits<double>::max()}});
  }
  WriteSteps(path_, steps, false);
  const auto read = ReadSteps(path_);
  ASSERT_EQ(read.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(Values(read[i]), Values(steps[i]));
}

TEST_F(StepFile, StatesToStartFromHaveSizes) {
  for (const double bad : {0.0, -5.0, 1e300}) {
    const TrackStep step{.frame = 1, .before = {10, 10, 20, bad}, .step = {}, .after = {}};
    WriteSteps(path_, {step}, true);
    EXPECT_THAT(ErrorOf(ReadBytes(path_)), HasSubstr("h0 is no length of a box"));
  }
}

TEST_F(StepFile, NoStepsAreAHeader) {
  WriteSteps(path_, {}, false);
  EXPECT_EQ(ReadBytes(path_), kHeader);
  EXPECT_TRUE(ReadSteps(path_).empty());
}

TEST_F(StepFile, ErrorsNameFileAndLine) {
  const auto at = [](int line, const char* reason) {
    return AllOf(HasSubstr("steps.csv:" + std::to_string(line) + ": "), HasSubstr(reason));
  };
  EXPECT_THAT(ErrorOf(kHeader + kLine + "1,2,3\n"), at(3, "3 columns instead of 17"));
  EXPECT_THAT(ErrorOf("frame,x,y,w,h\n0,1,2,3,4\n"), at(1, "columns"));
  EXPECT_THAT(ErrorOf(kHeader + "3.5" + kLine.substr(1)), at(2, "frame is no whole number"));
  EXPECT_THAT(ErrorOf(kHeader + "3,nan" + kLine.substr(5)), at(2, "cx0 is no finite number"));
  EXPECT_THAT(ErrorOf(kHeader + "3,x" + kLine.substr(5)), at(2, "no number: x"));
  EXPECT_THAT([] { ReadSteps("/nowhere/steps.csv"); },
              testing::ThrowsMessage<Error>(HasSubstr("/nowhere/steps.csv: ")));
}

TEST_F(StepFile, WhatIsThereIsKeptUnlessItMayBeOverwritten) {
  WriteBytes(path_, "precious");
  EXPECT_THAT(
      [&] { WriteSteps(path_, {kStep}, false); },
      testing::ThrowsMessage<Error>(AllOf(HasSubstr("steps.csv: "), HasSubstr("exists already"))));
  EXPECT_EQ(ReadBytes(path_), "precious");
  WriteSteps(path_, {kStep}, true);
  EXPECT_EQ(ReadBytes(path_), kHeader + kLine);
}

TEST(Steps, OfTheReferenceCanBeRead) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "no shared folder";
  const auto steps = ReadSteps(*shared / "tracking" / "steps" / "car4_v1.csv");
  ASSERT_EQ(steps.size(), 359U);
  EXPECT_EQ(Values(steps[0]),
            std::tuple(1, 123, 94, 107, 87, -72, -101, 389, 7, 8, 0.9980977722, 0.997237191,
                       0.01232066751, 124.2028788, 88.55458743, 107.3236436, 87.51455628));
  // One begins where the last has ended.
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].frame, steps[i - 1].frame + 1);
    EXPECT_EQ(steps[i].before.cx, steps[i - 1].after.cx);
  }
}

}  // namespace
}  // namespace tessera
