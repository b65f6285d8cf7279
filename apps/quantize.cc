// quantize: makes a network compute with 8-bit integers.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "apps/interrupt.h"
#include "apps/message.h"
#include "apps/program.h"
#include "apps/quantize_arguments.h"
#include "apps/quantize_report.h"
#include "apps/status_line.h"
#include "engine/model_file.h"
#include "engine/onnx_export.h"
#include "engine/session.h"
#include "engine/thread_team.h"
#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"
#include "pipeline/quantization/calibration.h"
#include "pipeline/quantization/quantize_network.h"
#include "pipeline/require_system.h"
#include "pipeline/tracking/ground_truth.h"
#include "simd/memory_limit.h"

namespace {

using namespace tessera;
namespace fs = std::filesystem;

// One of a tracker's networks, or the only one.
struct Part {
  Part(const fs::path& from, fs::path to)
      : network(ImportModel(from)), name(from.filename().string()), output(std::move(to)) {}

  Graph network;
  std::string name;
  fs::path output;
  QuantizedModel quantized = {};
  std::string onnx = {};
};

// All files that a model may be read from.
std::vector<fs::path> FilesOf(const fs::path& model) {
  std::vector<fs::path> files = {model, NcnnTextFile(model), NcnnWeightsFile(model)};
  for (const char* extension : {".onnx", ".param", ".bin"})
    files.push_back(fs::path(model) += extension);
  return files;
}

void CheckOutputs(const QuantizeArguments& arguments) {
  std::vector<fs::path> inputs = FilesOf(arguments.model);
  if (!arguments.head.empty()) {
    for (fs::path& file : FilesOf(arguments.head)) inputs.push_back(std::move(file));
  }
  for (const std::string& input : arguments.calibration.inputs) inputs.emplace_back(input);
  inputs.push_back(arguments.ground_truth);
  inputs.push_back(arguments.box_file);
  for (const fs::path& output : {arguments.output, arguments.head_output}) {
    if (output.empty()) continue;
    NamingFile(output, [&] {
      Require(output.extension() == ".onnx", "the name of an ONNX file has to end with .onnx");
      for (const fs::path& input : inputs) {
        Require(input.empty() || !StatusOf(input) || !SameFile(input, output),
                "is an input; nothing can be written there");
      }
      AtomicFile::CheckOverwrite(output, arguments.overwrite);
      AtomicFile::CheckTarget(output);
    });
  }
  Require(arguments.head_output.empty() || !SameFile(arguments.output, arguments.head_output),
          DisplayName(arguments.output), ": two outputs cannot be the same file");
}

std::optional<GroundTruth> ReadBoxes(const QuantizeArguments& arguments) {
  if (!arguments.ground_truth.empty()) return ReadGroundTruth(arguments.ground_truth);
  if (!arguments.box_file.empty()) return GroundTruth{{0, ReadBox(arguments.box_file, 0)}};
  if (arguments.box) return GroundTruth{{0, *arguments.box}};
  return std::nullopt;
}

// Each name is a node of one of the networks.
void Exclude(const std::vector<std::string>& names, const std::vector<Part>& parts,
             std::vector<QuantizerOptions>& options) {
  for (const std::string& name : names) {
    bool found = false;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (const Node& node : parts[i].network.nodes) {
        if (node.op.name != name) continue;
        options[i].excluded.insert(name);
        found = true;
      }
    }
    Require(found, "--exclude ", OneLine(name), ": ", DisplayName(parts[0].network.file),
            parts.size() > 1 ? " and its head have" : " has", " no node of that name");
  }
}

// Complete, or not there: neither of two.
void Write(const std::vector<Part>& parts, bool overwrite) {
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (const Part& part : parts) {
    NamingFile(part.output, [&] {
      AtomicFile::RemoveStale(part.output.parent_path());
      auto& file = files.emplace_back(std::make_unique<AtomicFile>(part.output, overwrite));
      RequireSystem(
          std::fwrite(part.onnx.data(), 1, part.onnx.size(), file->stream()) == part.onnx.size() &&
              std::fflush(file->stream()) == 0,
          "cannot write");
    });
  }
  for (std::size_t i = 0; i < parts.size(); ++i)
    NamingFile(parts[i].output, [&] { files[i]->Commit(); });
}

// What cannot be read is an input that failed, not a wrong usage.
class InputError : public Error {
 public:
  using Error::Error;
};

Calibrations CalibrateParts(const QuantizeArguments& arguments, const std::vector<Part>& parts) {
  try {
    return Calibrate(parts[0].network, parts.size() > 1 ? &parts[1].network : nullptr,
                     arguments.calibration);
  } catch (const FileError& error) {
    throw InputError(error.what());
  }
}

int Run(QuantizeArguments& arguments) {
  ExitCode code = kWrongUsage;  // of an Error
  StatusLine status;
  const bool shows = !arguments.quiet && ::isatty(STDERR_FILENO) == 1;
  try {
    const MemoryScope scope(arguments.max_memory != 0 ? arguments.max_memory : DefaultMaxMemory());
    CpuBudget::OfProcess().Limit(arguments.threads);
    CheckOutputs(arguments);
    std::vector<Part> parts;
    parts.emplace_back(arguments.model, arguments.output);
    if (!arguments.head.empty()) parts.emplace_back(arguments.head, arguments.head_output);
    for (const Part& part : parts) RequireFloatNetwork(part.network);
    std::vector<QuantizerOptions> options(parts.size(), arguments.quantizer);
    Exclude(arguments.excluded, parts, options);
    arguments.calibration.boxes = ReadBoxes(arguments);
    const Calibrations calibrations = CalibrateParts(arguments, parts);
    std::string tables;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Part& part = parts[i];
      const Calibration& calibration = i == 0 ? calibrations.model : *calibrations.head;
      if (shows) status.Show(StrCat(OneLine(part.name), ": quantising"));
      part.quantized = QuantizeNetwork(
          part.network, calibration, arguments.search, options[i],
          [&](std::size_t done, std::size_t total) {
            if (shows && status.Due())
              status.Show(StrCat(OneLine(part.name), ": search, ", done, " of about ", total));
          });
      part.onnx = ExportOnnx(part.quantized.graph);
      tables += ToText({.model = part.name,
                        .quantized = &part.quantized,
                        .unit = calibration.unit,
                        .searched = arguments.search.has_value(),
                        .float_bytes = ExportOnnx(part.network).size(),
                        .quantized_bytes = part.onnx.size()});
    }
    status.Clear();
    code = kInputFailed;
    Write(parts, arguments.overwrite);
    std::cout << tables;
    return FinishPrinting();
  } catch (const InputError& error) {
    status.Clear();
    return Fail(kInputFailed, error.what());
  } catch (const Error& error) {
    status.Clear();
    return Fail(code, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  OpenStandardStreams();
  LoadUnwinder();
  ExitCleanlyWhenInterrupted([] {});
  IgnoreSignalsOfWriting();
  try {
    QuantizeArguments arguments;
    try {
      arguments = ParseQuantizeArguments(argc, argv);
    } catch (const Error& error) {
      return Fail(kWrongUsage, error.what());
    }
    std::cout << arguments.print;
    if (!arguments.print.empty()) return FinishPrinting();
    return Run(arguments);
  } catch (const std::exception& error) {
    return Fail(error);
  }
}
