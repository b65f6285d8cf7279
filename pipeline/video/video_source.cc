#include "pipeline/video/video_source.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/video/file_parts.h"
#include "pipeline/video/opencv_video.h"
#include "pipeline/video/video_probe.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

class VideoSource : public FrameSource {
 public:
  VideoSource(std::unique_ptr<cv::VideoCapture> capture, VideoInput input,
              const SourceOptions& options)
      : capture_(std::move(capture)),
        input_(std::move(input)),
        options_(options),
        next_(options.start),
        rate_(RateOf(*capture_)),
        announced_(AnnouncedFrames(*capture_)) {
    info_.colors = input_.colors;
    info_.frames_per_second = rate_ / static_cast<double>(options_.every);
    Naming(input_.shown_name, [&] { Require(GrabTo(0) || options_.stopped(), "holds no frames"); });
    if (announced_ <= next_) return;
    const std::int64_t last = std::min(announced_, options_.end.value_or(announced_)) - 1;
    info_.frames = (last - next_) / options_.every + 1;
  }

  bool Read(Frame& frame) override {
    return Naming(input_.shown_name, [&] {
      if (ended_ || (options_.end && next_ >= *options_.end)) return false;
      if (!GrabTo(next_)) {
        Require(!ended_ || next_ > options_.start, "has ", frames(), " frames; frame ", next_,
                " is beyond the last");
        return false;
      }
      if (options_.end && at_ >= *options_.end) return false;
      Require(Retrieve(*capture_, frame.pixels), "frame ", at_, " cannot be decoded");
      frame.number = at_;
      frame.seconds = seconds_;
      frame.name.clear();
      while (next_ <= at_) next_ += options_.every;
      return true;
    });
  }

 private:
  std::int64_t frames() const { return at_ + 1; }  // so far

  // Goes on to a frame, or the first after it that can be decoded. False at the end, or when it was
  // stopped. OpenCV cannot be relied on to find a frame by its number; what is left out is decoded,
  // though not converted.
  bool GrabTo(std::int64_t number) {
    while (!options_.stopped() && at_ < number) {
      const Clock::time_point began = Clock::now();
      const std::optional<int> failures = Grab(*capture_, options_.stop, input_.patience);
      if (!failures && options_.stopped()) return false;
      if (input_.patience && Clock::now() - began >= *input_.patience) silent_ = true;
      if (!failures) {
        ended_ = true;
        RequireWhole();
        return false;
      }
      const double before = seconds_;
      ++at_;
      NoteTime();
      // What was cut out of a longer video may begin with frames that refer to what came before.
      if (at_ == 0) continue;
      // The decoder gives frames some time after their packets: it may be later that one is missing
      // between two frames. Their times tell.
      failures_ += *failures;
      const std::int64_t missing =
          std::clamp<std::int64_t>(std::llround((seconds_ - before) * rate_) - 1, 0, failures_);
      failures_ -= missing;
      at_ += missing;
      lost_ += missing;
    }
    return at_ >= number && !options_.stopped();
  }

  void RequireWhole() {
    const bool fewer = announced_ <= 0 || frames() < announced_;
    Require(!silent_ || !fewer, "nothing comes any more, after ", frames(), " frames");
    const std::string of_all = announced_ > 0 ? StrCat(" of ", announced_) : "";
    const VideoExtent extent =
        fewer && !input_.file.empty() ? ExtentOf(input_.file, options_.stop) : VideoExtent();
    if (options_.stopped()) return;
    Require(!extent.cut_off, "is cut off: it ended after ", frames(), of_all, " frames");
    // OpenCV counts what is there of them.
    Require(!LacksItsEnd(input_.file), "is cut off: it ended after ", frames(), " frames");
    Require(lost_ == 0, "is damaged: ", lost_, " of ", frames(), " frames cannot be decoded");
    Require(!extent.damaged, "is damaged: there were only ", frames(), of_all, " frames");
    // A few of the last frames may be missing: those of a stream that was cut out of a longer one
    // refer to what follows.
    Require(seconds_ > extent.seconds - std::max(0.5, rate_ > 0 ? 5 / rate_ : 0),
            "is damaged: nothing can be decoded after ", frames(), of_all, " frames");
    if (input_.file.empty() && frames() < announced_ - announced_ / 20)
      notes_.Add(StrCat(input_.shown_name, ": ended after ", frames(), " frames, while about ",
                        announced_, " were expected"));
  }

  // Of the frame that has just been grabbed. OpenCV knows no times of the last frames of streams
  // with B frames, and none of raw streams: those are taken to come at the stream's rate.
  void NoteTime() {
    const double position = capture_->get(cv::CAP_PROP_POS_MSEC) / 1000;
    if (at_ == 0) {
      origin_ = position;
    } else if (position - origin_ > seconds_) {
      seconds_ = position - origin_;
    } else if (rate_ > 0) {
      seconds_ += 1 / rate_;
    }
  }

  std::unique_ptr<cv::VideoCapture> capture_;
  VideoInput input_;
  SourceOptions options_;
  std::int64_t next_;
  double rate_;
  std::int64_t announced_;
  std::int64_t at_ = -1;             // number of the last frame
  std::int64_t failures_ = 0;        // to decode, without a gap between frames to show for it
  std::int64_t lost_ = 0;            // frames before it that could not be decoded
  double origin_ = 0, seconds_ = 0;  // OpenCV's time of frame 0; of the last one since then
  bool silent_ = false;  // the server was; frames that were decoded before may still have come
  bool ended_ = false;
};

}  // namespace

std::int64_t AnnouncedFrames(const cv::VideoCapture& capture) {
  const double frames = capture.get(cv::CAP_PROP_FRAME_COUNT);
  // Where the length is unknown, OpenCV gives what its markers happen to become. 2^30, more than a
  // year, is a marker itself: of an AVI that was written to a pipe.
  return frames >= 1 && frames < 0x1p30 ? std::llround(frames) : 0;
}

std::unique_ptr<FrameSource> MakeVideoSource(std::unique_ptr<cv::VideoCapture> capture,
                                             VideoInput input, const SourceOptions& options) {
  return std::make_unique<VideoSource>(std::move(capture), std::move(input), options);
}

}  // namespace tessera
