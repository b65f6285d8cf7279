// upscale: makes a picture larger with a super-resolution network.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/interrupt.h"
#include "engine/cpu_budget.h"
#include "engine/model_file.h"
#include "engine/session.h"
#include "models/builtin_models.h"
#include "models/model_search.h"
#include "ops/error.h"
#include "pipeline/display_name.h"
#include "pipeline/session_model.h"
#include "pipeline/upscale_file.h"
#include "simd/cpu_target.h"

namespace {

using namespace tessera;

// The largest of the built-in models.
constexpr double kDefaultScale = 4;

enum ExitCode : int { kDone = 0, kInputFailed = 1, kWrongUsage = 2 };

struct Arguments {
  std::string input, output, model;
  std::vector<std::filesystem::path> model_path;
  std::string scale;
  std::optional<int> quality;
  int memory_mb = 1024;
  TileOptions tiles{.threads = AvailableCpus()};
  bool list_models = false;
};

void Say(const std::string& message) {
  const char* clear_progress = isatty(STDERR_FILENO) ? "\r\x1b[K" : "";
  std::fprintf(stderr, "%supscale: %s\n", clear_progress, OneLine(message).c_str());
}

int Fail(ExitCode code, const std::string& message) {
  Say(message);
  return code;
}

// What was printed is a result: it has arrived, or the program failed.
int FinishPrinting() {
  std::cout.flush();
  return std::cout.good() ? kDone : Fail(kInputFailed, "standard output cannot be written");
}

// With '.' in every locale.
double ParseScale(const std::string& text) {
  double scale = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  Require(
      error == std::errc() && end == text.data() + text.size() && std::isfinite(scale) && scale > 0,
      "--scale ", text, ": want a positive number, like 2 or 1.5");
  return scale;
}

// Whole numbers in a range; --help names the option's value, not the range.
CLI::Validator Between(int low, int high) { return CLI::Range(low, high).description(""); }

// An empty variable of a script is a mistake, not a wish for the default.
CLI::Validator NotEmpty() {
  return CLI::Validator(
      [](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); }, "");
}

std::unique_ptr<TileModel> LoadModel(const NamedModel& model) {
  if (model.builtin == nullptr) {
    return MakeSessionModel(Session::Load(model.file), DisplayName(model.file));
  }
  return MakeSessionModel(Session::LoadFromMemory(model.builtin->onnx, model.name), model.name);
}

// By name or by file; by scale if neither is given.
std::unique_ptr<TileModel> LoadModel(const Arguments& arguments, std::optional<double> scale) {
  const std::string name = arguments.model.empty()
                               ? std::string(DefaultModel(scale.value_or(kDefaultScale)).name)
                               : arguments.model;
  if (const auto found = FindNamedModel(name, ModelFolders(arguments.model_path))) {
    return LoadModel(*found);
  }
  Require(ModelExists(name), DisplayName(name),
          ": no such file, nor a model of that name (see --list-models)");
  return LoadModel({.name = name, .file = name});
}

void PrintRow(const std::string& name, const std::string& scale, const std::string& parameters,
              const std::string& licence, const std::string& found) {
  std::cout << std::left << std::setw(23) << name << ' ' << std::setw(6) << scale << ' '
            << std::setw(11) << parameters << ' ' << std::setw(13) << licence << ' ' << found
            << "\n";
}

// A file that is no upscaling model is named on stderr and left out.
void PrintModels(const Arguments& arguments) {
  const std::vector<NamedModel> models = NamedModels(ModelFolders(arguments.model_path));
  PrintRow("name", "scale", "parameters", "licence", "found");
  for (const NamedModel& model : models) {
    try {
      const ModelFacts facts =
          model.builtin != nullptr
              ? ModelFacts{model.builtin->parameters, std::string(model.builtin->licence)}
              : ReadModelFacts(model.file);
      const ReceptiveField::Axis& scale = LoadModel(model)->traits().field.width;
      PrintRow(
          DisplayName(model.name),
          StrCat("x", scale.scale_num, scale.scale_den == 1 ? "" : StrCat("/", scale.scale_den)),
          std::to_string(facts.parameters),
          facts.licence.empty() ? "unknown" : OneLine(facts.licence),
          model.builtin != nullptr ? "built in" : DisplayName(model.file));
    } catch (const Error& error) {
      Say(error.what());
    }
  }
}

