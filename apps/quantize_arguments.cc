#include "apps/quantize_arguments.h"

#include <limits>

#include "apps/command_options.h"
#include "apps/option_values.h"
#include "engine/cpu_budget.h"
#include "ops/error.h"
#include "pipeline/read_number.h"

namespace tessera {
namespace {

constexpr int kMaxSamples = 100000;
constexpr std::int64_t kMaxSide = 4096;

void AddCalibrationOptions(Options& options, QuantizeArguments& arguments,
                           std::vector<std::filesystem::path>& inputs) {
  CalibrationOptions& calibration = arguments.calibration;
  options.Group("Calibration");
  options.Paths("-c,--calib", "PATH", inputs,
                "Picture, folder, video, or FILE.f32 (NAME:1x3x64x64:FILE.f32)");
  options.Whole("--samples", "N", 1, kMaxSamples, calibration.samples,
                StrCat("Tiles of pictures (default: ", kSampleTiles, "), or searches in a clip (",
                       kTrackerSearches, ")"));
  options.Whole("--tile", "N", std::int64_t{8}, kMaxSide, calibration.side,
                StrCat("Side of tiles in pixels (default: ", kSampleSide, ")"));
}

void AddTrackerOptions(Options& options, QuantizeArguments& arguments) {
  options.Group("Trackers: --calib is a clip");
  AddInitialBox(options, arguments.box, arguments.box_file);
  options.Path("-g,--groundtruth", "FILE", arguments.ground_truth,
               "Boxes of the target in many frames, one a line: better");
  options.Path("--head", "FILE", arguments.head,
               "The head that goes with MODEL, a backbone; is quantised too");
  options.Path("--head-out", "FILE", arguments.head_output, "ONNX file of the quantised head");
  options.Name("--variant", "v1|v2|v3|FILE", arguments.calibration.variant,
               "NanoTrack's version (default: that of these shapes), or text file");
}

void AddQuantizerOptions(Options& options, QuantizeArguments& arguments,
                         std::vector<std::filesystem::path>& excluded) {
  QuantizerOptions& quantizer = arguments.quantizer;
  options.Group("Quantisation");
  options.Choice<QuantizedFormat>(
      "--format", {{"qdq", QuantizedFormat::kQdq}, {"qlinear", QuantizedFormat::kQLinear}},
      [&quantizer](QuantizedFormat format) { quantizer.format = format; },
      "Float operators between QuantizeLinear nodes (default: qdq), or QLinearConv");
  options.Choice<RangeMethod>(
      "--method",
      {{"minmax", RangeMethod::kMinMax},
       {"percentile", RangeMethod::kPercentile},
       {"mse", RangeMethod::kMse},
       {"entropy", RangeMethod::kEntropy}},
      [&quantizer](RangeMethod method) { quantizer.method = method; },
      StrCat("How ranges follow from values (default: ", Name(quantizer.method), ")"));
  const auto percentile = [&quantizer](const std::string& text) {
    const auto value = ReadNumber(text, 50.0, 100.0);
    if (value) quantizer.percentile = *value;
    return value.has_value();
  };
  options.Text(
      "--percentile", "P", "a number from 50 to 100", percentile,
      StrCat("Of --method percentile: so much lies within (default: ", quantizer.percentile, ")"));
  options.Paths("-x,--exclude", "NODE", excluded, "Leave this convolution in float");
  const auto search = [&arguments](const std::string& text) {
    arguments.search = ReadNumber(text, 0.0, std::numeric_limits<double>::max());
    return arguments.search.has_value();
  };
  options.Text("-s,--search", "DROP", "a number, 0 or more", search,
               "Most damage; as few layers as it takes stay float (dB under 58.9 for pictures, "
               "lost overlap of boxes, else %)");
}

void Check(const QuantizeArguments& arguments) {
  Require(!arguments.calibration.inputs.empty(),
          "--calib is needed: pictures, a clip or numbers like those that the network will see "
          "(see --help)");
  const auto needs_target = [&](const char* option, bool given) {
    Require(!given || arguments.is_tracker(), option,
            " is for trackers: --init or --groundtruth says where the target is in the clip");
  };
  needs_target("--head", !arguments.head.empty());
  needs_target("--variant", !arguments.calibration.variant.empty());
  Require((arguments.box || !arguments.box_file.empty()) + !arguments.ground_truth.empty() <= 1,
          "--init and --groundtruth exclude each other");
  Require(arguments.head.empty() == arguments.head_output.empty(),
          "--head and --head-out go together");
}

}  // namespace

QuantizeArguments ParseQuantizeArguments(int argc, char** argv) {
  QuantizeArguments arguments;
  arguments.threads = AvailableCpus();
  std::vector<std::filesystem::path> files, inputs, excluded;
  Options options("quantize", "Makes a network compute with 8-bit integers: a smaller ONNX model.");
  options.Positional("FILES", files, "MODEL OUT.onnx; MODEL: ONNX or ncnn file");
  AddCalibrationOptions(options, arguments, inputs);
  AddTrackerOptions(options, arguments);
  AddQuantizerOptions(options, arguments, excluded);
  options.Group("Work");
  options.Whole("-t,--threads", "N", 1, kMaxThreads, arguments.threads,
                "CPUs to use (default: all)");
  AddMaxMemory(options, arguments.max_memory);
  options.Flag("--overwrite", arguments.overwrite, "Replace outputs that exist");
  options.Flag("-q,--quiet", arguments.quiet, "Say nothing but errors");
  arguments.print = options.Parse({argv + 1, argv + argc});
  if (!arguments.print.empty()) return arguments;

  Require(files.size() == 2 && !files[0].empty() && !files[1].empty(),
          "a model and an output are needed, MODEL OUT.onnx (see --help)");
  arguments.model = files[0];
  arguments.output = files[1];
  for (const std::filesystem::path& input : inputs)
    arguments.calibration.inputs.push_back(input.string());
  for (const std::filesystem::path& node : excluded) arguments.excluded.push_back(node.string());
  arguments.calibration.threads = arguments.threads;
  Check(arguments);
  return arguments;
}

}  // namespace tessera
