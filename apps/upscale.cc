// upscale: makes pictures larger with a super-resolution network.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/interrupt.h"
#include "apps/message.h"
#include "apps/program.h"
#include "apps/progress_display.h"
#include "apps/upscale_arguments.h"
#include "apps/upscale_model.h"
#include "apps/upscale_progress.h"
#include "engine/session.h"
#include "engine/thread_team.h"
#include "ops/error.h"
#include "pipeline/batch.h"
#include "pipeline/display_name.h"
#include "pipeline/file_list.h"
#include "pipeline/format_text.h"
#include "pipeline/limited_model.h"
#include "pipeline/quantization/picture_samples.h"
#include "simd/memory_limit.h"

namespace {

using namespace tessera;

std::unique_ptr<ProgressDisplay> MakeDisplay(const UpscaleArguments& arguments,
                                             const FileList& list) {
  // What would be done is a result, what is being done a message.
  std::FILE* out = arguments.dry_run ? stdout : stderr;
  ProgressMode mode = arguments.progress;
  if (mode == ProgressMode::kJson) return MakeJsonDisplay(out);
  if (arguments.quiet) mode = ProgressMode::kNone;
  if (mode == ProgressMode::kAuto)
    mode = isatty(STDERR_FILENO) ? ProgressMode::kBar : ProgressMode::kLines;
  const bool says_it_all = arguments.verbose || arguments.dry_run;
  const bool alone = list.files.size() == 1 && !list.into_folder && mode != ProgressMode::kNone;
  return MakeTextDisplay(
      {.out = out,
       .bar = mode == ProgressMode::kBar && !arguments.dry_run,
       .lines = !arguments.dry_run && (mode == ProgressMode::kLines || alone || says_it_all),
       .plans = alone || says_it_all,
       .details = says_it_all,
       .notes = !arguments.quiet,
       .summary = !arguments.quiet,
       .dry_run = arguments.dry_run});
}

// Options that none of the outputs can follow are mistakes.
void RequireEffects(const UpscaleArguments& arguments, const FileList& list) {
  if (list.files.empty()) return;
  const FileJob& job = arguments.job;
  const auto none = [&list](auto&& follows) { return std::ranges::none_of(list.files, follows); };
  const std::string_view format = Name(list.files[0].format);
  Require(!job.write.quality || !none([](const ListedFile& file) {
    return file.format == ImageFormat::kJpeg || file.format == ImageFormat::kWebp;
  }),
          "--quality: ", format, " has none");
  Require(!job.write.png_level ||
              !none([](const ListedFile& file) { return file.format == ImageFormat::kPng; }),
          "--png-level: no output is a PNG");
  Require(!arguments.background_given || !none([](const ListedFile& file) {
    return !HeldFormat(file.format, {.channels = 4}).HasAlpha();
  }),
          "--background: ", format, " keeps transparency");
  if (job.bit_depth != 16) return;
  for (const ListedFile& file : list.files) {
    Require(HeldFormat(file.format, {.bit_depth = 16}).bit_depth == 16, DisplayName(file.output),
            ": ", Name(file.format), " has no 16 bits for --bit-depth");
  }
}

std::vector<BatchFile> MakeBatch(const UpscaleArguments& arguments, const FileList& list) {
  std::vector<BatchFile> files;
  files.reserve(list.files.size());
  for (const ListedFile& file : list.files) {
    files.push_back({.input = file.input, .job = arguments.job});
    files.back().job.output = file.output;
    files.back().job.format = file.format;
  }
  return files;
}

// The scale in output names.
std::string ScaleText(const UpscaleArguments& arguments, const TileModel& model) {
  const SizeOptions& size = arguments.job.size;
  if (size.scale) return Shortest(*size.scale);
  Require(arguments.list.name.find("{scale}") == std::string::npos ||
              (!size.width && !size.height && !size.longest && !size.shortest),
          "--name: {scale} goes with --scale or the model's own; for the size that was asked for, "
          "each picture has another");
  const ReceptiveField::Axis& own = model.traits().field.width;
  return Shortest(static_cast<double>(own.scale_num) / static_cast<double>(own.scale_den));
}

// Puts the quantised model in the place of the float one, unless no picture can be read.
void Quantize(const UpscaleArguments& arguments, const FileList& list, ChosenModel& chosen,
              std::unique_ptr<TileModel>& model) {
  std::vector<std::filesystem::path> inputs;
  for (const ListedFile& file : list.files) inputs.push_back(file.input);
  auto samples = SampleFirst(inputs, chosen.CalibrationShape(), kQuickSampleTiles, arguments.read);
  if (!samples) return;
  const bool silent = arguments.quiet || arguments.progress == ProgressMode::kJson ||
                      arguments.progress == ProgressMode::kNone;
  const Int8Note note = [silent](const std::string& text) {
    if (!silent) Say(text);
  };
  note(StrCat("making an int8 model of ", model->name(), ", calibrated with ",
              InputName(samples->file)));
  model = chosen.Quantize(std::move(samples->samples), note);
}

// Read by the thread that ends the process; never destroyed, as nobody knows when that will be.
std::atomic<UpscaleProgress*> the_progress = nullptr;

int Run(UpscaleArguments& arguments) {
  std::optional<Upscaler> upscaler;
  std::vector<BatchFile> files;
  UpscaleProgress* progress = nullptr;
  bool into_folder = false;
  try {
    const MemoryScope scope(arguments.max_memory != 0 ? arguments.max_memory : DefaultMaxMemory());
    CpuBudget::OfProcess().Limit(arguments.tiles.threads);
    ChosenModel chosen(arguments.model, arguments.job.size.scale, arguments.int8);
    auto model = chosen.Load();
    arguments.list.scale = ScaleText(arguments, *model);
    FileList list = ListFiles(arguments.list);
    RequireEffects(arguments, list);
    if (chosen.must_quantize() && !arguments.dry_run) Quantize(arguments, list, chosen, model);
    // The CPUs are for all files in work together.
    upscaler.emplace(MakeLimitedModel(std::move(model), arguments.tiles.threads), arguments.tiles,
                     arguments.picture);
    files = MakeBatch(arguments, list);
    into_folder = list.into_folder;
    if (!arguments.dry_run) PrepareOutputFolders(arguments.list, list);
    auto display = MakeDisplay(arguments, list);
    progress = new UpscaleProgress(std::move(list), std::move(display), arguments.dry_run);
    the_progress = progress;
  } catch (const Error& error) {
    return Fail(kWrongUsage, error.what());
  }
  UpscaleFiles(*upscaler, files,
               {.files = arguments.files,
                .memory_bytes = arguments.tiles.memory_bytes,
                .read = arguments.read,
                .dry_run = arguments.dry_run,
                .makes_folders = into_folder},
               *progress);
  return progress->Finish() ? kDone : kInputFailed;
}

}  // namespace

int main(int argc, char** argv) {
  OpenStandardStreams();
  LoadUnwinder();
  ExitCleanlyWhenInterrupted([] {
    if (UpscaleProgress* progress = the_progress) progress->Interrupt();
  });
  // Buffers of pictures go back to the system at once. Otherwise those of a thousand sizes leave
  // the heap in pieces, and the program grows from picture to picture.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  IgnoreSignalsOfWriting();
  try {
    UpscaleArguments arguments;
    try {
      arguments = ParseUpscaleArguments(argc, argv);
      std::cout << arguments.print;
      if (arguments.list_models) PrintModels(arguments.model.path);
    } catch (const Error& error) {
      return Fail(kWrongUsage, error.what());
    }
    if (!arguments.print.empty() || arguments.list_models) return FinishPrinting();
    const int code = Run(arguments);
    return arguments.dry_run ? FinishPrinting(code) : code;
  } catch (const std::exception& error) {
    return Fail(error);
  }
}
