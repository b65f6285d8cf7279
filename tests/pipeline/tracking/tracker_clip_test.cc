// NanoTrack on clips whose boxes are known.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "pipeline/tracking/tracker.h"
#include "tests/allocation_count.h"
#include "tests/pipeline/tracking/nanotrack.h"
#include "tests/pipeline/tracking/synthetic_clip.h"
#include "tests/pipeline/video/view_of.h"
#include "tests/shared_files.h"

namespace tessera {
namespace {

// Frames that may go by until a loss is said, or until a target that came back has been found.
constexpr int kFramesToLose = 6, kFramesToFind = 12;

struct Seen {
  double visible = 0, overlap = 0;
  TrackResult result;
};

std::vector<Seen> Follow(const SyntheticClip& clip, Tracker& tracker) {
  std::vector<Seen> frames;
  for (int i = 0; i < clip.frames(); ++i) {
    const ClipFrame frame = clip.Render(i);
    if (i == 0) {
      tracker.Init(ViewOf(frame.pixels), frame.box);
      continue;
    }
    const TrackResult result = tracker.Update(ViewOf(frame.pixels));
    frames.push_back({frame.visible, Overlap(result.box, frame.box), result});
  }
  return frames;
}

struct Summary {
  double overlap = 0;       // mean over the frames that show most of the toy
  int gone = 0;             // frames without it, but for the first after it went
  double lost = 0;          // share of those
  int back = 0;             // frames with all of it again, but for the first after it came
  double found_again = 0;   // share of those
  double false_alarms = 0;  // share of `lost` among the frames with it before it goes
};

Summary Summarise(const std::vector<Seen>& frames) {
  int shown = 0, gone = 0, said_lost = 0, back = 0, found = 0, before = 0, alarms = 0;
  int since_gone = 0, since_back = 0;
  double overlap = 0;
  for (const Seen& frame : frames) {
    const bool visible = frame.visible > 0.5;
    since_gone = frame.visible > 0.02 ? 0 : since_gone + 1;
    if (gone + since_gone > 0) since_back = frame.visible > 0.98 ? since_back + 1 : 0;
    if (visible) {
      ++shown;
      overlap += frame.overlap;
    }
    if (since_gone > kFramesToLose) {
      ++gone;
      said_lost += frame.result.lost ? 1 : 0;
    }
    if (since_back > kFramesToFind) {
      ++back;
      found += !frame.result.lost && frame.overlap > 0.5 ? 1 : 0;
    }
    if (gone == 0 && frame.visible > 0.98) {
      ++before;
      alarms += frame.result.lost ? 1 : 0;
    }
  }
  return {.overlap = overlap / shown,
          .gone = gone,
          .lost = 1.0 * said_lost / gone,
          .back = back,
          .found_again = 1.0 * found / back,
          .false_alarms = 1.0 * alarms / before};
}

struct Scenario {
  std::string name;
  ClipOptions options;
  bool goes = true;  // and comes back
};

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

const std::vector<ClipKey> kLeavesRightComesBackLower = {
    {0, 60, 150, 60, 0},   {40, 200, 110, 60, 10}, {60, 390, 110, 60, 10},
    {85, 390, 180, 60, 0}, {105, 200, 150, 60, 0}, {140, 120, 100, 60, -5}};
const std::vector<ClipKey> kLeavesLeftComesBackRight = {
    {0, 60, 150, 60, 0},   {40, -60, 110, 60, 0}, {65, -60, 110, 60, 0},
    {66, 390, 150, 60, 0}, {86, 250, 150, 60, 0}, {140, 120, 100, 60, 0}};

const Scenario kScenarios[] = {
    {"Leaves", {.frames = 140, .path = kLeavesRightComesBackLower, .stones = 0}},
    {"ComesBackElsewhere", {.frames = 140, .path = kLeavesLeftComesBackRight, .stones = 0}},
    {"LeavesStones", {.frames = 140, .path = kLeavesRightComesBackLower}},
    {"ComesBackElsewhereStones", {.frames = 140, .path = kLeavesLeftComesBackRight}},
    {"Grey", {.frames = 140, .path = kLeavesRightComesBackLower, .stones = 0, .grey = true}},
    {"Covered",
     {.frames = 120,
      .path = {{0, 60, 130, 60, 0}, {119, 280, 130, 60, 0}},
      .bar = {150, 0, 70, 240}}},
    {"Grows", {.frames = 100, .path = {{0, 100, 120, 45, 0}, {99, 200, 120, 90, 0}}}, false},
    {"Shrinks", {.frames = 100, .path = {{0, 100, 120, 90, 0}, {99, 200, 120, 45, 0}}}, false},
};

class TrackerClip : public testing::TestWithParam<std::tuple<int, Scenario>> {};

TEST_P(TrackerClip, IsFollowedLostAndFound) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "needs the shared folder";
  const auto& [version, scenario] = GetParam();
  Tracker tracker = LoadNanoTrack(*shared, version);
  const Summary summary = Summarise(Follow(SyntheticClip(scenario.options), tracker));
  EXPECT_GT(summary.overlap, 0.6);
  if (scenario.goes) {
    EXPECT_GT(summary.gone, 0);
    EXPECT_GT(summary.lost, 0.95);
    EXPECT_GT(summary.back, 0);
    EXPECT_GT(summary.found_again, 0.95);
  }
  EXPECT_EQ(summary.false_alarms, 0);
}

INSTANTIATE_TEST_SUITE_P(NanoTrack, TrackerClip,
                         testing::Combine(testing::Values(1, 2, 3), testing::ValuesIn(kScenarios)),
                         [](const auto& param) {
                           return StrCat("v", std::get<0>(param.param), "_",
                                         std::get<1>(param.param).name);
                         });

class TrackerAllocations : public testing::TestWithParam<int> {};

TEST_P(TrackerAllocations, ThereAreNoneAfterInit) {
  const auto shared = SharedFolder();
  if (!shared) GTEST_SKIP() << "needs the shared folder";
  if (!kCountsAllocations) GTEST_SKIP() << "the sanitizers own the allocator";
  const SyntheticClip clip({.path = {{0, 60, 150, 60, 0}, {5, 90, 140, 70, 0}}});
  std::vector<ClipFrame> frames;
  for (int i = 0; i < 6; ++i) frames.push_back(clip.Render(i));
  Tracker tracker = LoadNanoTrack(*shared, GetParam(), 2);
  tracker.Init(ViewOf(frames[0].pixels), frames[0].box);
  EXPECT_EQ(CountAllocations([&] {
              for (const ClipFrame& frame : frames) tracker.Update(ViewOf(frame.pixels));
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(NanoTrack, TrackerAllocations, testing::Values(1, 2, 3),
                         [](const auto& param) { return StrCat("v", param.param); });

}  // namespace
}  // namespace tessera
