#include "apps/track_arguments.h"

#include <cstdint>
#include <vector>

#include "apps/command_options.h"
#include "apps/option_values.h"
#include "engine/cpu_budget.h"
#include "ops/error.h"
#include "pipeline/read_number.h"
#include "pipeline/video/frame_sink.h"

namespace tessera {
namespace {

constexpr std::int64_t kMaxFrame = std::int64_t{1} << 40;

void AddTargetOptions(Options& options, TrackArguments& arguments) {
  options.Group("Target");
  AddInitialBox(options, arguments.box, arguments.box_file);
  options.Flag("-d,--display", arguments.display,
               "Show a window; the mouse draws the box, s draws anew, q ends");
  options.Path("-g,--groundtruth", "FILE", arguments.ground_truth,
               "Known boxes, one a line: say how well they are met");
}

void AddModelOptions(Options& options, TrackArguments& arguments) {
  options.Group("Model");
  options.Path("-m,--model", "FILE", arguments.tracker.model,
               "ONNX file: the backbone, or all of a network with two inputs");
  options.Path("--head", "FILE", arguments.tracker.head, "ONNX file of the head");
  options.Name("--variant", "v1|v2|v3|FILE", arguments.tracker.variant,
               "NanoTrack's version (default: that of these shapes), or text file");
  options.Choice<bool>(
      "--precision", {{"fp32", false}, {"int8", true}},
      [&arguments](bool int8) { arguments.int8 = int8; },
      "int8: quantise the networks by the first frames (default: fp32)");
  options.Whole("-t,--threads", "N", 1, kMaxThreads, arguments.threads,
                "CPUs for the network (default: all); reading, writing come on top");
  AddMaxMemory(options, arguments.max_memory);
}

void AddFrameOptions(Options& options, TrackArguments& arguments) {
  SourceOptions& source = arguments.source;
  options.Group("Frames");
  const auto start = [&arguments](const std::string& text) {
    const auto frame = ReadNumber(text, std::int64_t{0}, kMaxFrame);
    arguments.start_given = true;
    if (frame) arguments.source.start = *frame;
    return frame.has_value();
  };
  options.Text("--start", "N", StrCat("a whole number from 0 to ", kMaxFrame), start,
               "The first frame (default: 0)");
  options.Whole("--end", "N", std::int64_t{1}, kMaxFrame, source.end,
                "The frame to stop before (default: none)");
  options.Whole("--every", "N", std::int64_t{1}, kMaxFrame, source.every,
                "Take one of so many frames (default: 1)");
  const auto rate = [&arguments](const std::string& text) {
    arguments.picture_rate = ReadNumber(text, 0.001, 1000.0);
    return arguments.picture_rate.has_value();
  };
  options.Text("--fps", "F", "a number from 0.001 to 1000", rate,
               StrCat("Pictures a second, where they are files (default: ",
                      SinkOptions().frames_per_second, ")"));
  options.Whole("--reconnect", "N", 0, 1 << 20, source.reconnect,
                "How often to open a camera or stream again that is gone (default: 0)");
}

void AddOutputOptions(Options& options, TrackArguments& arguments) {
  options.Group("Outputs");
  options.Path("--csv", "FILE", arguments.csv,
               "frame,time,x,y,w,h,score,lost of each frame; - is standard output");
  options.Path("--json", "FILE", arguments.json, "The same as JSON");
  options.Path("--plot", "FILE", arguments.plot,
               "Picture: way over the first frame, score over time");
  options.Path("--steps-in", "FILE", arguments.steps_in,
               "CSV with the state before each frame; --init is for the template");
  options.Path("--steps-out", "FILE", arguments.steps_out,
               "CSV of the states before and after each frame");
  options.Flag("--overwrite", arguments.overwrite, "Replace outputs that exist");
}

void Check(const TrackArguments& arguments) {
  const TrackerFiles& tracker = arguments.tracker;
  Require(!tracker.model.empty(), "--model is needed (see --help)");
  Require(arguments.box || !arguments.box_file.empty() || !arguments.ground_truth.empty() ||
              arguments.display,
          "--init x,y,w,h is needed: the box of the target in the first frame (or --groundtruth "
          "with known boxes, or --display to draw it)");
  const SourceOptions& source = arguments.source;
  Require(!source.end || *source.end > source.start, "--end has to be greater than --start");
  Require(arguments.steps_in.empty() || !arguments.steps_out.empty(),
          "--steps-in is of no use without --steps-out");
  Require(arguments.csv != "-" || arguments.json != "-",
          "only one of --csv and --json can be standard output");
  for (const std::filesystem::path& path :
       {arguments.output, arguments.plot, arguments.steps_out}) {
    Require(path != "-", "only --csv and --json can be standard output");
  }
}

}  // namespace

TrackArguments ParseTrackArguments(int argc, char** argv) {
  TrackArguments arguments;
  arguments.threads = AvailableCpus();
  std::vector<std::filesystem::path> files;
  Options options("track", "Follows an object in a video with a Siamese network.");
  options.Positional("FILES", files,
                     "IN [OUT]; IN: video, folder, %05d.png, camera's number, or URL");
  AddTargetOptions(options, arguments);
  AddModelOptions(options, arguments);
  AddFrameOptions(options, arguments);
  AddOutputOptions(options, arguments);
  options.Group("Messages");
  options.Flag("-q,--quiet", arguments.quiet, "Say nothing but errors");
  arguments.print = options.Parse({argv + 1, argv + argc});
  if (!arguments.print.empty()) return arguments;

  Require(!files.empty() && !files[0].empty(), "an input is needed (see --help)");
  Require(files.size() <= 2, "one input and one output at the most (see --help)");
  arguments.input = files[0];
  if (files.size() == 2) {
    Require(!files[1].empty(), "the output's name is empty");
    arguments.output = files[1];
  }
  Check(arguments);
  return arguments;
}

}  // namespace tessera
