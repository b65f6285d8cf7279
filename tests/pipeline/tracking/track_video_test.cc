// Runs over videos: what reaches whom, in which order, and what happens when a stage fails.
#include "pipeline/tracking/track_video.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <opencv2/core.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/error.h"

namespace tessera {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::SizeIs;

// Finds the target where it was, with a score that the test sets.
class StillNetwork final : public SiameseNetwork {
 public:
  static constexpr std::int64_t kSide = 3;

  explicit StillNetwork(std::function<void()> search) : search_(std::move(search)) {}

  std::int64_t map_side() const override { return kSide; }
  void SetTemplate(const TensorView& /*patch*/, Parallel& /*parallel*/) override {}
  Maps Search(const TensorView& /*patch*/, Parallel& /*parallel*/) override {
    if (search_) search_();
    return {.classes = classes_.data(), .boxes = boxes_.data()};
  }

 private:
  std::function<void()> search_;
  std::vector<float> classes_ = std::vector<float>(kSide * kSide, 0.9f);
  std::vector<float> boxes_ = std::vector<float>(4 * kSide * kSide, 8.f);
};

Tracker MakeTracker(std::function<void()> search = {}) {
  TrackerConfig config;
  config.template_size = 32;
  config.search_size = 64;
  config.score = ScoreKind::kProbability;
  return Tracker(std::make_unique<StillNetwork>(std::move(search)), config);
}

// Frames whose pixels are all equal to their number.
class FakeSource final : public FrameSource {
 public:
  explicit FakeSource(std::int64_t frames) : frames_(frames) {}

  bool Read(Frame& frame) override {
    if (before_read) before_read(next_);
    if (next_ == frames_) return false;
    frame.pixels.create(48, 64, CV_8UC3);
    frame.pixels.setTo(cv::Scalar::all(static_cast<double>(next_ % 256)));
    memory.insert(frame.pixels.data);
    frame.number = next_++;
    frame.seconds = static_cast<double>(frame.number) / 10;
    return true;
  }
  void Note(std::string note) { notes_.Add(std::move(note)); }

  std::function<void(std::int64_t)> before_read;
  std::set<const unsigned char*> memory;  // of the frames

 private:
  const std::int64_t frames_;
  std::int64_t next_ = 0;
};

class FakeSink final : public FrameSink {
 public:
  void Write(const Frame& frame) override {
    if (before_write) before_write(frame.number);
    EXPECT_FALSE(closed);
    numbers.push_back(frame.number);
    levels.push_back(frame.pixels.at<cv::Vec3b>(0, 0)[0]);
    painted.push_back(cv::countNonZero(frame.pixels.reshape(1) != levels.back()) > 0);
  }
  void Close() override {
    if (before_close) before_close();
    closed = true;
  }
  void Note(std::string note) { notes_.Add(std::move(note)); }

  std::function<void(std::int64_t)> before_write;
  std::function<void()> before_close;
  std::vector<std::int64_t> numbers;
  std::vector<int> levels;
  std::vector<bool> painted;
  bool closed = false;
};

class FakeEvents final : public TrackEvents {
 public:
  Box Start(const Frame& first) override {
    if (start) start();
    EXPECT_EQ(first.number, 0);
    return box;
  }
  void Updating(const Frame& frame, Tracker& tracker) override {
    updating.push_back(frame.number);
    if (before_update) before_update(tracker);
  }
  bool Tracked(const Frame& frame, Tracker& tracker, TrackRecord& record) override {
    EXPECT_EQ(frame.number, record.frame);
    EXPECT_EQ(frame.pixels.at<cv::Vec3b>(0, 0)[0], frame.number % 256);
    const bool goes_on = !tracked || tracked(frame, tracker, record);
    records.push_back(record);
    return goes_on;
  }
  void Noted(const std::string& note) override { notes.push_back(note); }

