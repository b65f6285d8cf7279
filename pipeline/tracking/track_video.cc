#include "pipeline/tracking/track_video.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One in each of the four stages, and two for those that take turns in being fast.
constexpr std::size_t kFrames = 6;

struct FrameWork {
  Frame frame;
  TrackRecord record;
  std::vector<std::string> notes;  // of the source, from before this frame
};

// The way from one stage to the next, in order. It has room for all frames: only taking waits.
class Lane {
 public:
  void Put(FrameWork* work) {
    const std::lock_guard lock(mutex_);
    works_[(first_ + count_++) % kFrames] = work;
    changed_.notify_one();
  }
  // Null once the lane is closed and empty.
  FrameWork* Take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ > 0 || closed_; });
    if (count_ == 0) return nullptr;
    --count_;
    return works_[std::exchange(first_, (first_ + 1) % kFrames)];
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<FrameWork*, kFrames> works_ = {};
  std::size_t first_ = 0, count_ = 0;
  bool closed_ = false;
};

class Run {
 public:
  Run(FrameSource& source, Tracker& tracker, TrackEvents& events, FrameSink* sink,
      TrackPainter* painter, const std::atomic<bool>& stop)
      : source_(source),
        tracker_(tracker),
        events_(events),
        sink_(sink),
        painter_(painter),
        stop_(stop) {
    for (FrameWork& work : works_) free_.Put(&work);
  }

  TrackSummary Go() {
    const Clock::time_point start = Clock::now();
    RunStages();
    if (refused_) std::rethrow_exception(refused_);
    if (sink_ != nullptr && !broken_ && summary_.frames > 0) Try([this] { sink_->Close(); });
    PassOn(source_.TakeNotes());
    if (sink_ != nullptr) PassOn(sink_->TakeNotes());
    summary_.stopped = stopped_;
    summary_.seconds = SecondsSince(start) - start_seconds_;
    return std::move(summary_);
  }

 private:
  // Each stage closes the way to the next one when it ends, however it ends.
  void RunStages() {
    std::vector<std::jthread> threads;
    try {
      threads.emplace_back([this] {
        Try([this] { Read(); });
        read_.Close();
      });
      if (sink_ != nullptr) {
        threads.emplace_back([this] {
          if (!Try([this] { Write(); })) Break();
        });
      }
      if (sink_ != nullptr && painter_ != nullptr) {
        threads.emplace_back([this] {
          if (!Try([this] { Paint(); })) Break();
          painted_.Close();
        });
      }
      Try([this] { Track(); });
    } catch (const std::system_error&) {
      Fail("the system has no more threads");
      Break();
      painted_.Close();  // whose thread may be missing
    }
    tracked_.Close();
    EndReading();
  }

  void Read() {
    while (true) {
      FrameWork* const work = free_.Take();
      if (work == nullptr || ended_) return;
      if (stop_) {
        stopped_ = true;
        return;
      }
      if (!source_.Read(work->frame)) return;
      work->notes = source_.TakeNotes();
      read_.Put(work);
    }
  }

  void Track() {
    Lane& next = sink_ != nullptr ? tracked_ : free_;
    bool goes_on = true;
    while (goes_on) {
      FrameWork* const work = read_.Take();
      if (work == nullptr || broken_) return;
      PassOn(work->notes);
      const Frame& frame = work->frame;
      if (summary_.frames == 0) {
        work->record = Begin(frame);
      } else {
        events_.Updating(frame, tracker_);
        const TrackResult result = tracker_.Update(frame.view());
        work->record = {frame.number, frame.seconds, result.box, result.score, result.lost};
      }
      summary_.network_seconds += tracker_.network_seconds();
      goes_on = events_.Tracked(frame, tracker_, work->record);
      ++summary_.frames;
      summary_.lost += work->record.lost ? 1 : 0;
      next.Put(work);
    }
    stopped_ = true;
  }

  TrackRecord Begin(const Frame& frame) {
    try {
      const Clock::time_point start = Clock::now();
      const Box box = events_.Start(frame);
      start_seconds_ = SecondsSince(start);
      tracker_.Init(frame.view(), box);
      summary_.width = frame.pixels.cols;
      summary_.height = frame.pixels.rows;
      return {frame.number, frame.seconds, box, 1, false};
    } catch (...) {
      refused_ = std::current_exception();
      throw;
    }
  }

  void Paint() {
    while (FrameWork* const work = tracked_.Take()) {
      painter_->Paint(work->record, work->frame.pixels);
      painted_.Put(work);
    }
  }

  void Write() {
    Lane& from = painter_ != nullptr ? painted_ : tracked_;
    while (FrameWork* const work = from.Take()) {
      sink_->Write(work->frame);
      free_.Put(work);
    }
  }

  template <typename F>
  bool Try(F&& work) {
    try {
      work();
      return true;
    } catch (const std::bad_alloc&) {
      Fail("not enough memory");
    } catch (const std::exception& error) {
      Fail(error.what());
    }
    return false;
  }

  // The first reason is the one.
  void Fail(const char* reason) {
    const std::lock_guard lock(failure_mutex_);
    if (summary_.failure.empty()) summary_.failure = reason;
  }

  void EndReading() {
    ended_ = true;
    free_.Close();
  }

  void Break() {
    broken_ = true;
    EndReading();
  }

  void PassOn(const std::vector<std::string>& notes) {
    for (const std::string& note : notes) events_.Noted(note);
  }

  FrameSource& source_;
  Tracker& tracker_;
  TrackEvents& events_;
  FrameSink* const sink_;
  TrackPainter* const painter_;
  const std::atomic<bool>& stop_;

  std::array<FrameWork, kFrames> works_;
  Lane free_, read_, tracked_, painted_;  // of works that are so
  std::atomic<bool> ended_ = false;       // nothing more is to be read
  std::atomic<bool> broken_ = false;      // what is written cannot be completed
  std::atomic<bool> stopped_ = false;
  std::exception_ptr refused_;  // why the first frame's box was
  double start_seconds_ = 0;
  std::mutex failure_mutex_;
  TrackSummary summary_;  // but for the failure, of the thread that tracks
};

}  // namespace

TrackSummary TrackVideo(FrameSource& source, Tracker& tracker, TrackEvents& events, FrameSink* sink,
                        TrackPainter* painter, const std::atomic<bool>& stop) {
  return Run(source, tracker, events, sink, painter, stop).Go();
}

}  // namespace tessera
