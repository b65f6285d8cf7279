// track: follows an object in a video.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <opencv2/core/utility.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/interrupt.h"
#include "apps/message.h"
#include "apps/program.h"
#include "apps/track_arguments.h"
#include "apps/track_outputs.h"
#include "apps/track_progress.h"
#include "apps/track_window.h"
#include "engine/session.h"
#include "engine/thread_team.h"
#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/format_text.h"
#include "pipeline/quantization/int8_tracker.h"
#include "pipeline/tracking/ground_truth.h"
#include "pipeline/tracking/track_metrics.h"
#include "pipeline/tracking/track_steps.h"
#include "pipeline/tracking/track_video.h"
#include "pipeline/tracking/tracker.h"
#include "pipeline/video/frame_sink.h"
#include "pipeline/video/frame_source.h"
#include "simd/memory_limit.h"

namespace {

using namespace tessera;

std::atomic<bool> the_interrupt = false;  // by a signal
std::atomic<bool> the_stop = false;       // of reading, by a signal or as the run is over
std::atomic<bool> the_run_began = false;  // before that there is nothing to be completed

// Connects a run with what is written, shown and said of it.
class Events final : public TrackEvents {
 public:
  // `picture_rate`: frames a second, where they do not tell their time.
  // `int8`, if not null, makes another tracker when it is known where the target is.
  Events(const TrackArguments& arguments, const GroundTruth& truth,
         std::optional<double> picture_rate, Tracker& tracker, Int8Tracker* int8,
         TrackOutputs& outputs, TrackProgress& progress, TrackWindow* window)
      : arguments_(arguments),
        truth_(truth),
        tracker_(tracker),
        int8_(int8),
        picture_rate_(picture_rate),
        outputs_(outputs),
        progress_(progress),
        window_(window) {}

  Box Start(const Frame& first) override {
    outputs_.Started(first);
    const Box box = FirstBox(first);
    if (int8_ != nullptr) {
      int8_->Quantize(arguments_.input, first, box,
                      [this](const std::string& note) { progress_.Noted(note); });
      tracker_ = int8_->Make();
    }
    return box;
  }

  void Updating(const Frame& frame, Tracker& tracker) override {
    outputs_.Updating(frame, tracker);
  }

  Wish Tracked(const Frame& frame, const Tracker& tracker, TrackRecord& record) override {
    outputs_.Updated(frame, tracker);
    if (picture_rate_) record.seconds = static_cast<double>(frame.number) / *picture_rate_;
    return window_ == nullptr ? Wish::kGoOn : window_->Show(frame, record);
  }

  std::optional<Box> StartAnew(const Frame& frame) override { return window_->Select(frame); }

  void Recorded(const TrackRecord& record) override {
    outputs_.Recorded(record);
    progress_.Tracked(record);
  }

  bool Waiting() override { return window_ == nullptr || window_->Wait(); }

  void Noted(const std::string& note) override { progress_.Noted(note); }

 private:
  Box FirstBox(const Frame& first) {
    if (arguments_.box) return *arguments_.box;
    if (const auto known = truth_.find(first.number); known != truth_.end()) return known->second;
    Require(window_ != nullptr, DisplayName(arguments_.ground_truth), ": has no box for frame ",
            first.number, ", the first one; --init x,y,w,h gives it");
    const std::optional<Box> drawn = StartAnew(first);
    Require(drawn.has_value(), "no box was drawn");
    return *drawn;
  }

