// How runs over videos end, and what happens when a stage fails.
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "ops/error.h"
#include "tests/pipeline/tracking/track_video_run.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Wish = TrackEvents::Wish;

TEST_F(TrackVideoRun, WhatWasReadBeforeTheSourceFailedIsCompleted) {
  FakeSource source(100);
  source.before_read = [](std::int64_t frame) {
    if (frame == 37) throw Error("video.mp4: ends too soon");
  };
  const TrackSummary summary = Go(source);
  EXPECT_THAT(summary.failures, ElementsAre("video.mp4: ends too soon"));
  ExpectComplete(summary, 37);
}

TEST_F(TrackVideoRun, NothingIsWrittenIfTheFirstFrameCannotBeRead) {
  FakeSource source(100);
  source.before_read = [](std::int64_t) { throw std::bad_alloc(); };
  const TrackSummary summary = Go(source);
  EXPECT_THAT(summary.failures, ElementsAre("not enough memory"));
  EXPECT_EQ(summary.frames, 0);
  EXPECT_FALSE(sink_.closed);
}

TEST_F(TrackVideoRun, WhatWasTrackedBeforeTheTrackerFailedIsCompleted) {
  FakeSource source(1000);
  int searches = 0;
  Tracker broken = MakeStillTracker([&searches] { Require(++searches < 12, "network: broken"); });
  searches = 0;  // a tracker tries its network when it is made
  const TrackSummary summary =
      TrackVideo(Borrowed(source), broken, events_, &sink_, &painter_, stop_);
  EXPECT_THAT(summary.failures, ElementsAre("network: broken"));
  ExpectComplete(summary, 12);
}

TEST_F(TrackVideoRun, EventsThatFailEndTheRun) {
  FakeSource source(1000);
  events_.tracked = [](const Frame& frame, TrackRecord&) {
    Require(frame.number < 5, "boxes.csv: cannot write");
    return Wish::kGoOn;
  };
  const TrackSummary summary = Go(source);
  EXPECT_THAT(summary.failures, ElementsAre("boxes.csv: cannot write"));
  ExpectComplete(summary, 5);
}

