#include "pipeline/tracking/track_video.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ops/error.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One in each of the four stages, and two for those that take turns in being fast.
constexpr std::size_t kFrames = 6;

// How often a window is looked after, and notes are fetched, while no frame comes.
constexpr std::chrono::milliseconds kLongestWait{30};

struct FrameWork {
  Frame frame;
  TrackRecord record;
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
    return Take([] { return true; });
  }
  // `goes_on` is called now and then while there is nothing to take. Null too if it returns false.
  template <typename GoesOn>
  FrameWork* Take(GoesOn&& goes_on) {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kLongestWait, [this] { return count_ > 0 || closed_; })) {
      lock.unlock();
      if (!goes_on()) return nullptr;
      lock.lock();
    }
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

// Those that can fail, each once, in the order of the messages.
enum Stage : std::size_t { kReading, kTracking, kPainting, kWriting, kClosing, kNumStages };

std::string Reason(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    return "not enough memory";
  } catch (const std::exception& error) {
    return error.what();
  }
}

template <typename F>
std::jthread StartThread(F&& work) {
  try {
    return std::jthread(std::forward<F>(work));
  } catch (const std::system_error&) {
    throw Error("the system has no more threads");
  }
}

class Run {
 public:
  Run(FrameSource& source, Tracker& tracker, TrackEvents& events, FrameSink* sink,
      TrackPainter* painter, std::atomic<bool>& stop)
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
    if (refused_) std::rethrow_exception(failures_[kTracking]);
    if (sink_ != nullptr && !broken_ && summary_.frames > 0) {
      Try(kClosing, [this] { sink_->Close(); });
    }
    PassOn(source_.TakeNotes());
    if (sink_ != nullptr) PassOn(sink_->TakeNotes());
    for (const std::exception_ptr& failure : failures_) {
      if (failure) summary_.failures.push_back(Reason(failure));
    }
    summary_.stopped = stopped_;
    summary_.seconds = SecondsSince(start) - choosing_seconds_;
    return std::move(summary_);
  }

 private:
  // Each stage closes the way to the next one when it ends, however it ends. The threads are joined
  // last, when none can wait any more.
  void RunStages() {
    std::jthread reader, painter, writer;
    Try(kTracking, [&] {
      reader = StartThread([this] {
        Try(kReading, [this] { Read(); });
        read_.Close();
      });
      if (sink_ != nullptr) {
        writer = StartThread([this] {
          if (!Try(kWriting, [this] { Write(); })) Break();
        });
      }
      if (sink_ != nullptr && painter_ != nullptr) {
        painter = StartThread([this] {
          if (!Try(kPainting, [this] { Paint(); })) Break();
          painted_.Close();
        });
      }
      Track();
    });
    if (!painter.joinable()) painted_.Close();
    tracked_.Close();
    EndReading();
  }

  void Read() {
    while (FrameWork* const work = free_.Take()) {
      if (IsStopped() || !ReadFrame(work->frame)) return;
      read_.Put(work);
    }
  }

  bool ReadFrame(Frame& frame) {
    try {
      if (source_.Read(frame)) return true;
    } catch (...) {
      if (!IsStopped()) throw;
    }
    IsStopped();  // that there is no frame may be why
    return false;
  }

  // Keeps in mind whether it was not the end of the run that did it.
  bool IsStopped() {
    if (!stop_) return false;
    if (!ended_) stopped_ = true;
    return true;
  }

  void Track() {
    Lane& next = sink_ != nullptr ? tracked_ : free_;
    while (FrameWork* const work = read_.Take([this] { return LookAround(); })) {
      if (broken_) return;
      PassOn(source_.TakeNotes());
      if (summary_.frames == 0) {
        Begin(*work);
      } else {
        Update(*work);
      }
      const TrackEvents::Wish wish = events_.Tracked(work->frame, tracker_, work->record);
      if (wish == TrackEvents::Wish::kStartAnew) BeginAnew(*work);
      events_.Recorded(work->record);
      ++summary_.frames;
      summary_.lost += work->record.lost ? 1 : 0;
      next.Put(work);
      if (wish == TrackEvents::Wish::kEnd) {
        stopped_ = true;
        return;
      }
    }
  }

  // While no frame comes. False if none is wanted any more.
  bool LookAround() {
    PassOn(source_.TakeNotes());
    if (broken_) return false;
    if (events_.Waiting()) return true;
    stopped_ = true;
    return false;
  }

  // Waits for a user, maybe.
  template <typename F>
  auto Chosen(F&& choose) {
    const Clock::time_point start = Clock::now();
    auto box = choose();
    choosing_seconds_ += SecondsSince(start);
    return box;
  }

  void Begin(FrameWork& work) {
    try {
      work.record = {work.frame.number, work.frame.seconds, {}, 1, false};
      Init(work, Chosen([&] { return events_.Start(work.frame); }));
    } catch (...) {
      refused_ = true;
      throw;
    }
    summary_.width = work.frame.pixels.cols;
    summary_.height = work.frame.pixels.rows;
  }

  void BeginAnew(FrameWork& work) {
    const std::optional<Box> box = Chosen([&] { return events_.StartAnew(work.frame); });
    if (box) Init(work, *box);
  }

  void Init(FrameWork& work, const Box& box) {
    tracker_.Init(work.frame.view(), box);
    summary_.network_seconds += tracker_.network_seconds();
    work.record.box = box;
    work.record.score = 1;
    work.record.lost = false;
  }

  void Update(FrameWork& work) {
    const Frame& frame = work.frame;
    events_.Updating(frame, tracker_);
    const TrackResult result = tracker_.Update(frame.view());
    summary_.network_seconds += tracker_.network_seconds();
    work.record = {frame.number, frame.seconds, result.box, result.score, result.lost};
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

  // False if it fails. The reason is kept as it is: for its text there may be no memory now.
  template <typename F>
  bool Try(Stage stage, F&& work) {
    try {
      work();
      return true;
    } catch (...) {
      failures_[stage] = std::current_exception();
      return false;
    }
  }

  void EndReading() {
    ended_ = true;  // before `stop_`: see IsStopped
    stop_ = true;
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
  std::atomic<bool>& stop_;

  std::array<FrameWork, kFrames> works_;
  Lane free_, read_, tracked_, painted_;  // of works that are so
  std::atomic<bool> ended_ = false;       // nothing more is to be read
  std::atomic<bool> broken_ = false;      // what is written cannot be completed
  std::atomic<bool> stopped_ = false;
  std::array<std::exception_ptr, kNumStages> failures_;
  bool refused_ = false;  // the first frame's box
  double choosing_seconds_ = 0;
  TrackSummary summary_;
};

}  // namespace

TrackSummary TrackVideo(FrameSource& source, Tracker& tracker, TrackEvents& events, FrameSink* sink,
                        TrackPainter* painter, std::atomic<bool>& stop) {
  return Run(source, tracker, events, sink, painter, stop).Go();
}

}  // namespace tessera
