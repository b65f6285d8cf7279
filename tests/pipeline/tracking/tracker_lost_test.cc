// What a tracker does when its target is gone, and when the network says nonsense.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "ops/error.h"
#include "pipeline/tracking/tracker.h"
#include "tests/allocation_count.h"
#include "tests/pipeline/tracking/marker_network.h"
#include "tests/pipeline/video/view_of.h"

namespace tessera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
const cv::Rect kNowhere;
const cv::Rect kMarker(100, 80, 40, 50);

Box BoxOf(const cv::Rect& rect) {
  return {static_cast<double>(rect.x), static_cast<double>(rect.y), static_cast<double>(rect.width),
          static_cast<double>(rect.height)};
}

Tracker MarkerTracker(std::function<void(MarkerNetwork::Answer&)> change = nullptr) {
  return Tracker(std::make_unique<MarkerNetwork>(std::move(change)), NanoTrackConfig(1));
}

TrackResult Show(Tracker& tracker, const cv::Rect& marker) {
  return tracker.Update(ViewOf(MarkerFrame(marker)));
}

void Start(Tracker& tracker, const cv::Rect& marker) {
  tracker.Init(ViewOf(MarkerFrame(marker)), BoxOf(marker));
}

// Shows an empty picture until the tracker says so; the number of frames.
int LoseIt(Tracker& tracker) {
  for (int frame = 1; frame <= 20; ++frame) {
    if (Show(tracker, kNowhere).lost) return frame;
  }
  ADD_FAILURE() << "not lost";
  return 20;
}

TEST(TrackerLost, FollowsAMovingTarget) {
  Tracker tracker = MarkerTracker();
  Start(tracker, kMarker);
  for (int i = 1; i <= 30; ++i) {
    const cv::Rect marker = kMarker + cv::Point(4 * i, 2 * i);
    const TrackResult result = Show(tracker, marker);
    EXPECT_FALSE(result.lost);
    EXPECT_GT(result.score, 0.99);
    EXPECT_GT(Overlap(result.box, BoxOf(marker)), 0.8) << i;
  }
}

TEST(TrackerLost, SaysSoAndKeepsTheBox) {
  Tracker tracker = MarkerTracker();
  Start(tracker, kMarker);
  for (int i = 0; i < 5; ++i) Show(tracker, kMarker);
  const int frames = LoseIt(tracker);
  EXPECT_GT(frames, 1) << "one bad frame is no loss";
  EXPECT_LE(frames, 10);
  for (int i = 0; i < 50; ++i) {
    const TrackResult result = Show(tracker, kNowhere);
    EXPECT_TRUE(result.lost);
    EXPECT_LT(result.score, 0.1);
    EXPECT_GT(Overlap(result.box, BoxOf(kMarker)), 0.6) << i;
  }
}

TEST(TrackerLost, OneBadFrameIsNoLoss) {
  Tracker tracker = MarkerTracker();
  Start(tracker, kMarker);
  for (int i = 0; i < 30; ++i) {
    const bool gone = i % 5 == 4;
    const TrackResult result = Show(tracker, gone ? kNowhere : kMarker);
    EXPECT_FALSE(result.lost) << i;
    // Without a target the box follows whatever is likest to it.
    if (gone) continue;
    EXPECT_GT(Overlap(result.box, BoxOf(kMarker)), 0.6) << i;
  }
}

// Frames until a lost target is found that has come back there.
int FramesToFind(const cv::Rect& start, const cv::Rect& there) {
  Tracker tracker = MarkerTracker();
  Start(tracker, start);
  for (int i = 0; i < 5; ++i) Show(tracker, start);
  LoseIt(tracker);
  int frames = 1;
  while (frames < 100 && Show(tracker, there).lost) ++frames;
  for (int i = 0; i < 20; ++i) Show(tracker, there);
  const TrackResult result = Show(tracker, there);
  EXPECT_FALSE(result.lost);
  EXPECT_GT(Overlap(result.box, BoxOf(there)), 0.6);
  return frames;
}

