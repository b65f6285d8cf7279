#include "apps/track_outputs.h"

#include <array>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <opencv2/imgproc.hpp>
#include <utility>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"
#include "pipeline/image_writer.h"
#include "pipeline/picture_name.h"
#include "pipeline/tracking/plot_track.h"
#include "pipeline/tracking/tracker_config.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

void WritePlot(const fs::path& path, cv::Mat plot, bool overwrite) {
  AtomicFile::RemoveStale(path.parent_path());
  cv::cvtColor(plot, plot, cv::COLOR_BGR2RGB);
  const Picture picture({.width = plot.cols, .height = plot.rows});
  for (int y = 0; y < plot.rows; ++y) {
    std::memcpy(picture.Row(y), plot.ptr(y), static_cast<std::size_t>(plot.cols) * 3);
  }
  WritePicture(path, *FormatOfExtension(path), picture, {.overwrite = overwrite});
}

}  // namespace

void CheckOutputs(const TrackArguments& arguments) {
  const std::string& variant = arguments.tracker.variant;
  const std::array<fs::path, 7> inputs = {
      arguments.input,        arguments.tracker.model,
      arguments.tracker.head, NanoTrackNamed(variant) ? "" : variant,
      arguments.box_file,     arguments.ground_truth,
      arguments.steps_in};
  const std::array<fs::path, 5> outputs = {arguments.output, arguments.csv, arguments.json,
                                           arguments.plot, arguments.steps_out};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const fs::path& output = outputs[i];
    if (output.empty() || output == "-") continue;
    for (const fs::path& input : inputs) {
      // A camera's number and the name of a version are no files, whatever an output is called.
      Require(!StatusOf(input) || !SameFile(input, output), DisplayName(output),
              ": is an input; nothing can be written there");
    }
    for (std::size_t j = 0; j < i; ++j) {
      Require(outputs[j].empty() || outputs[j] == "-" || !SameFile(outputs[j], output),
              DisplayName(output), ": two outputs cannot be the same file");
    }
    // OUT may be more than a file.
    if (i == 0 && IsFolder(StatusOf(output))) continue;
    NamingFile(output, [&] { AtomicFile::CheckOverwrite(output, arguments.overwrite); });
    if (i > 0) NamingFile(output, [&] { AtomicFile::CheckTarget(output); });
  }
  Require(arguments.plot.empty() || FormatOfExtension(arguments.plot), DisplayName(arguments.plot),
          ": the name ends like that of no picture (plot.png)");
}

TrackOutputs::TrackOutputs(const TrackArguments& arguments, const std::vector<TrackStep>& reference)
    : arguments_(arguments),
      keeps_records_(!arguments.plot.empty() || !arguments.ground_truth.empty()) {
  for (const TrackStep& step : reference) reference_[step.frame] = step.before;
  const auto open = [&](const fs::path& path, RecordFormat format) {
    if (path.empty()) return;
    writers_.push_back(std::make_unique<RecordWriter>(path, format, arguments.overwrite));
  };
  open(arguments.csv, RecordFormat::kCsv);
  open(arguments.json, RecordFormat::kJson);
}

void TrackOutputs::Started(const Frame& first) {
  if (!arguments_.plot.empty()) first_frame_ = first.pixels.clone();
}

void TrackOutputs::Updating(const Frame& frame, Tracker& tracker) {
  if (arguments_.steps_out.empty()) return;
  before_ = tracker.state();
  if (arguments_.steps_in.empty()) return;
  const auto state = reference_.find(frame.number);
  if (state == reference_.end()) {
    before_.reset();
  } else {
    tracker.SetState(state->second);
    before_ = state->second;
  }
}

void TrackOutputs::Updated(const Frame& frame, const Tracker& tracker) {
  if (const auto before = std::exchange(before_, std::nullopt)) {
    steps_.push_back({frame.number, *before, tracker.last_step(), tracker.state()});
  }
}

void TrackOutputs::Recorded(const TrackRecord& record) {
  // A run over a camera may have no end.
  if (keeps_records_) records_.push_back(record);
  for (const auto& writer : writers_) writer->Write(record);
}

std::vector<std::string> TrackOutputs::Close() {
  std::vector<std::string> failures;
  const auto attempt = [&failures](const std::function<void()>& complete) {
    try {
      complete();
    } catch (const std::exception& error) {
      failures.emplace_back(error.what());
    }
  };
  for (const auto& writer : writers_) attempt([&] { writer->Close(); });
  if (!arguments_.plot.empty()) {
    attempt([&] {
      WritePlot(arguments_.plot, PlotTrack(first_frame_, records_), arguments_.overwrite);
    });
  }
  if (!arguments_.steps_out.empty()) {
    attempt([&] { WriteSteps(arguments_.steps_out, steps_, arguments_.overwrite); });
  }
  return failures;
}

}  // namespace tessera
