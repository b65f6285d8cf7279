// Single steps of NanoTrack beside those of the reference, from the same states.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "pipeline/tracking/ground_truth.h"
#include "pipeline/tracking/track_steps.h"
#include "pipeline/tracking/tracker.h"
#include "pipeline/video/frame_source.h"
#include "tests/pipeline/tracking/nanotrack.h"
#include "tests/pipeline/tracking/sequences.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

// The largest difference of a coordinate.
double Difference(const Tracker::State& a, const Tracker::State& b) {
  return std::max({std::abs(a.cx - b.cx), std::abs(a.cy - b.cy), std::abs(a.width - b.width),
                   std::abs(a.height - b.height)});
}

class TrackerSteps : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(TrackerSteps, AreThoseOfTheReference) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "needs the shared folder";
  const auto& [name, version] = GetParam();
  const std::vector<TrackStep> steps =
      ReadSteps(*shared / "tracking/steps" / StrCat(name, "_v", version, ".csv"));
  const auto source = OpenSequence(*shared, name);
  Tracker tracker = LoadNanoTrack(*shared, version);

  Frame frame;
  ASSERT_TRUE(source->Read(frame));
  tracker.Init(frame.view(), StartBox(*shared, name));
  const bool decoded_otherwise = name == "fear_test";
  int compared = 0, near = 0;
  for (const TrackStep& step : steps) {
    ASSERT_TRUE(source->Read(frame));
    ASSERT_EQ(frame.number, step.frame);
    tracker.SetState(step.before);
    tracker.Update(frame.view());
    ++compared;
    const double difference = Difference(tracker.state(), step.after);
    near += difference <= 0.6 ? 1 : 0;
    if (decoded_otherwise) continue;
    EXPECT_EQ(tracker.last_step().window, step.step.window) << "frame " << step.frame;
    // Where two points are all but equal, rounding may choose either.
    if (step.step.rank_margin < 1e-3) continue;
    EXPECT_LE(difference, 0.01) << "frame " << step.frame;
    EXPECT_NEAR(tracker.last_step().score, step.step.score, 1e-3) << "frame " << step.frame;
  }
  EXPECT_FALSE(source->Read(frame)) << "more frames than steps";
  EXPECT_GT(compared, 100);
  EXPECT_GE(near, 0.99 * compared);
}

INSTANTIATE_TEST_SUITE_P(Sequences, TrackerSteps,
                         testing::Combine(testing::Values("crossing", "dog1", "car4", "fear_test"),
                                          testing::Values(1, 2, 3)),
                         [](const auto& param) {
                           return StrCat(std::get<0>(param.param), "_v", std::get<1>(param.param));
                         });

}  // namespace
}  // namespace tessera
