#include "apps/upscale_arguments.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "apps/command_options.h"
#include "apps/option_values.h"
#include "engine/cpu_budget.h"
#include "ops/error.h"
#include "pipeline/read_number.h"

namespace tessera {
namespace {

constexpr std::int64_t kMaxLength = std::int64_t{1} << 30;  // of anything in pixels

// What the options say that takes a second look.
struct Given {
  std::vector<std::filesystem::path> positional;
  std::string output;
  bool overwrite = false, skip_existing = false;
  std::optional<Workers> workers;
  int memory_mb = static_cast<int>(TileOptions().memory_bytes >> 20);
};

void AddFileOptions(Options& options, UpscaleArguments& arguments, Given& given) {
  ListOptions& list = arguments.list;
  options.Group("Files");
  options.Paths("-i,--input", "IN", list.inputs, "File or folder to read");
  options.Name("-o,--output", "OUT", given.output, "File or folder to write");
  options.Flag("-r,--recursive", list.recursive, "Take folders within folders too");
  const auto format = [&list](const std::string& text) {
    list.format = ParseFormat(text);
    return true;
  };
  options.Text("-f,--format", "EXT", "", format,
               "Of outputs (default: as they or the inputs are named, or png)");
  options.Name("--suffix", "TEXT", list.suffix, "Put into output names before the extension");
  options.Name("--name", "PATTERN", list.name, "Of outputs: {stem}_{scale}x{ext} (also {suffix})");
  options.Flag("--overwrite", given.overwrite, "Replace outputs that exist");
  options.Flag("--skip-existing", given.skip_existing,
               "Keep outputs that exist, unless their input is newer");
  const auto quality = [&arguments](const std::string& text) {
    arguments.job.write.quality = ReadNumber(text, 1, 100);
    return arguments.job.write.quality.has_value();
  };
  options.Text("--quality", "1-100", "a whole number from 1 to 100", quality,
               "Of JPEG (default 95) and WebP (default: lossless)");
  options.Whole("--png-level", "0-9", 0, 9, arguments.job.write.png_level,
                "How hard PNGs are compressed (default: quick)");
  options.Choice<int>(
      "--bit-depth", {{"8", 8}, {"16", 16}}, [&](int bits) { arguments.job.bit_depth = bits; },
      "Of outputs (default: the input's)");
  options.Flag("--strip", arguments.job.strip_metadata,
               "Write no colour profile, EXIF or other metadata");
}

void AddSizeOptions(Options& options, SizeOptions& size) {
  options.Group("Size");
  const auto scale = [&size](const std::string& text) {
    using Limits = std::numeric_limits<double>;
    size.scale = ReadNumber(text, Limits::min(), Limits::max());
    return size.scale.has_value();
  };
  options.Text("-s,--scale", "S", "a positive number, like 2 or 1.5", scale,
               "Output to input; resampled if it is not the model's own");
  options.Whole("--width", "N", std::int64_t{1}, kMaxLength, size.width,
                "Of the output, in pixels; alone it keeps the proportions");
  options.Whole("--height", "N", std::int64_t{1}, kMaxLength, size.height, "The same");
  options.Whole("--longest", "N", std::int64_t{1}, kMaxLength, size.longest, "Longer side of it");
  options.Whole("--shortest", "N", std::int64_t{1}, kMaxLength, size.shortest,
                "Shorter side of it");
}

void AddModelOptions(Options& options, UpscaleArguments& arguments) {
  ModelChoice& model = arguments.model;
  options.Group("Model");
  options.Name("-m,--model", "FILE|NAME|FOLDER", model.model,
               "ONNX or ncnn file, a name, or the folder where -n is");
  options.Name("-n,--model-name", "NAME", model.name, "A model's name");
  options.Paths("--model-path", "FOLDER", model.path,
                "Where NAME.onnx or NAME.param is looked for first");
  const auto blend = [&model](const std::string& text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0) return false;
    const auto weight = ReadNumber(std::string_view(text).substr(colon + 1), 0.0, 1.0);
    if (weight) model.blend = {.model = text.substr(0, colon), .weight = *weight};
    return weight.has_value();
  };
  options.Text("--blend", "FILE:WEIGHT", "a model, ':' and its weight from 0 to 1", blend,
               "Mix in so much of the weights of an equal network");
  const auto denoise = [&model](const std::string& text) {
    model.denoise = ReadNumber(text, 0.0, 1.0);
    return model.denoise.has_value();
  };
  options.Text("--denoise", "D", "a number from 0 to 1", denoise,
               "Or -dn: D of realesr-general-x4v3, 1-D of its -wdn twin");
  options.Choice<bool>(
      "--precision", {{"fp32", false}, {"int8", true}},
      [&arguments](bool int8) { arguments.int8 = int8; },
      "int8: quantise the model by the first picture, once (default: fp32)");
  options.Flag("-x,--tta", model.self_ensemble, "Average 8 flips and rotations (8 times as long)");
  options.Flag("--list-models", arguments.list_models, "Show the models that have names");
}

void AddPictureOptions(Options& options, UpscaleArguments& arguments) {
  PictureOptions& picture = arguments.picture;
  options.Group("Picture");
  options.Choice<std::pair<bool, bool>>(
      "--wrap", {{"x", {true, false}}, {"y", {false, true}}, {"xy", {true, true}}},
      [&picture](std::pair<bool, bool> wrap) { std::tie(picture.wrap_x, picture.wrap_y) = wrap; },
      "Left and right, top and bottom, go on at the other side: textures");
  options.Choice<bool>(
      "--edge", {{"reflect", false}, {"zero", true}},
      [&picture](bool zero) { picture.zero_edges = zero; },
      "What the model sees beyond the border (reflect)");
  options.Choice<AlphaMode>(
      "--alpha", {{"bicubic", AlphaMode::kBicubic}, {"model", AlphaMode::kModel}},
      [&picture](AlphaMode mode) { picture.alpha = mode; },
      "How transparency is enlarged (default: bicubic)");
  const auto background = [&arguments, &picture](const std::string& text) {
    const auto colour = ReadColour(text);
    if (colour) picture.background = *colour;
    arguments.background_given = true;
    return colour.has_value();
  };
  options.Text("--background", "COLOUR", "white, black, #rrggbb or r,g,b", background,
               "Behind transparency, for formats without (default: white)");
}

void AddWorkOptions(Options& options, UpscaleArguments& arguments, Given& given) {
  TileOptions& tiles = arguments.tiles;
  options.Group("Work");
  options.Whole("-t,--tile", "N", std::int64_t{0}, kMaxLength, tiles.tile,
                "Tile size in input pixels (default: 0, automatic)");
  options.Whole("--overlap", "N", std::int64_t{0}, std::int64_t{1} << 20, tiles.overlap,
                "Pixels around a tile computed twice (default: what the model sees)");
  options.Flag("--exact", tiles.exact, "Give the bytes of one large tile, whatever the time");
  options.Whole("--threads", "N", 1, kMaxThreads, tiles.threads, "CPUs to use (default: all)");
  const auto workers = [&given](const std::string& text) {
    given.workers = ReadWorkers(text);
    return given.workers.has_value();
  };
  options.Text("-j,--workers", "K|L:K:S", StrCat("K or load:K:save, each from 1 to ", kMaxWorkers),
               workers, "Tiles at a time; pictures at a time are L + S (default: 2)");
  options.Whole("--memory", "MB", 1, 1 << 30, given.memory_mb,
                StrCat("For the pictures in work (default: ", given.memory_mb, ")"));
  AddMaxMemory(options, arguments.max_memory);
  options.Whole("--max-pixels", "N", std::int64_t{1}, std::int64_t{1} << 40,
                arguments.read.max_pixels, "Refuse inputs that are larger (default: 2^30)");
  const auto gpu = [](const std::string& text) { return text == "-1"; };
  options.Text("-g,--gpu", "-1", "-1, which is the CPU: there is no support for GPUs", gpu,
               "The CPU, for scripts that say so");
}

void AddMessageOptions(Options& options, UpscaleArguments& arguments) {
  options.Group("Messages");
  options.Flag("--dry-run", arguments.dry_run, "Print what would be written, and write nothing");
  options.Choice<ProgressMode>(
      "--progress",
      {{"auto", ProgressMode::kAuto},
       {"bar", ProgressMode::kBar},
       {"lines", ProgressMode::kLines},
       {"json", ProgressMode::kJson},
       {"none", ProgressMode::kNone}},
      [&](ProgressMode mode) { arguments.progress = mode; },
      "On stderr (default: bar on a terminal, else lines)");
  options.Flag("-v,--verbose", arguments.verbose, "Say more of each file: tiles, memory");
  options.Flag("-q,--quiet", arguments.quiet, "Say nothing but errors");
}

// The last file is the output if no option names one.
void SortFiles(Given& given, ListOptions& list) {
  std::vector<std::filesystem::path>& files = given.positional;
  if (!given.output.empty()) {
    list.output = given.output;
  } else if (!files.empty()) {
    list.output = files.back();
    files.pop_back();
  }
  list.inputs.insert(list.inputs.end(), files.begin(), files.end());
  Require(!list.inputs.empty() && !list.output.empty(),
          "an input and an output are needed (see --help)");
}

void Check(const Given& given, const UpscaleArguments& arguments) {
  const SizeOptions& size = arguments.job.size;
  const int sizes = (size.scale ? 1 : 0) + (size.width || size.height ? 1 : 0) +
                    (size.longest ? 1 : 0) + (size.shortest ? 1 : 0);
  Require(sizes <= 1,
          "only one of --scale, --longest, --shortest, and --width with --height can be met");
  Require(!arguments.model.denoise || !arguments.model.blend,
          "--denoise and --blend exclude each other");
  Require(!arguments.tiles.exact || !arguments.tiles.overlap,
          "--exact and --overlap exclude each other");
  Require(!given.overwrite || !given.skip_existing,
          "--overwrite and --skip-existing exclude each other");
  Require(arguments.list.output != "-" || (!given.overwrite && !given.skip_existing),
          "standard output is neither overwritten nor skipped");
  Require(!arguments.verbose || (arguments.progress != ProgressMode::kJson &&
                                 arguments.progress != ProgressMode::kNone),
          "--verbose says nothing with --progress json or none");
  Require(!arguments.dry_run || arguments.progress == ProgressMode::kAuto ||
              arguments.progress == ProgressMode::kJson,
          "--dry-run has no progress to show but --progress json");
  Require(!arguments.quiet || (!arguments.verbose && arguments.progress == ProgressMode::kAuto),
          "--quiet excludes --verbose and --progress");
}

void Finish(Given& given, UpscaleArguments& arguments) {
  SortFiles(given, arguments.list);
  Check(given, arguments);
  if (given.overwrite) arguments.list.existing = Existing::kOverwrite;
  if (given.skip_existing) arguments.list.existing = Existing::kSkip;
  arguments.tiles.memory_bytes = static_cast<std::size_t>(given.memory_mb) << 20;
  if (arguments.max_memory != 0) {  // half of it is for weights, and for what is read and written
    arguments.tiles.memory_bytes = std::min(arguments.tiles.memory_bytes, arguments.max_memory / 2);
  }
  // Each picture in work has a thread.
  arguments.files = std::min(2, arguments.tiles.threads);
  if (given.workers) {
    arguments.tiles.workers = given.workers->run;
    if (given.workers->load) arguments.files = *given.workers->load + *given.workers->save;
  }
}

}  // namespace

UpscaleArguments ParseUpscaleArguments(int argc, char** argv) {
  UpscaleArguments arguments;
  arguments.tiles.threads = AvailableCpus();
  Given given;
  Options options("upscale", "Makes pictures larger with a super-resolution network.");
  options.Positional("FILES", given.positional,
                     "IN... OUT, which may be a folder; - is standard input, or output");
  AddFileOptions(options, arguments, given);
  AddSizeOptions(options, arguments.job.size);
  AddModelOptions(options, arguments);
  AddPictureOptions(options, arguments);
  AddWorkOptions(options, arguments, given);
  AddMessageOptions(options, arguments);

  // "-dn" would be read as "-d n".
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto end = std::ranges::find(words, "--");
  std::replace(words.begin(), end, std::string("-dn"), std::string("--denoise"));
  arguments.print = options.Parse(std::move(words));
  if (arguments.print.empty() && !arguments.list_models) Finish(given, arguments);
  return arguments;
}

}  // namespace tessera
