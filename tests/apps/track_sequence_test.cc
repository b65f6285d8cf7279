// The program on published networks and sequences, which are not part of the project.
#include <cmath>

#include "ops/error.h"
#include "pipeline/tracking/track_steps.h"
#include "tests/apps/track_command.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class TrackSequence : public testing::Test {
 protected:
  void SetUp() override {
    const auto shared = SharedFolder();
    if (!shared || !std::filesystem::exists(*shared / "models" / "nanotrack") ||
        !std::filesystem::exists(*shared / "tracking" / "sequences" / "crossing")) {
      GTEST_SKIP() << "needs ../shared";
    }
    tracking_ = *shared / "tracking";
    networks_ = *shared / "models" / "nanotrack";
  }

  // `version`: "v1", "v2" or "v3". Begins with the known box.
  ProgramResult TrackCrossing(const std::string& version,
                              std::vector<std::string> arguments) const {
    const std::filesystem::path sequence = tracking_ / "sequences" / "crossing";
    const std::string prefix = (networks_ / ("nanotrack" + version)).string();
    arguments.insert(
        arguments.begin(),
        {"track", (sequence / "frames").string(), "--init", (sequence / "init.txt").string(),
         "--model", prefix + "_backbone.onnx", "--head", prefix + "_head.onnx"});
    return RunProgram(arguments);
  }

  TemporaryFolder folder_;
  std::filesystem::path tracking_, networks_;
};

TEST_F(TrackSequence, SingleStepsAreThoseOfTheReference) {
  const std::filesystem::path reference = tracking_ / "steps" / "crossing_v3.csv";
  const std::string own = (folder_ / "own.csv").string();
  const ProgramResult result =
      TrackCrossing("v3", {"--end", "11", "--steps-in", reference, "--steps-out", own});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<TrackStep> want = ReadSteps(reference), got = ReadSteps(own);
  ASSERT_EQ(got.size(), 10u);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].frame, want[i].frame);
    EXPECT_EQ(got[i].step.window, want[i].step.window) << i;
    if (want[i].step.rank_margin < 1e-3) continue;
    EXPECT_NEAR(got[i].after.cx, want[i].after.cx, 0.01) << i;
    EXPECT_NEAR(got[i].after.cy, want[i].after.cy, 0.01) << i;
    EXPECT_NEAR(got[i].after.width, want[i].after.width, 0.01) << i;
    EXPECT_NEAR(got[i].after.height, want[i].after.height, 0.01) << i;
    EXPECT_NEAR(got[i].step.score, want[i].step.score, 1e-3) << i;
  }
}

// The version that is found is the one that is named.
TEST_F(TrackSequence, VersionsAreFoundByTheirShapes) {
  for (const char* version : {"v1", "v2", "v3"}) {
    const ProgramResult found = TrackCrossing(version, {"--end", "4", "--csv", "-"});
    EXPECT_EQ(found.exit_code, 0) << found.err;
    EXPECT_EQ(found.out,
              TrackCrossing(version, {"--end", "4", "--csv", "-", "--variant", version}).out);
  }
  EXPECT_NE(TrackCrossing("v1", {"--end", "4", "--csv", "-"}).out,
            TrackCrossing("v1", {"--end", "4", "--csv", "-", "--variant", "v2"}).out);
}

TEST_F(TrackSequence, NumbersAreNearThoseOfTheReference) {
  const std::string truth = (tracking_ / "sequences" / "crossing" / "gt.csv").string();
  const ProgramResult result = TrackCrossing("v2", {"--groundtruth", truth, "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("frames with a known box: 120\n"));
  const std::size_t at = result.out.find("success AUC: ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NEAR(std::stod(result.out.substr(at + 13)), 0.743, 0.02);
}

}  // namespace
}  // namespace tessera
