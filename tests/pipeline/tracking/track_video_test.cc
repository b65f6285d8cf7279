// Runs over videos: what reaches whom, and in which order.
#include "pipeline/tracking/track_video.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/pipeline/tracking/track_video_run.h"

namespace tessera {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Clock = std::chrono::steady_clock;
using Wish = TrackEvents::Wish;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST_F(TrackVideoRun, EveryFrameIsTrackedPaintedAndWrittenInOrder) {
  FakeSource source(300);
  const TrackSummary summary = Go(source);
  EXPECT_THAT(summary.failures, IsEmpty());
  EXPECT_FALSE(summary.stopped);
  ExpectComplete(summary, 300);
  for (std::size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(sink_.levels[i], static_cast<int>(i % 256));
    EXPECT_EQ(events_.records[i].frame, static_cast<std::int64_t>(i));
    EXPECT_EQ(events_.records[i].seconds, static_cast<double>(i) / 10);
  }
  EXPECT_EQ(std::ranges::count(sink_.painted, true), 300);
  EXPECT_EQ(events_.updating.front(), 1);  // the first has no update
  EXPECT_THAT(events_.updating, SizeIs(299));
  EXPECT_EQ(events_.records[0].box, events_.box);
  EXPECT_EQ(events_.records[0].score, 1);
  EXPECT_NEAR(events_.records[1].score, 0.9, 1e-6);
  EXPECT_EQ(summary.width, 64);
  EXPECT_EQ(summary.height, 48);
  EXPECT_EQ(summary.lost, 0);
}

// Frames are not allocated one by one, and not copied.
TEST_F(TrackVideoRun, AFewFramesAreUsedAgainAndAgain) {
  FakeSource source(200);
  Go(source);
  EXPECT_LE(source.memory.size(), 8u);
}

TEST_F(TrackVideoRun, WithoutPainterFramesAreWrittenAsTheyAre) {
  FakeSource source(50);
  const TrackSummary summary =
      TrackVideo(Borrowed(source), tracker_, events_, &sink_, nullptr, stop_);
  ExpectComplete(summary, 50);
  EXPECT_EQ(std::ranges::count(sink_.painted, true), 0);
}

TEST_F(TrackVideoRun, WithoutSinkFramesAreTracked) {
  FakeSource source(50);
  const TrackSummary summary =
      TrackVideo(Borrowed(source), tracker_, events_, nullptr, &painter_, stop_);
  EXPECT_EQ(summary.frames, 50);
  EXPECT_THAT(events_.records, SizeIs(50));
  EXPECT_THAT(summary.failures, IsEmpty());
}

TEST_F(TrackVideoRun, OneFrameAndNone) {
  FakeSource one(1), none(0);
  ExpectComplete(Go(one), 1);
  FakeSink untouched;
  stop_ = false;
  const TrackSummary summary =
      TrackVideo(Borrowed(none), tracker_, events_, &untouched, nullptr, stop_);
  EXPECT_EQ(summary.frames, 0);
  EXPECT_FALSE(untouched.closed);
}

// None of these steps can be made unless another stage is at work meanwhile.
TEST_F(TrackVideoRun, StagesOverlap) {
  std::atomic<bool> reads_3 = false, writes_0 = false, tracked_2 = false;
  const auto await = [](const std::atomic<bool>& step) {
    EXPECT_TRUE(WaitFor([&step] { return step.load(); }));
  };
  FakeSource source(10);
  source.before_read = [&](std::int64_t frame) {
    if (frame == 2) await(writes_0);
    if (frame == 3) reads_3 = true;
  };
  events_.before_update = [&](Tracker&) { await(reads_3); };
  events_.tracked = [&](const Frame& frame, TrackRecord&) {
    if (frame.number == 2) tracked_2 = true;
    return Wish::kGoOn;
  };
  sink_.before_write = [&](std::int64_t) {
    writes_0 = true;
    await(tracked_2);
  };
  ExpectComplete(Go(source), 10);
}

TEST_F(TrackVideoRun, TimeToChooseBoxesIsNotOfTheRun) {
  FakeSource source(3);
  double choosing = 0;
  const auto choose = [&choosing] {
    const auto start = Clock::now();
    std::this_thread::sleep_for(50ms);
    choosing += SecondsSince(start);
  };
  events_.start = choose;
  events_.tracked = [](const Frame&, TrackRecord&) { return Wish::kStartAnew; };
  events_.start_anew = [&](const Frame&) {
    choose();
    return std::nullopt;
  };
  const auto start = Clock::now();
  const double seconds = Go(source).seconds;
  EXPECT_GE(choosing, 4 * 0.05);
  EXPECT_LE(seconds, SecondsSince(start) - choosing);
}

TEST_F(TrackVideoRun, EventsMayBeginAnew) {
  FakeSource source(10);
  const Box other = {40, 20, 12, 14};
  events_.tracked = [](const Frame& frame, TrackRecord& record) {
    record.lost = true;
    return frame.number == 4 || frame.number == 6 ? Wish::kStartAnew : Wish::kGoOn;
  };
  events_.start_anew = [&](const Frame& frame) -> std::optional<Box> {
    if (frame.number == 6) return std::nullopt;
    return other;
  };
  events_.before_update = [&](Tracker& tracker) {
    if (events_.updating.back() == 5) {
      EXPECT_EQ(tracker.state().width, 12);
      EXPECT_EQ(tracker.state().height, 14);
    }
  };
  EXPECT_EQ(Go(source).lost, 9);  // as the records are left
  EXPECT_EQ(events_.records[4].box, other);
  EXPECT_EQ(events_.records[4].score, 1);
  EXPECT_FALSE(events_.records[4].lost);
  EXPECT_NE(events_.records[6].box, other);
}

// The camera is away: what the source says of that is shown while it is.
TEST_F(TrackVideoRun, NotesArriveWhileTheSourceWaits) {
  FakeSource source(5);
  std::atomic<int> waits = 0;  // after the first note
  source.before_read = [&](std::int64_t frame) {
    if (frame != 2) return;
    source.Note("opening it again");
    EXPECT_TRUE(WaitFor([&waits] { return waits > 1; }));
    source.Note("it came back");
  };
  events_.waiting = [&] {
    if (!events_.notes.empty()) ++waits;
    return true;
  };
  sink_.before_close = [this] { sink_.Note("frames were scaled"); };
  ExpectComplete(Go(source), 5);
  EXPECT_THAT(events_.notes, ElementsAre("opening it again", "it came back", "frames were scaled"));
}

}  // namespace
}  // namespace tessera