  const TrackArguments& arguments_;
  const GroundTruth& truth_;
  Tracker& tracker_;
  Int8Tracker* const int8_;
  const std::optional<double> picture_rate_;
  TrackOutputs& outputs_;
  TrackProgress& progress_;
  TrackWindow* const window_;
};

void RequireEffects(const TrackArguments& arguments, const SourceInfo& info) {
  const SourceOptions& source = arguments.source;
  const std::string name = ShownInput(arguments.input);
  Require(info.live || source.reconnect == 0, "--reconnect: ", name, " is no camera or stream");
  Require(info.pictures || !arguments.picture_rate, "--fps: ", name, " has a rate of its own");
  Require(!info.live || !arguments.start_given, "--start: ", name,
          " is a camera or stream, which has no beginning");
}

// Results, unless they would come between those on standard output.
void ShowMetrics(const TrackMetrics& metrics, bool print) {
  const std::string lines[] = {StrCat("frames with a known box: ", metrics.frames),
                               StrCat("success AUC: ", Fixed(metrics.success_auc, 4)),
                               StrCat("precision at 20 px: ", Fixed(metrics.precision_20, 4)),
                               StrCat("mean overlap: ", Fixed(metrics.mean_overlap, 4))};
  for (const std::string& line : lines) {
    if (print) {
      std::cout << line << "\n";
    } else {
      Say(line);
    }
  }
}

// Completes what there is to be completed after the run. Returns the exit code.
int Finish(const TrackArguments& arguments, const GroundTruth& truth, const TrackSummary& summary,
           TrackOutputs& outputs, TrackProgress& progress) {
  int code = kDone;
  // Files that would hold nothing are not written.
  const std::vector<std::string> failures =
      summary.frames > 0 ? outputs.Close() : std::vector<std::string>();
  progress.Finished(summary);
  for (const std::string& failure : summary.failures) code = Fail(kInputFailed, failure);
  for (const std::string& failure : failures) {
    // A file that could not be written cannot be completed either.
    if (std::ranges::count(summary.failures, failure) == 0) Say(failure);
    code = kInputFailed;
  }
  if (outputs.steps() < outputs.reference_steps() && !arguments.quiet) {
    Say(StrCat(DisplayName(arguments.steps_in), ": ", outputs.steps(), " of its ",
               outputs.reference_steps(), " steps were made"));
  }
  const bool records_printed = arguments.csv == "-" || arguments.json == "-";
  if (!arguments.ground_truth.empty() && summary.frames > 0) {
    const TrackMetrics metrics = Measure(outputs.records(), truth);
    if (metrics.frames > 0) {
      ShowMetrics(metrics, !records_printed);
    } else {
      Say(StrCat(DisplayName(arguments.ground_truth), ": has no box for any frame of the run"));
    }
  }
  if (code == kDone && the_interrupt && summary.stopped) code = kInterrupted;
  return FinishPrinting(code);
}

int Run(TrackArguments& arguments) {
  ExitCode code = kWrongUsage;  // of an Error
  try {
    CheckOutputs(arguments);
    if (!arguments.box_file.empty())
      arguments.box = ReadBox(arguments.box_file, arguments.source.start);
    GroundTruth truth;
    if (!arguments.ground_truth.empty()) truth = ReadGroundTruth(arguments.ground_truth);
    std::vector<TrackStep> reference;
    if (!arguments.steps_in.empty()) reference = ReadSteps(arguments.steps_in);
    if (arguments.display) ConnectToDisplay();
    const MemoryScope scope(arguments.max_memory != 0 ? arguments.max_memory : DefaultMaxMemory());
    CpuBudget::OfProcess().Limit(arguments.threads);
    cv::setNumThreads(1);  // frames are read, drawn and written beside, by a thread each
    std::optional<Int8Tracker> int8;
    if (arguments.int8) int8.emplace(arguments.tracker, ModelCache::OfUser(), arguments.threads);
    Tracker tracker = int8 ? int8->Make() : LoadTracker(arguments.tracker, arguments.threads);

    code = kInputFailed;
    arguments.source.stop = &the_stop;
    const std::shared_ptr<FrameSource> source = OpenFrameSource(arguments.input, arguments.source);
    code = kWrongUsage;
    const SourceInfo& info = source->info();
    RequireEffects(arguments, info);
    const double usual_rate = SinkOptions().frames_per_second;
    std::optional<double> picture_rate;
    double rate = info.frames_per_second > 0 ? info.frames_per_second : usual_rate;
    if (info.pictures) {
      picture_rate = arguments.picture_rate.value_or(usual_rate);
      rate = *picture_rate / static_cast<double>(arguments.source.every);
    }
    the_run_began = true;
    std::unique_ptr<FrameSink> sink;
    if (!arguments.output.empty()) {
      sink = OpenFrameSink(arguments.output, {.frames_per_second = rate,
                                              .colors = info.colors,
                                              .overwrite = arguments.overwrite,
                                              .source = arguments.input});
    }
    code = kInputFailed;
    TrackOutputs outputs(arguments, reference);
    code = kWrongUsage;
    std::optional<TrackWindow> window;
    // A live source has a pace of its own.
    if (arguments.display) window.emplace(info.live ? 0 : rate, the_stop);
    TrackProgress progress(info.frames, arguments.quiet);
    Events events(arguments, truth, picture_rate, tracker,
                  int8 && !int8->complete() ? &*int8 : nullptr, outputs, progress,
                  window ? &*window : nullptr);
    TrackPainter painter;
    const TrackSummary summary =
        TrackVideo(source, tracker, events, sink.get(), &painter, the_stop);
    return Finish(arguments, truth, summary, outputs, progress);
  } catch (const Error& error) {
    Say(error.what());
    return the_interrupt ? kInterrupted : code;
  }
}

}  // namespace

int main(int argc, char** argv) {
  OpenStandardStreams();
  LoadUnwinder();
  StopWhenInterrupted([] {
    the_interrupt = true;
    the_stop = true;
    return the_run_began.load();
  });
  IgnoreSignalsOfWriting();
  // Where a library ends the process: Xlib does when the display's server is gone.
  std::atexit(AtomicFile::AbandonAll);
  try {
    TrackArguments arguments;
    try {
      arguments = ParseTrackArguments(argc, argv);
    } catch (const Error& error) {
      return Fail(kWrongUsage, error.what());
    }
    std::cout << arguments.print;
    if (!arguments.print.empty()) return FinishPrinting();
    const int code = Run(arguments);
    ExitAtOnce(code);  // a source that hangs may have been left behind
  } catch (const std::exception& error) {
    return Fail(error);
  }
}
