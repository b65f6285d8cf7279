#include "pipeline/tracking/frame_reader.h"

#include <array>
#include <future>
#include <system_error>
#include <utility>

#include "ops/error.h"

namespace tessera {

// Of the thread too, which may outlive the reader.
struct FrameReader::State {
  State(std::shared_ptr<FrameSource> the_source, std::atomic<bool>& the_stop)
      : source(std::move(the_source)), stop(the_stop) {
    for (FrameWork& work : works) free.Put(&work);
  }

  // Keeps in mind whether it was not End that did it.
  bool IsStopped() {
    if (!stop) return false;
    if (!ended) stopped = true;
    return true;
  }

  bool ReadFrame(Frame& frame) {
    try {
      if (source->Read(frame)) return true;
    } catch (...) {
      if (!IsStopped()) throw;
    }
    IsStopped();  // that there is no frame may be why
    return false;
  }

  void ReadAll() {
    try {
      while (FrameWork* const work = free.Take()) {
        if (IsStopped() || !ReadFrame(work->frame)) break;
        read.Put(work);
      }
    } catch (...) {
      failure = std::current_exception();
    }
    read.Close();
    done.set_value();
  }

  const std::shared_ptr<FrameSource> source;
  std::atomic<bool>& stop;
  std::array<FrameWork, kFramesInWork> works;
  FrameLane free, read;
  std::atomic<bool> ended = false, stopped = false;
  std::exception_ptr failure;
  std::promise<void> done;
};

FrameReader::FrameReader(std::shared_ptr<FrameSource> source, std::atomic<bool>& stop)
    : state_(std::make_shared<State>(std::move(source), stop)) {}

FrameReader::~FrameReader() { Join(); }

void FrameReader::Start() {
  try {
    thread_ = std::thread([state = state_] { state->ReadAll(); });
  } catch (const std::system_error&) {
    throw Error("the system has no more threads");
  }
}

FrameLane& FrameReader::read() { return state_->read; }

FrameLane& FrameReader::free() { return state_->free; }

void FrameReader::End() {
  state_->ended = true;  // before `stop`: see IsStopped
  state_->stop = true;
  state_->free.Close();
}

void FrameReader::Join() {
  End();
  if (!thread_.joinable()) return;
  if (state_->done.get_future().wait_for(kPatience) == std::future_status::ready) {
    thread_.join();
    failure_ = state_->failure;
  } else {
    thread_.detach();
  }
}

bool FrameReader::was_stopped() const { return state_->stopped; }

std::exception_ptr FrameReader::failure() const { return failure_; }

}  // namespace tessera