// Reads the arguments into what is to be done. Throws Error for what makes no sense.
FileJob MakeJob(const Arguments& arguments) {
  Require(!arguments.input.empty() && !arguments.output.empty(),
          "an input and an output are needed (see --help)");
  FileJob job{.output = arguments.output};
  std::error_code error;
  Require(!std::filesystem::is_directory(job.output, error), DisplayName(job.output),
          ": is a folder; the output has to be a file");
  const std::optional<ImageFormat> format = FormatOfExtension(job.output);
  Require(format.has_value(), DisplayName(job.output),
          ": no picture format has this extension; known are ", KnownExtensions());
  job.format = *format;
  Require(!arguments.quality || *format == ImageFormat::kJpeg || *format == ImageFormat::kWebp,
          "--quality: ", Name(*format), " has none");
  job.write.quality = arguments.quality;
  if (!arguments.scale.empty()) job.size.scale = ParseScale(arguments.scale);
  return job;
}

void ShowProgress(std::size_t done, std::size_t total) {
  std::fprintf(stderr, "\r%3zu %%  %zu of %zu tiles", 100 * done / total, done, total);
  if (done == total) std::fputs("\r\x1b[K", stderr);
}

int Run(const Arguments& arguments) {
  FileJob job;
  PictureInput input(arguments.input);
  std::unique_ptr<Upscaler> upscaler;
  try {
    if (arguments.list_models) {
      PrintModels(arguments);
      return FinishPrinting();
    }
    job = MakeJob(arguments);
    // While the model is loaded, if there is a CPU for each.
    std::optional<ReadAhead> reading;
    if (arguments.tiles.threads > 1) reading.emplace(input);
    TileOptions tiles = arguments.tiles;
    tiles.memory_bytes = static_cast<std::size_t>(arguments.memory_mb) << 20;
    upscaler = std::make_unique<Upscaler>(LoadModel(arguments, job.size.scale), tiles);
  } catch (const Error& error) {
    return Fail(kWrongUsage, error.what());
  }
  try {
    const FileResult result =
        UpscaleFile(*upscaler, input, job, isatty(STDERR_FILENO) ? ShowProgress : TileProgress());
    for (const std::string& note : result.notes)
      Say(StrCat(DisplayName(arguments.input), ": note: ", note));
  } catch (const Error& error) {
    return Fail(kInputFailed, error.what());
  } catch (const std::bad_alloc&) {
    return Fail(kInputFailed, StrCat(DisplayName(arguments.input), ": not enough memory"));
  }
  return kDone;
}

}  // namespace

int main(int argc, char** argv) {
  ExitCleanlyWhenInterrupted();
  std::signal(SIGPIPE, SIG_IGN);  // that nobody reads the messages does not spoil the picture
  Arguments arguments;
  CLI::App app("Makes a picture larger with a super-resolution network.", "upscale");
  app.set_version_flag("--version",
                       StrCat("upscale ", TESSERA_VERSION, " (", CpuTargetName(), ")"));
  app.add_option("IN,-i,--input", arguments.input, "Picture to read, whatever its name");
  app.add_option("OUT,-o,--output", arguments.output,
                 StrCat("Picture to write, by its extension: ", KnownExtensions()));
  app.add_option("-m,--model", arguments.model, "ONNX or ncnn file, or a model's name")
      ->check(NotEmpty())
      ->type_name("FILE|NAME");
  app.add_option("--model-path", arguments.model_path,
                 "Folder where NAME.onnx or NAME.param is looked for first (may be repeated)")
      ->allow_extra_args(false)  // IN and OUT may follow
      ->check(NotEmpty())
      ->type_name("DIR");
  app.add_option(
         "-s,--scale", arguments.scale,
         "Size of the output relative to the input (default: the model's, 4 if none is named)")
      ->check(NotEmpty())
      ->type_name("S");
  app.add_option("--quality", arguments.quality, "Of JPEG (default 95) or WebP (default: lossless)")
      ->check(Between(1, 100))
      ->type_name("1-100");
  app.add_option("-t,--tile", arguments.tiles.tile, "Tile size in input pixels (0: automatic)")
      ->check(Between(0, 1 << 30))
      ->type_name("N");
  app.add_option("--overlap", arguments.tiles.overlap,
                 "Pixels around a tile that are computed twice (default: what the network sees)")
      ->check(Between(0, 1 << 20))
      ->type_name("N");
  app.add_option("--threads", arguments.tiles.threads, "CPUs to use (default: all there are)")
      ->check(Between(1, 1024))
      ->type_name("N");
  app.add_option("-j,--workers", arguments.tiles.workers,
                 "Tiles at a time, which share the CPUs (default: automatic)")
      ->check(Between(1, 1024))
      ->type_name("K");
  app.add_option("--memory", arguments.memory_mb, "For tiles, in MB (default 1024)")
      ->check(Between(1, 1 << 30))
      ->type_name("MB");
  app.add_flag("--list-models", arguments.list_models, "Show the models that have names");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success);
    return FinishPrinting();
  } catch (const CLI::ParseError& error) {
    return Fail(kWrongUsage, error.what());
  }
  try {
    return Run(arguments);
  } catch (const std::exception& error) {
    return Fail(kInputFailed, error.what());
  }
}