  Box box = {20, 15, 16, 16};
  std::function<void()> start;
  std::function<void(Tracker&)> before_update;
  std::function<bool(const Frame&, Tracker&, TrackRecord&)> tracked;
  std::vector<std::int64_t> updating;
  std::vector<TrackRecord> records;
  std::vector<std::string> notes;
};

std::vector<std::int64_t> FirstNumbers(std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

class TrackVideoTest : public testing::Test {
 protected:
  TrackSummary Go(FakeSource& source) {
    return TrackVideo(source, tracker_, events_, &sink_, &painter_, stop_);
  }
  // All that was tracked was written, and the output was closed.
  void ExpectComplete(const TrackSummary& summary, std::int64_t frames) {
    EXPECT_EQ(summary.frames, frames);
    EXPECT_EQ(sink_.numbers, FirstNumbers(frames));
    EXPECT_THAT(events_.records, SizeIs(static_cast<std::size_t>(frames)));
    EXPECT_TRUE(sink_.closed);
  }

  Tracker tracker_ = MakeTracker();
  FakeEvents events_;
  FakeSink sink_;
  TrackPainter painter_;
  std::atomic<bool> stop_ = false;
};

TEST_F(TrackVideoTest, EveryFrameIsTrackedPaintedAndWrittenInOrder) {
  FakeSource source(300);
  const TrackSummary summary = Go(source);
  EXPECT_EQ(summary.failure, "");
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
TEST_F(TrackVideoTest, AFewFramesAreUsedAgainAndAgain) {
  FakeSource source(200);
  Go(source);
  EXPECT_LE(source.memory.size(), 8u);
}

TEST_F(TrackVideoTest, WithoutPainterFramesAreWrittenAsTheyAre) {
  FakeSource source(50);
  const TrackSummary summary = TrackVideo(source, tracker_, events_, &sink_, nullptr, stop_);
  ExpectComplete(summary, 50);
  EXPECT_EQ(std::ranges::count(sink_.painted, true), 0);
}

TEST_F(TrackVideoTest, WithoutSinkFramesAreTracked) {
  FakeSource source(50);
  const TrackSummary summary = TrackVideo(source, tracker_, events_, nullptr, &painter_, stop_);
  EXPECT_EQ(summary.frames, 50);
  EXPECT_THAT(events_.records, SizeIs(50));
  EXPECT_EQ(summary.failure, "");
}

TEST_F(TrackVideoTest, OneFrameAndNone) {
  FakeSource one(1), none(0);
  ExpectComplete(Go(one), 1);
  FakeSink untouched;
  const TrackSummary summary = TrackVideo(none, tracker_, events_, &untouched, nullptr, stop_);
  EXPECT_EQ(summary.frames, 0);
  EXPECT_FALSE(untouched.closed);
}

// The time of a run is that of its slowest stage, not of all of them.
TEST_F(TrackVideoTest, StagesOverlap) {
  constexpr int kRuns = 15;
  constexpr milliseconds kEach(20);
  FakeSource source(kRuns);
  source.before_read = [&](std::int64_t) { std::this_thread::sleep_for(kEach); };
  sink_.before_write = [&](std::int64_t) { std::this_thread::sleep_for(kEach); };
  Tracker slow = MakeTracker([&] { std::this_thread::sleep_for(kEach); });
  const TrackSummary summary = TrackVideo(source, slow, events_, &sink_, nullptr, stop_);
  ExpectComplete(summary, kRuns);
  const double each = std::chrono::duration<double>(kEach).count();
  EXPECT_GE(summary.seconds, kRuns * each);
  EXPECT_LT(summary.seconds, 2.5 * kRuns * each);
  EXPECT_GE(summary.network_seconds, (kRuns - 1) * each);
}

TEST_F(TrackVideoTest, TimeToChooseTheBoxIsNotOfTheRun) {
  FakeSource source(3);
  events_.start = [] { std::this_thread::sleep_for(milliseconds(500)); };
  EXPECT_LT(Go(source).seconds, 0.5);
}

TEST_F(TrackVideoTest, WhatWasReadBeforeTheSourceFailedIsCompleted) {
  FakeSource source(100);
  source.before_read = [](std::int64_t frame) {
    if (frame == 37) throw Error("video.mp4: ends too soon");
  };
  const TrackSummary summary = Go(source);
  EXPECT_EQ(summary.failure, "video.mp4: ends too soon");
  ExpectComplete(summary, 37);
}

TEST_F(TrackVideoTest, NothingIsWrittenIfTheFirstFrameCannotBeRead) {
  FakeSource source(100);
  source.before_read = [](std::int64_t) { throw std::bad_alloc(); };
  const TrackSummary summary = Go(source);
  EXPECT_EQ(summary.failure, "not enough memory");
  EXPECT_EQ(summary.frames, 0);
  EXPECT_FALSE(sink_.closed);
}

TEST_F(TrackVideoTest, WhatWasTrackedBeforeTheTrackerFailedIsCompleted) {
  FakeSource source(1000);
  int searches = 0;
  Tracker broken = MakeTracker([&searches] { Require(++searches < 12, "network: broken"); });
  searches = 0;  // a tracker tries its network when it is made
  const TrackSummary summary = TrackVideo(source, broken, events_, &sink_, &painter_, stop_);
  EXPECT_EQ(summary.failure, "network: broken");
  ExpectComplete(summary, 12);
}

TEST_F(TrackVideoTest, EventsThatFailEndTheRun) {
  FakeSource source(1000);
  events_.tracked = [](const Frame& frame, Tracker&, TrackRecord&) -> bool {
    Require(frame.number < 5, "boxes.csv: cannot write");
    return true;
  };
  const TrackSummary summary = Go(source);
  EXPECT_EQ(summary.failure, "boxes.csv: cannot write");
  ExpectComplete(summary, 5);
}

TEST_F(TrackVideoTest, ASinkThatFailsEndsTheRunAndIsNotClosed) {
  FakeSource source(1'000'000'000);
  sink_.before_write = [](std::int64_t frame) {
    Require(frame < 10, "out.mp4: No space left on device");
  };
  const TrackSummary summary = Go(source);
  EXPECT_EQ(summary.failure, "out.mp4: No space left on device");
  EXPECT_EQ(sink_.numbers, FirstNumbers(10));
  EXPECT_FALSE(sink_.closed);
  EXPECT_GE(summary.frames, 10);
}

TEST_F(TrackVideoTest, AnOutputThatCannotBeCompletedIsAFailure) {
  FakeSource source(10);
  sink_.before_close = [] { throw Error("out.mp4: cannot write"); };
  EXPECT_EQ(Go(source).failure, "out.mp4: cannot write");
}

TEST_F(TrackVideoTest, ThePainterFailsLikeASink) {
  FakeSource source(1'000'000'000);
  events_.tracked = [](const Frame& frame, Tracker&, TrackRecord&) {
    // Nothing can be drawn into five channels.
    if (frame.number == 5) const_cast<Frame&>(frame).pixels.create(48, 64, CV_8UC(5));
    return true;
  };
  const TrackSummary summary = Go(source);
  EXPECT_NE(summary.failure, "");
  EXPECT_FALSE(sink_.closed);
}

TEST_F(TrackVideoTest, StopEndsTheRunAfterTheFramesInWork) {
  FakeSource source(1'000'000'000);
  events_.tracked = [this](const Frame& frame, Tracker&, TrackRecord&) {
    if (frame.number == 20) stop_ = true;
    return true;
  };
  const TrackSummary summary = Go(source);
  EXPECT_TRUE(summary.stopped);
  EXPECT_EQ(summary.failure, "");
  EXPECT_GE(summary.frames, 21);
  EXPECT_LE(summary.frames, 30);
  ExpectComplete(summary, summary.frames);
}

TEST_F(TrackVideoTest, EventsMayEndTheRunAtAFrame) {
  FakeSource source(1'000'000'000);
  events_.tracked = [](const Frame& frame, Tracker&, TrackRecord&) { return frame.number < 20; };
  const TrackSummary summary = Go(source);
  EXPECT_TRUE(summary.stopped);
  ExpectComplete(summary, 21);
}

TEST_F(TrackVideoTest, EventsMayBeginAnew) {
  FakeSource source(10);
  const Box other = {40, 20, 12, 14};
  events_.tracked = [&](const Frame& frame, Tracker& tracker, TrackRecord& record) {
    if (frame.number == 4) {
      tracker.Init(frame.view(), other);
      record.box = other;
      record.lost = true;  // counted as it is left
    }
    return true;
  };
  events_.before_update = [&](Tracker& tracker) {
    if (events_.updating.back() == 5) {
      EXPECT_EQ(tracker.state().width, 12);
      EXPECT_EQ(tracker.state().height, 14);
    }
  };
  EXPECT_EQ(Go(source).lost, 1);
  EXPECT_EQ(events_.records[4].box, other);
}

TEST_F(TrackVideoTest, ABoxThatIsRefusedIsAnErrorOfTheCaller) {
  FakeSource source(1'000'000'000);
  events_.box = {0, 0, 0, 5};
  EXPECT_THROW(Go(source), Error);
  EXPECT_FALSE(sink_.closed);
  events_.start = [] { throw Error("no box was drawn"); };
  FakeSource again(10);
  EXPECT_THROW(Go(again), Error);
}

TEST_F(TrackVideoTest, NotesArriveInTheirPlaces) {
  FakeSource source(5);
  source.before_read = [&](std::int64_t frame) {
    if (frame == 2) source.Note("camera came back");
    if (frame == 5) source.Note("the end is near");
  };
  sink_.before_close = [this] { sink_.Note("frames were scaled"); };
  events_.tracked = [&](const Frame& frame, Tracker&, TrackRecord&) {
    EXPECT_THAT(events_.notes, SizeIs(frame.number < 2 ? 0 : 1));
    return true;
  };
  Go(source);
  EXPECT_THAT(events_.notes,
              ElementsAre("camera came back", "the end is near", "frames were scaled"));
}

// Stages that are slow by turns, and runs that end everywhere: none hangs.
TEST_F(TrackVideoTest, NoWayToEndLeavesAStageWaiting) {
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
    events.tracked = [&, i](const Frame& frame, Tracker&, TrackRecord&) {
      pause(frame.number, 3 * i);
      if (i % 4 == 2 && frame.number == end) stop = true;
      return i % 4 != 3 || frame.number < end;
    };
    TrackPainter painter;
    const TrackSummary summary =
        TrackVideo(source, tracker_, events, &sink, i % 8 < 4 ? &painter : nullptr, stop);
    EXPECT_EQ(summary.failure, i % 4 == 0 ? "source" : i % 4 == 1 ? "sink" : "");
    EXPECT_EQ(sink.closed, i % 4 != 1);
  }
}

}  // namespace
}  // namespace tessera
