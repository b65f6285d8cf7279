#include "pipeline/video/live_source.h"

#include <algorithm>
#include <utility>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/video/opencv_video.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kFirstWait{250}, kLongestWait{4000};
constexpr milliseconds kPatience{2000};  // with what cannot be decoded

class LiveSource : public FrameSource {
 public:
  LiveSource(std::unique_ptr<cv::VideoCapture> capture, LiveInput input,
             const SourceOptions& options)
      : input_(std::move(input)),
        options_(options),
        capture_(std::move(capture)),
        next_(options.start) {
    Require(capture_ != nullptr, input_.shown_name, ": cannot be opened");
    info_.live = true;
    info_.frames_per_second = RateOf(*capture_) / static_cast<double>(options_.every);
  }

  bool Read(Frame& frame) override {
    if (options_.end && next_ >= *options_.end) return false;
    while (!TakeNext(frame)) {
      if (options_.stopped()) return false;
      OpenAgain();
    }
    failures_ = 0;
    frame.number = next_;
    frame.seconds = std::chrono::duration<double>(grabbed_at_ - began_).count();
    frame.name.clear();
    next_ += options_.every;
    return true;
  }

 private:
  // Goes on to the frame `next_`. False if none comes.
  bool TakeNext(Frame& frame) {
    return Naming(input_.shown_name, [&] {
      for (; grabbed_ <= next_; ++grabbed_) {
        if (capture_ == nullptr || !Grab(*capture_, options_.stop, kPatience)) return false;
        grabbed_at_ = Clock::now();
        if (grabbed_ == 0) began_ = grabbed_at_;
      }
      if (Retrieve(*capture_, frame.pixels)) return true;
      --grabbed_;  // the next one that comes has its number
      return false;
    });
  }

  void OpenAgain() {
    if (failures_ >= options_.reconnect) {
      const std::string attempts = StrCat("; opened again ", failures_, " times in vain");
      throw Error(
          StrCat(input_.shown_name, ": no frame comes any more", failures_ > 0 ? attempts : ""));
    }
    const milliseconds wait = std::min(kLongestWait, kFirstWait * (1 << std::min(failures_, 10)));
    ++failures_;
    notes_.Add(StrCat(input_.shown_name, ": no frame comes; opening it again (", failures_, " of ",
                      options_.reconnect, ")"));
    capture_.reset();  // a camera cannot be opened twice at a time
    input_.wait(wait);
    if (!options_.stopped()) capture_ = input_.open();
  }

  LiveInput input_;
  SourceOptions options_;
  std::unique_ptr<cv::VideoCapture> capture_;
  std::int64_t next_;
  std::int64_t grabbed_ = 0;  // frames so far
  int failures_ = 0;          // since the last frame
  Clock::time_point began_, grabbed_at_;
};

}  // namespace

std::unique_ptr<FrameSource> MakeLiveSource(std::unique_ptr<cv::VideoCapture> capture,
                                            LiveInput input, const SourceOptions& options) {
  return std::make_unique<LiveSource>(std::move(capture), std::move(input), options);
}

}  // namespace tessera
