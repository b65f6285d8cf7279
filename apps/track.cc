// track: follows an object in a video.
#include <atomic>
#include <csignal>
#include <cstdio>
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
#include "engine/thread_team.h"
#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/format_text.h"
#include "pipeline/tracking/frame_sink.h"
#include "pipeline/tracking/frame_source.h"
#include "pipeline/tracking/ground_truth.h"
#include "pipeline/tracking/track_metrics.h"
#include "pipeline/tracking/track_video.h"
#include "pipeline/tracking/tracker.h"

namespace {

using namespace tessera;

std::atomic<bool> the_interrupt = false;

// Connects a run with what is written, shown and said of it.
class Events final : public TrackEvents {
 public:
  // `picture_rate`: frames a second, where they do not tell their time.
  Events(const TrackArguments& arguments, const GroundTruth& truth,
         std::optional<double> picture_rate, TrackOutputs& outputs, TrackProgress& progress,
         TrackWindow* window)
      : arguments_(arguments),
        truth_(truth),
        picture_rate_(picture_rate),
        outputs_(outputs),
        progress_(progress),
        window_(window) {}

  Box Start(const Frame& first) override {
    outputs_.Started(first);
    if (arguments_.box) return *arguments_.box;
    if (const auto known = truth_.find(first.number); known != truth_.end()) return known->second;
    Require(window_ != nullptr, DisplayName(arguments_.ground_truth), ": has no box for frame ",
            first.number, ", the first one; --init x,y,w,h gives it");
    const std::optional<Box> drawn = window_->Select(first);
    Require(drawn.has_value(), "no box was drawn");
    return *drawn;
  }

  void Updating(const Frame& frame, Tracker& tracker) override {
    outputs_.Updating(frame, tracker);
  }

  bool Tracked(const Frame& frame, Tracker& tracker, TrackRecord& record) override {
    outputs_.Updated(frame, tracker);
    if (picture_rate_) record.seconds = static_cast<double>(frame.number) / *picture_rate_;
    const bool goes_on = window_ == nullptr || Show(frame, tracker, record);
    outputs_.Recorded(record);
    progress_.Tracked(record);
    return goes_on;
  }

  void Noted(const std::string& note) override { progress_.Noted(note); }

 private:
  // False if the user has seen enough.
  bool Show(const Frame& frame, Tracker& tracker, TrackRecord& record) {
    const TrackWindow::Wish wish = window_->Show(frame, record);
    if (wish == TrackWindow::Wish::kSelect) {
      if (const std::optional<Box> drawn = window_->Select(frame)) {
        tracker.Init(frame.view(), *drawn);
        record.box = *drawn;
        record.score = 1;
        record.lost = false;
      }
    }
    return wish != TrackWindow::Wish::kEnd;
  }

  const TrackArguments& arguments_;
  const GroundTruth& truth_;
  const std::optional<double> picture_rate_;
  TrackOutputs& outputs_;
  TrackProgress& progress_;
  TrackWindow* const window_;
};

void RequireEffects(const TrackArguments& arguments, const SourceInfo& info) {
  const SourceOptions& source = arguments.source;
  Require(info.live || source.reconnect == 0, "--reconnect: ", InputName(arguments.input),
          " is no camera or stream");
  Require(info.pictures || !arguments.picture_rate, "--fps: ", InputName(arguments.input),
          " has a rate of its own");
  Require(!info.live || !arguments.start_given, "--start: ", InputName(arguments.input),
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
  if (!summary.failure.empty()) code = kInputFailed;
  // Files that would hold nothing are not written.
  const std::vector<std::string> failures =
      summary.frames > 0 ? outputs.Close() : std::vector<std::string>();
  progress.Finished(summary);
  if (!summary.failure.empty()) Say(summary.failure);
  for (const std::string& failure : failures) code = Fail(kInputFailed, failure);
  if (outputs.steps() < outputs.reference_steps() && !arguments.quiet) {
    Say(StrCat(DisplayName(arguments.steps_in), ": ", outputs.steps(), " of its ",
               outputs.reference_steps(), " steps were made"));
  }
  const bool records_printed = arguments.csv == "-" || arguments.json == "-";
  if (!arguments.ground_truth.empty() && summary.frames > 0) {
    ShowMetrics(Measure(outputs.records(), truth), !records_printed);
  }
  if (code == kDone && the_interrupt && summary.stopped) code = kInterrupted;
  return FinishPrinting(code);
}

// The first box of a file.
Box ReadBox(const std::filesystem::path& path) {
  const GroundTruth boxes = ReadGroundTruth(path);
  Require(!boxes.empty(), DisplayName(path), ": holds no box");
  return boxes.begin()->second;
}

int Run(TrackArguments& arguments) {
  ExitCode code = kWrongUsage;  // of an Error
  try {
    CheckOutputs(arguments);
    if (!arguments.box_file.empty()) arguments.box = ReadBox(arguments.box_file);
    GroundTruth truth;
    if (!arguments.ground_truth.empty()) truth = ReadGroundTruth(arguments.ground_truth);
    if (arguments.display) ConnectToDisplay();
    CpuBudget::OfProcess().Limit(arguments.threads);
    cv::setNumThreads(1);  // frames are read, drawn and written beside, by a thread each
    Tracker tracker = LoadTracker(arguments.tracker, arguments.threads);

    code = kInputFailed;
    const auto source = OpenFrameSource(arguments.input, arguments.source);
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
    std::unique_ptr<FrameSink> sink;
    if (!arguments.output.empty()) {
      sink = OpenFrameSink(arguments.output, {.frames_per_second = rate,
                                              .colors = info.colors,
                                              .overwrite = arguments.overwrite,
                                              .source = arguments.input});
    }
    code = kInputFailed;
    TrackOutputs outputs(arguments);
    code = kWrongUsage;

    std::optional<TrackWindow> window;
    // A live source has a pace of its own.
    if (arguments.display) window.emplace(info.live ? 0 : rate, the_interrupt);
    TrackProgress progress(info.frames, arguments.quiet);
    Events events(arguments, truth, picture_rate, outputs, progress, window ? &*window : nullptr);
    TrackPainter painter;
    const TrackSummary summary =
        TrackVideo(*source, tracker, events, sink.get(), &painter, the_interrupt);
    return Finish(arguments, truth, summary, outputs, progress);
  } catch (const Error& error) {
    return the_interrupt ? kInterrupted : Fail(code, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  OpenStandardStreams();
  StopWhenInterrupted([] { the_interrupt = true; });
  // That nobody reads the messages does not spoil the outputs; that a file exceeds the limit for
  // files is an error like others.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    TrackArguments arguments;
    try {
      arguments = ParseTrackArguments(argc, argv);
    } catch (const Error& error) {
      return Fail(kWrongUsage, error.what());
    }
    std::cout << arguments.print;
    if (!arguments.print.empty()) return FinishPrinting();
    return Run(arguments);
  } catch (const std::exception& error) {
    return Fail(kInputFailed, error.what());
  }
}