TEST(TrackerLost, IsSearchedInAreasThatGrow) {
  const cv::Rect start(10, 10, 30, 30);
  const int here = FramesToFind(start, start), near = FramesToFind(start, {90, 60, 30, 30}),
            far = FramesToFind(start, {280, 200, 30, 30});
  EXPECT_LE(here, 2);
  EXPECT_LE(here, near);
  EXPECT_LT(near, far);
  EXPECT_LT(far, 60);
}

TEST(TrackerLost, SearchAreaDoesNotGrowWithoutBound) {
  Tracker tracker = MarkerTracker();
  Start(tracker, kMarker);
  Show(tracker, kMarker);
  const std::int64_t usual = tracker.last_step().window.side;
  LoseIt(tracker);
  for (int i = 0; i < 300; ++i) {
    Show(tracker, kNowhere);
    ASSERT_LE(tracker.last_step().window.side, 4 * usual) << i;
  }
}

// A score between the two limits loses nothing, and finds nothing.
TEST(TrackerLost, HasTwoLimits) {
  double score = 1;
  Tracker tracker = MarkerTracker([&](MarkerNetwork::Answer& answer) {
    for (float& logit : answer.classes) {
      if (logit > 0) logit = static_cast<float>(std::log(score / (1 - score)));
    }
  });
  const TrackerConfig& config = tracker.config();
  ASSERT_LT(config.lost_below, config.found_above);
  const double between = config.found_above - 0.01;
  const auto lost_at_the_end = [&](double shown) {
    score = shown;
    bool lost = false;
    for (int i = 0; i < 30; ++i) lost = Show(tracker, kMarker).lost;
    return lost;
  };
  const double high = (config.found_above + 1) / 2, low = config.lost_below / 2;
  score = high;
  Start(tracker, kMarker);
  EXPECT_FALSE(lost_at_the_end(high));
  EXPECT_FALSE(lost_at_the_end(between));
  EXPECT_TRUE(lost_at_the_end(low));
  EXPECT_TRUE(lost_at_the_end(between));
  EXPECT_FALSE(lost_at_the_end(high));
}

TEST(TrackerLost, InitAndSetStateEndIt) {
  Tracker tracker = MarkerTracker();
  const cv::Rect other(220, 150, 40, 40);
  Start(tracker, kMarker);
  LoseIt(tracker);
  Start(tracker, other);
  EXPECT_FALSE(Show(tracker, other).lost);
  EXPECT_GT(Overlap(Show(tracker, other).box, BoxOf(other)), 0.8);

  LoseIt(tracker);
  tracker.SetState({120, 105, 40, 50});
  EXPECT_FALSE(Show(tracker, kMarker).lost);
  EXPECT_GT(Overlap(tracker.state().box(), BoxOf(kMarker)), 0.8);
}

TEST(TrackerLost, AllocatesNothing) {
  if (!kCountsAllocations) GTEST_SKIP() << "the sanitizers own the allocator";
  for (const int threads : {1, 2}) {
    SCOPED_TRACE(threads);
    Tracker tracker(std::make_unique<MarkerNetwork>(), NanoTrackConfig(1), threads);
    const cv::Mat there = MarkerFrame(kMarker), gone = MarkerFrame(kNowhere);
    tracker.Init(ViewOf(there), BoxOf(kMarker));
    bool was_lost = false;
    const int allocations = CountAllocations([&] {
      for (int i = 0; i < 5; ++i) tracker.Update(ViewOf(there));
      for (int i = 0; i < 60; ++i) was_lost = tracker.Update(ViewOf(gone)).lost;
      for (int i = 0; i < 5; ++i) tracker.Update(ViewOf(there));
    });
    EXPECT_TRUE(was_lost);
    EXPECT_EQ(allocations, 0);
  }
}

void ExpectInFrame(const Box& box, const cv::Mat& frame) {
  ASSERT_TRUE(std::isfinite(box.x) && std::isfinite(box.y));
  EXPECT_GT(box.width, 0);
  EXPECT_GT(box.height, 0);
  EXPECT_LE(box.width, frame.cols);
  EXPECT_LE(box.height, frame.rows);
  const double cx = box.x + box.width / 2, cy = box.y + box.height / 2;
  EXPECT_TRUE(cx >= 0 && cx <= frame.cols && cy >= 0 && cy <= frame.rows) << cx << ", " << cy;
}

