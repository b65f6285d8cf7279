// The ways of frames between the threads of a run.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

#include "pipeline/tracking/track_record.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

// One in each of the four stages, and two for those that take turns in being fast.
inline constexpr std::size_t kFramesInWork = 6;

struct FrameWork {
  Frame frame;
  TrackRecord record;
};

// The way from one stage to the next, in order. It has room for all frames: only taking waits.
class FrameLane {
 public:
  void Put(FrameWork* work) {
    const std::lock_guard lock(mutex_);
    works_[(first_ + count_++) % kFramesInWork] = work;
    changed_.notify_one();
  }
  // Null once the lane is closed and empty.
  FrameWork* Take() {
    return Take([] { return true; });
  }
  // `goes_on` is called many times a second while there is nothing to take. Null too if it returns
  // false.
  template <typename GoesOn>
  FrameWork* Take(GoesOn&& goes_on) {
    constexpr std::chrono::milliseconds kLongestWait{30};
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kLongestWait, [this] { return count_ > 0 || closed_; })) {
      lock.unlock();
      if (!goes_on()) return nullptr;
      lock.lock();
    }
    if (count_ == 0) return nullptr;
    --count_;
    return works_[std::exchange(first_, (first_ + 1) % kFramesInWork)];
  }
  void Close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<FrameWork*, kFramesInWork> works_ = {};
  std::size_t first_ = 0, count_ = 0;
  bool closed_ = false;
};

}  // namespace tessera
