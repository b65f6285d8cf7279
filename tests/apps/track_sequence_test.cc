// Single steps of the program on a published network and sequence, which are not part of the
// project.
#include <cmath>

#include "pipeline/tracking/track_steps.h"
#include "tests/apps/track_command.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

TEST(TrackSequence, SingleStepsAreThoseOfTheReference) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "needs ../shared";
  const std::filesystem::path tracking = *shared / "tracking";
  const std::filesystem::path sequence = tracking / "sequences" / "crossing";
  const std::filesystem::path reference = tracking / "steps" / "crossing_v3.csv";
  const std::string network = (*shared / "models" / "nanotrack" / "nanotrackv3").string();
  if (!std::filesystem::exists(network + "_head.onnx") || !std::filesystem::exists(reference))
    GTEST_SKIP() << "needs ../shared";
  const TemporaryFolder folder;
  const std::string own = (folder / "own.csv").string();
  const ProgramResult result =
      RunProgram({"track", sequence / "frames", "--init", sequence / "init.txt", "--model",
                  network + "_backbone.onnx", "--head", network + "_head.onnx", "--end", "11",
                  "--steps-in", reference, "--steps-out", own});
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

}  // namespace
}  // namespace tessera