TEST_F(TrackVideoRun, ASinkThatFailsEndsTheRunAndIsNotClosed) {
  FakeSource source(1'000'000'000);
  sink_.before_write = [](std::int64_t frame) {
    Require(frame < 10, "out.mp4: No space left on device");
  };
  const TrackSummary summary = Go(source);
  EXPECT_THAT(summary.failures, ElementsAre("out.mp4: No space left on device"));
  EXPECT_EQ(sink_.numbers, Range(0, 10));
  EXPECT_FALSE(sink_.closed);
  EXPECT_GE(summary.frames, 10);
}

TEST_F(TrackVideoRun, AnOutputThatCannotBeCompletedIsAFailure) {
  FakeSource source(10);
  sink_.before_close = [] { throw Error("out.mp4: cannot write"); };
  EXPECT_THAT(Go(source).failures, ElementsAre("out.mp4: cannot write"));
}

TEST_F(TrackVideoRun, ThePainterFailsLikeASink) {
  FakeSource source(1'000'000'000);
  events_.tracked = [](const Frame& frame, TrackRecord&) {
    // Nothing can be drawn into five channels.
    if (frame.number == 5) const_cast<Frame&>(frame).pixels.create(48, 64, CV_8UC(5));
    return Wish::kGoOn;
  };
  const TrackSummary summary = Go(source);
  EXPECT_THAT(summary.failures, SizeIs(1));
  EXPECT_FALSE(sink_.closed);
}

TEST_F(TrackVideoRun, StopEndsTheRunAfterTheFramesInWork) {
  FakeSource source(1'000'000'000);
  events_.tracked = [this](const Frame& frame, TrackRecord&) {
    if (frame.number == 20) stop_ = true;
    return Wish::kGoOn;
  };
  const TrackSummary summary = Go(source);
  EXPECT_TRUE(summary.stopped);
  EXPECT_THAT(summary.failures, IsEmpty());
  EXPECT_GE(summary.frames, 21);
  EXPECT_LE(summary.frames, 30);
  ExpectComplete(summary, summary.frames);
}

TEST_F(TrackVideoRun, EventsMayEndTheRunAtAFrame) {
  FakeSource source(1'000'000'000);
  events_.tracked = [](const Frame& frame, TrackRecord&) {
    return frame.number < 20 ? Wish::kGoOn : Wish::kEnd;
  };
  const TrackSummary summary = Go(source);
  EXPECT_TRUE(summary.stopped);
  ExpectComplete(summary, 21);
}

TEST_F(TrackVideoRun, ABoxThatIsRefusedIsAnErrorOfTheCaller) {
  FakeSource source(1'000'000'000);
  events_.box = {0, 0, 0, 5};
  EXPECT_THROW(Go(source), Error);
  EXPECT_FALSE(sink_.closed);
  events_.start = [] { throw Error("no box was drawn"); };
  FakeSource again(10);
  stop_ = false;
  EXPECT_THROW(Go(again), Error);
}

// The truncated input would hide that the output is missing, and the other way round.
TEST_F(TrackVideoRun, AllThatFailedIsSaid) {
  FakeSource source(5);
  source.before_read = [](std::int64_t frame) { Require(frame < 4, "in.mp4: ends too soon"); };
  sink_.before_close = [] { throw Error("out.mp4: No space left on device"); };
  EXPECT_THAT(Go(source).failures,
              ElementsAre("in.mp4: ends too soon", "out.mp4: No space left on device"));

  FakeSource again(5);
  again.before_read = source.before_read;
  sink_.before_write = [this](std::int64_t) {
    EXPECT_TRUE(WaitFor([this] { return stop_.load(); }));  // nothing more is to be read
    throw std::bad_alloc();
  };
  stop_ = false;
  EXPECT_THAT(Go(again).failures, ElementsAre("in.mp4: ends too soon", "not enough memory"));
}

// A live source may wait for long.
TEST_F(TrackVideoRun, ASourceThatWaitsIsToldToStop) {
  const std::function<void(FakeEvents&)> ends[] = {
      [this](FakeEvents& events) { events.waiting = [this] { return stop_ = true; }; },
      [](FakeEvents& events) { events.waiting = [] { return false; }; },
      [](FakeEvents& events) {
        events.tracked = [](const Frame&, TrackRecord&) { return Wish::kEnd; };
      }};
  for (const bool fails : {false, true}) {
    for (const auto& end : ends) {
      stop_ = false;
      FakeSource source(1000);
      source.before_read = [&](std::int64_t frame) {
        if (frame == 0) return;
        EXPECT_TRUE(WaitFor([this] { return stop_.load(); }));
        Require(!fails, "rtsp://camera: no frame comes any more");
      };
      FakeEvents events;
      end(events);
      FakeSink sink;
      const TrackSummary summary =
          TrackVideo(Borrowed(source), tracker_, events, &sink, &painter_, stop_);
      EXPECT_TRUE(summary.stopped);
      EXPECT_THAT(summary.failures, IsEmpty());
      EXPECT_GE(summary.frames, 1);
      EXPECT_THAT(sink.numbers, SizeIs(static_cast<std::size_t>(summary.frames)));
      EXPECT_TRUE(sink.closed);
    }
  }
}

// As a server that is silent, where the library that reads cannot be told to stop.
TEST_F(TrackVideoRun, ASourceThatHangsIsLeftBehind) {
  auto source = std::make_shared<FakeSource>(1000);
  std::atomic<bool> goes_on = false;
  source->before_read = [&](std::int64_t frame) {
    if (frame != 3) return;
    stop_ = true;
    EXPECT_TRUE(WaitFor([&goes_on] { return goes_on.load(); }));
  };
  const TrackSummary summary = TrackVideo(source, tracker_, events_, &sink_, &painter_, stop_);
  EXPECT_FALSE(goes_on);
  EXPECT_TRUE(summary.stopped);
  EXPECT_THAT(summary.failures, IsEmpty());
  ExpectComplete(summary, 3);
  // Its thread has the source until it returns.
  const std::weak_ptr<FakeSource> left = std::exchange(source, nullptr);
  EXPECT_FALSE(left.expired());
  goes_on = true;
  EXPECT_TRUE(WaitFor([&left] { return left.expired(); }));
}

TEST_F(TrackVideoRun, ASinkThatFailsWhileTheSourceWaitsEndsTheRun) {
  FakeSource source(1000);
  source.before_read = [this](std::int64_t frame) {
    if (frame != 1) return;
    EXPECT_TRUE(WaitFor([this] { return stop_.load(); }));
    throw Error("rtsp://camera: no frame comes any more");
  };
  sink_.before_write = [](std::int64_t) { throw Error("out.mp4: No space left on device"); };
  const TrackSummary summary = Go(source);
  EXPECT_FALSE(summary.stopped);
  EXPECT_THAT(summary.failures, ElementsAre("out.mp4: No space left on device"));
}

// Stages that are slow by turns, and runs that end everywhere: none hangs.
TEST_F(TrackVideoRun, NoWayToEndLeavesAStageWaiting) {
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    FakeSource source(40);
    FakeSink sink;
    FakeEvents events;
    std::atomic<bool> stop = false;
    const auto pause = [](std::int64_t frame, int salt) {
      if ((frame * 7 + salt) % 5 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    };
    const std::int64_t end = 1 + i % 13;
    source.before_read = [&, i](std::int64_t frame) {
      pause(frame, i);
      Require(i % 4 != 0 || frame < end, "source");
    };
    sink.before_write = [&, i](std::int64_t frame) {
      pause(frame, 2 * i);
      Require(i % 4 != 1 || frame < end, "sink");
    };
    events.tracked = [&, i](const Frame& frame, TrackRecord&) {
      pause(frame.number, 3 * i);
      if (i % 4 == 2 && frame.number == end) stop = true;
      return i % 4 == 3 && frame.number == end ? Wish::kEnd : Wish::kGoOn;
    };
    TrackPainter painter;
    const TrackSummary summary =
        TrackVideo(Borrowed(source), tracker_, events, &sink, i % 8 < 4 ? &painter : nullptr, stop);
    const std::vector<std::string> failures[] = {{"source"}, {"sink"}, {}, {}};
    EXPECT_EQ(summary.failures, failures[i % 4]);
    EXPECT_EQ(sink.closed, i % 4 != 1);
  }
}

}  // namespace
}  // namespace tessera