struct Nonsense {
  std::string name;
  std::function<void(MarkerNetwork::Answer&)> change;
};

class TrackerNonsense : public testing::TestWithParam<Nonsense> {};

TEST_P(TrackerNonsense, BoxStaysInFrame) {
  bool sane = true;
  Tracker tracker = MarkerTracker([&](MarkerNetwork::Answer& answer) {
    if (!sane) GetParam().change(answer);
  });
  Start(tracker, kMarker);
  for (int i = 0; i < 3; ++i) Show(tracker, kMarker);
  sane = false;
  const cv::Mat frame = MarkerFrame(kMarker);
  for (int i = 0; i < 100; ++i) {
    const TrackResult result = tracker.Update(ViewOf(frame));
    SCOPED_TRACE(i);
    ExpectInFrame(result.box, frame);
    ASSERT_TRUE(result.score >= 0 && result.score <= 1) << result.score;
    ASSERT_LE(tracker.last_step().window.side, 10000);
  }
  sane = true;
  for (int i = 0; i < 60; ++i) tracker.Update(ViewOf(frame));
  const TrackResult after = tracker.Update(ViewOf(frame));
  EXPECT_FALSE(after.lost);
  EXPECT_GT(Overlap(after.box, BoxOf(kMarker)), 0.6) << "does not recover";
}

void Fill(std::vector<float>& values, float value) {
  std::fill(values.begin(), values.end(), value);
}

INSTANTIATE_TEST_SUITE_P(
    Maps, TrackerNonsense,
    testing::Values(
        Nonsense{"HugeBoxes", [](auto& answer) { Fill(answer.boxes, 1e30F); }},
        Nonsense{"InfiniteBoxes",
                 [](auto& answer) { Fill(answer.boxes, static_cast<float>(kInfinity)); }},
        Nonsense{"BoxesInsideOut", [](auto& answer) { Fill(answer.boxes, -50); }},
        Nonsense{"EmptyBoxes", [](auto& answer) { Fill(answer.boxes, 0); }},
        Nonsense{"BoxesNoNumbers", [](auto& answer) { Fill(answer.boxes, kNaN); }},
        Nonsense{"ScoresNoNumbers", [](auto& answer) { Fill(answer.classes, kNaN); }},
        Nonsense{"InfiniteScores",
                 [](auto& answer) { Fill(answer.classes, static_cast<float>(kInfinity)); }},
        Nonsense{"NoScores", [](auto& answer) { Fill(answer.classes, 0); }},
        Nonsense{"AlwaysFarRight",
                 [](auto& answer) {
                   const std::size_t plane = answer.boxes.size() / 4;
                   Fill(answer.boxes, 0);
                   for (std::size_t i = 0; i < plane; ++i) {
                     answer.boxes[i] = -100;
                     answer.boxes[2 * plane + i] = 160;
                     answer.boxes[3 * plane + i] = 60;
                     answer.classes[plane + i] = 8;
                   }
                 }}),
    [](const auto& param) { return param.param.name; });

TEST(TrackerInit, TakesBoxesOverTheBorder) {
  for (const cv::Rect& marker :
       {cv::Rect(-20, 100, 40, 40), cv::Rect(300, 210, 40, 60), cv::Rect(0, 0, 30, 30),
        cv::Rect(-40, -30, 400, 300), cv::Rect(319, 239, 10, 10)}) {
    SCOPED_TRACE(testing::Message() << marker.x << "," << marker.y);
    Tracker tracker = MarkerTracker();
    Start(tracker, marker);
    const cv::Mat frame = MarkerFrame(marker);
    for (int i = 0; i < 10; ++i) ExpectInFrame(tracker.Update(ViewOf(frame)).box, frame);
  }
}

