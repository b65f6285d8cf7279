#include "pipeline/tracking/track_video.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/tracking/frame_lane.h"
#include "pipeline/tracking/frame_reader.h"
#include "simd/memory_limit.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Those that can fail, each once, in the order of the messages.
enum Stage : std::size_t { kReading, kTracking, kPainting, kWriting, kClosing, kNumStages };

std::string Reason(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc& error) {
    return MemoryMessage(error);
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
  Run(const std::shared_ptr<FrameSource>& source, Tracker& tracker, TrackEvents& events,
      FrameSink* sink, TrackPainter* painter, std::atomic<bool>& stop)
      : source_(*source),
        reader_(source, stop),
        tracker_(tracker),
        events_(events),
        sink_(sink),
        painter_(painter),
        stop_(stop) {}

  TrackSummary Go() {
    const Clock::time_point start = Clock::now();
    RunStages();
    if (refused_) std::rethrow_exception(failures_[kTracking]);
    if (sink_ != nullptr && !broken_ && summary_.frames > 0) {
      Try(kClosing, [this] { sink_->Close(); });
    }
    // Last: a source that hangs does not keep outputs from being completed.
    reader_.Join();
    failures_[kReading] = reader_.failure();
    PassOn(source_.TakeNotes());
    if (sink_ != nullptr) PassOn(sink_->TakeNotes());
    for (const std::exception_ptr& failure : failures_) {
      if (failure) summary_.failures.push_back(Reason(failure));
    }
    summary_.stopped = ended_early_ || reader_.was_stopped();
    summary_.seconds = SecondsSince(start) - choosing_seconds_;
    return std::move(summary_);
  }

 private:
  // Each stage closes the way to the next one when it ends, however it ends. The threads are joined
  // last, when none can wait any more.
  void RunStages() {
    std::jthread painter, writer;
    Try(kTracking, [&] {
      reader_.Start();
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
    reader_.End();
  }

  void Track() {
    FrameLane& next = sink_ != nullptr ? tracked_ : reader_.free();
    while (FrameWork* const work = reader_.read().Take([this] { return LookAround(); })) {
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
        ended_early_ = true;
        return;
      }
    }
  }

  // While no frame comes. False if none is wanted any more.
  bool LookAround() {
    PassOn(source_.TakeNotes());
    if (broken_) return false;
    if (!events_.Waiting()) {
      ended_early_ = true;
      return false;
    }
    if (!stop_) return true;
    if (!stop_seen_) stop_seen_ = Clock::now();
    if (Clock::now() - *stop_seen_ < FrameReader::kPatience) return true;
    ended_early_ = true;
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
    FrameLane& from = painter_ != nullptr ? painted_ : tracked_;
    while (FrameWork* const work = from.Take()) {
      sink_->Write(work->frame);
      reader_.free().Put(work);
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

  void Break() {
    broken_ = true;
    reader_.End();
  }

  void PassOn(const std::vector<std::string>& notes) {
    for (const std::string& note : notes) events_.Noted(note);
  }

  FrameSource& source_;
  FrameReader reader_;
  Tracker& tracker_;
  TrackEvents& events_;
  FrameSink* const sink_;
  TrackPainter* const painter_;
  std::atomic<bool>& stop_;

  FrameLane tracked_, painted_;
  std::atomic<bool> broken_ = false;  // what is written cannot be completed
  bool ended_early_ = false;          // by the events, or as the source hangs
  std::optional<Clock::time_point> stop_seen_;
  std::array<std::exception_ptr, kNumStages> failures_;
  bool refused_ = false;  // the first frame's box
  double choosing_seconds_ = 0;
  TrackSummary summary_;
};

}  // namespace

TrackSummary TrackVideo(const std::shared_ptr<FrameSource>& source, Tracker& tracker,
                        TrackEvents& events, FrameSink* sink, TrackPainter* painter,
                        std::atomic<bool>& stop) {
  return Run(source, tracker, events, sink, painter, stop).Go();
}

}  // namespace tessera
