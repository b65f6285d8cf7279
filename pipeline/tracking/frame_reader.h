// A source that is read ahead.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include "pipeline/tracking/frame_lane.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

// Reads frames in a thread of its own, into a few that are used again and again.
class FrameReader {
 public:
  static constexpr std::chrono::seconds kPatience{1};

  // `stop` is SourceOptions::stop of the source.
  FrameReader(std::shared_ptr<FrameSource> source, std::atomic<bool>& stop);
  // Joins if that has not been done.
  ~FrameReader();
  FrameReader(const FrameReader&) = delete;
  FrameReader& operator=(const FrameReader&) = delete;

  // To be called once. Throws Error if the system has no more threads.
  void Start();
  // Frames that were read; closed when there will be no more.
  FrameLane& read();
  // Where they are to be put when they are not needed any more.
  FrameLane& free();

  // No more frames are wanted: sets `stop`.
  void End();
  // Ends, and waits for the thread. If the source hangs for longer than kPatience, the thread is
  // left behind with the source: it uses that and `stop` until the process ends, and nothing else.
  void Join();

  // Whether `stop`, rather than End, was the reason to read no more.
  bool was_stopped() const;
  // Why reading ended, if the source failed before it was told to stop: to be asked after Join.
  std::exception_ptr failure() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
  std::thread thread_;
  std::exception_ptr failure_;
};

}  // namespace tessera
