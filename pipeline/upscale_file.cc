#include "pipeline/upscale_file.h"

#include <algorithm>
#include <cmath>

#include "engine/memory_budget.h"
#include "engine/thread_team.h"
#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/picture_output.h"

namespace tessera {
namespace {

std::int64_t RoundedLength(double length) {
  Require(length < 0x1p31, "the result would be ", length, " pixels long");
  return std::max<std::int64_t>(1, std::llround(length));
}

// Width and height of the result, which keep the proportions of the input unless both are given.
void SetSize(const Upscaler& upscaler, const SizeOptions& size, PictureFormat& picture) {
  const auto width = static_cast<double>(picture.width),
             height = static_cast<double>(picture.height);
  const auto scale_by = [&](double scale) {
    picture.width = RoundedLength(width * scale);
    picture.height = RoundedLength(height * scale);
  };
  // The side that was asked for is met exactly.
  const auto fit_width = [&](std::int64_t to) {
    picture.width = to;
    picture.height = RoundedLength(height * static_cast<double>(to) / width);
  };
  const auto fit_height = [&](std::int64_t to) {
    picture.width = RoundedLength(width * static_cast<double>(to) / height);
    picture.height = to;
  };
  if (size.scale) {
    scale_by(*size.scale);
  } else if (size.longest) {
    width >= height ? fit_width(*size.longest) : fit_height(*size.longest);
  } else if (size.shortest) {
    width <= height ? fit_width(*size.shortest) : fit_height(*size.shortest);
  } else if (size.width && size.height) {
    picture.width = *size.width;
    picture.height = *size.height;
  } else if (size.width) {
    fit_width(*size.width);
  } else if (size.height) {
    fit_height(*size.height);
  } else {
    const Upscaler::Size own = upscaler.OwnSize(picture.width, picture.height);
    picture.width = own.width;
    picture.height = own.height;
  }
}

// What the output will be; finds out before any work whether it can be.
PictureFormat OutputFormat(const Upscaler& upscaler, const FileJob& job, const PictureFormat& in) {
  PictureFormat out = in;
  if (job.bit_depth) out.bit_depth = *job.bit_depth;
  out = HeldFormat(job.format, out);
  SetSize(upscaler, job.size, out);
  RequireHeldSize(job.format, out);
  // A slip of the finger, not a wish: days of work, and more than disks hold.
  constexpr std::int64_t kMaxResultPixels = std::int64_t{1} << 36;
  Require(out.width <= kMaxResultPixels / out.height, "the result has ", out.width, "x", out.height,
          " pixels; the limit is ", kMaxResultPixels, " in all");
  return out;
}

// The rows of the result that are held: those in work, and those that wait to be encoded together.
std::int64_t HeldResultRows(const FileJob& job, const PictureFormat& out,
                            const Upscaler::Plan& plan) {
  return std::min(out.height, plan.result_rows + StripRows(job.format, out) + 1);
}

}  // namespace

FilePlan PlanFile(const Upscaler& upscaler, PictureInput& input, const FileJob& job) {
  FilePlan plan{.input = input.format(), .output = {}, .upscale = {}};
  return NamingInput(input.path(), [&] {
    plan.output = OutputFormat(upscaler, job, plan.input);
    plan.upscale = upscaler.MakePlan(plan.input, plan.output);
    plan.memory_bytes = plan.upscale.bytes +
                        input.MemoryBytes(plan.upscale.input_rows, plan.upscale.fill) +
                        static_cast<std::size_t>(HeldResultRows(job, plan.output, plan.upscale)) *
                            plan.output.RowBytes() +
                        WriterBytes(job.format, plan.output, job.output != "-");
    return plan;
  });
}

void CheckMemory(const FilePlan& plan) {
  const std::size_t available = AvailableMemory();
  Require(plan.memory_bytes <= available, "a result of ", plan.output.width, "x",
          plan.output.height, " pixels takes about ", plan.memory_bytes >> 20, " MB of memory; ",
          available >> 20, " MB are there (smaller tiles take less: --memory, --tile)");
}

FileResult UpscaleFile(const Upscaler& upscaler, PictureInput& input, const FileJob& job,
                       const TileProgress& progress) {
  if (job.output != "-") NamingFile(job.output, [&] { AtomicFile::CheckTarget(job.output); });
  const FilePlan plan = PlanFile(upscaler, input, job);
  FileResult result{.input = plan.input, .output = plan.output};
  WriteOptions write = job.write;
  std::vector<std::string> lost;
  if (!job.strip_metadata)
    write.metadata = AdaptMetadata(input.metadata(), plan.output, job.format, lost);
  input.HoldRows(plan.upscale.input_rows, plan.upscale.fill);
  const Picture upscaled(plan.output, HeldResultRows(job, plan.output, plan.upscale));
  PictureOutput output(job.output, job.format, upscaled, write);
  NamingInput(input.path(), [&] {
    upscaler.Upscale(
        input.picture(), upscaled,
        {.need = [&](std::int64_t begin, std::int64_t end) { input.NeedRows(begin, end); },
         .done = [&](std::int64_t end,
                     Parallel& parallel) { return output.RowsDone(end, parallel); }},
        progress);
  });
  // An output that is newer than its input is taken for what the input became.
  input.RequireUnchanged();
  ThreadTeam team(upscaler.threads());
  output.Commit(team);

  result.notes = input.Warnings();
  result.notes.insert(result.notes.end(), lost.begin(), lost.end());
  result.notes.insert(result.notes.end(), output.notes().begin(), output.notes().end());
  if (result.input.HasAlpha() && !result.output.HasAlpha())
    result.notes.push_back(StrCat(Name(job.format), " has no alpha: flattened on the background"));
  if (!job.bit_depth && result.input.bit_depth > result.output.bit_depth)
    result.notes.push_back(StrCat(Name(job.format), " has no 16 bits: reduced to 8"));
  return result;
}

}  // namespace tessera