TEST(TrackerInit, RefusesBoxesThatHoldNothing) {
  const cv::Mat frame = MarkerFrame(kMarker);
  const double nan = kNaN;
  for (const Box& box : {Box{10, 10, 0, 20}, Box{10, 10, 20, -5}, Box{nan, 10, 20, 20},
                         Box{10, 10, nan, 20}, Box{10, kInfinity, 20, 20},
                         Box{10, 10, kInfinity, 20}, Box{-50, 10, 50, 20}, Box{320, 10, 20, 20},
                         Box{10, 240, 20, 20}, Box{10, -21, 20, 20}, Box{-1e300, 10, 1e300, 20}}) {
    Tracker tracker = MarkerTracker();
    EXPECT_THROW(tracker.Init(ViewOf(frame), box), Error)
        << box.x << "," << box.y << "," << box.width << "," << box.height;
  }
}

TEST(TrackerInit, RefusalChangesNothing) {
  Tracker tracker = MarkerTracker();
  Start(tracker, kMarker);
  Show(tracker, kMarker);
  EXPECT_THROW(tracker.Init(ViewOf(MarkerFrame(kMarker)), Box{}), Error);
  EXPECT_GT(Overlap(Show(tracker, kMarker).box, BoxOf(kMarker)), 0.8);
}

TEST(TrackerInit, FramesMayChangeSize) {
  Tracker tracker = MarkerTracker();
  Start(tracker, {260, 180, 40, 40});
  const cv::Mat small = MarkerFrame({60, 50, 40, 40}, {160, 120});
  for (int i = 0; i < 40; ++i) ExpectInFrame(tracker.Update(ViewOf(small)).box, small);
  const TrackResult result = tracker.Update(ViewOf(small));
  EXPECT_FALSE(result.lost);
  EXPECT_GT(Overlap(result.box, {60, 50, 40, 40}), 0.6);
}

// A stream that stumbles: the target is there again, at its size.
TEST(TrackerInit, SmallFramesInBetweenChangeNothing) {
  for (const cv::Size& size : {cv::Size(16, 12), cv::Size(1, 1), cv::Size(4000, 20)}) {
    SCOPED_TRACE(testing::Message() << size.width << "x" << size.height);
    Tracker tracker = MarkerTracker();
    Start(tracker, kMarker);
    for (int i = 0; i < 5; ++i) Show(tracker, kMarker);
    const cv::Mat stumble = MarkerFrame(kNowhere, size);
    for (int i = 0; i < 2; ++i) {
      const Box box = tracker.Update(ViewOf(stumble)).box;
      EXPECT_LE(box.width, size.width);
      EXPECT_LE(box.height, size.height);
    }
    for (int i = 0; i < 30; ++i) {
      const Box box = Show(tracker, kMarker).box;
      EXPECT_LE(box.width, 320);
      EXPECT_LE(box.height, 240);
    }
    const TrackResult result = Show(tracker, kMarker);
    EXPECT_FALSE(result.lost);
    EXPECT_GT(Overlap(result.box, BoxOf(kMarker)), 0.6);
  }
}

TEST(TrackerInit, EmptyFramesAreRefusedAndChangeNothing) {
  Tracker tracker = MarkerTracker();
  Start(tracker, kMarker);
  Show(tracker, kMarker);
  const Tracker::State before = tracker.state();
  EXPECT_THROW(tracker.Update(FrameView()), Error);
  EXPECT_EQ(tracker.state().box(), before.box());
}

// What is remembered of a target that goes behind something is its size before that.
TEST(TrackerLost, KeepsTheSizeOfWhatIsCoveredByAndBy) {
  Tracker tracker = MarkerTracker();
  Start(tracker, kMarker);
  for (int i = 0; i < 5; ++i) Show(tracker, kMarker);
  for (int width = kMarker.width; width > 0; width -= 4)
    Show(tracker, {kMarker.x, kMarker.y, width, kMarker.height});
  LoseIt(tracker);
  const Box box = Show(tracker, kNowhere).box;
  EXPECT_GT(box.width, 0.8 * kMarker.width);
  EXPECT_GT(box.height, 0.8 * kMarker.height);
}

}  // namespace
}  // namespace tessera
