// Runs of TrackVideo over frames that nobody has to read, for tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <opencv2/core.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/tracking/track_video.h"
#include "tests/pipeline/video/test_frames.h"

namespace tessera {

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

inline Tracker MakeStillTracker(std::function<void()> search = {}) {
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

// For as long as `source` lives.
inline std::shared_ptr<FrameSource> Borrowed(FakeSource& source) {
  return {&source, [](FrameSource*) {}};
}

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
  Wish Tracked(const Frame& frame, const Tracker& /*tracker*/, TrackRecord& record) override {
    EXPECT_EQ(frame.number, record.frame);
    EXPECT_EQ(frame.pixels.at<cv::Vec3b>(0, 0)[0], frame.number % 256);
    return tracked ? tracked(frame, record) : Wish::kGoOn;
  }
  std::optional<Box> StartAnew(const Frame& frame) override {
    return start_anew ? start_anew(frame) : std::nullopt;
  }
  void Recorded(const TrackRecord& record) override { records.push_back(record); }
  bool Waiting() override { return !waiting || waiting(); }
  void Noted(const std::string& note) override { notes.push_back(note); }

  Box box = {20, 15, 16, 16};
  std::function<void()> start;
  std::function<void(Tracker&)> before_update;
  std::function<Wish(const Frame&, TrackRecord&)> tracked;
  std::function<std::optional<Box>(const Frame&)> start_anew;
  std::function<bool()> waiting;
  std::vector<std::int64_t> updating;
  std::vector<TrackRecord> records;
  std::vector<std::string> notes;
};

// False if it does not become true within ten seconds.
inline bool WaitFor(const std::function<bool()>& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class TrackVideoRun : public testing::Test {
 protected:
  TrackSummary Go(FakeSource& source) {
    return TrackVideo(Borrowed(source), tracker_, events_, &sink_, &painter_, stop_);
  }
  // All that was tracked was written, and the output was closed.
  void ExpectComplete(const TrackSummary& summary, std::int64_t frames) {
    EXPECT_EQ(summary.frames, frames);
    EXPECT_EQ(sink_.numbers, Range(0, frames));
    EXPECT_THAT(events_.records, testing::SizeIs(static_cast<std::size_t>(frames)));
    EXPECT_TRUE(sink_.closed);
  }

  Tracker tracker_ = MakeStillTracker();
  FakeEvents events_;
  FakeSink sink_;
  TrackPainter painter_;
  std::atomic<bool> stop_ = false;
};

}  // namespace tessera
