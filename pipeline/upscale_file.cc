#include "pipeline/upscale_file.h"

#include <algorithm>
#include <cmath>

#include "engine/thread_team.h"
#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/picture_output.h"

namespace tessera {
namespace {

std::int64_t ScaledLength(std::int64_t length, double scale) {
  const double scaled = static_cast<double>(length) * scale;
  Require(scaled < 0x1p31, "at a scale of ", scale, " it would be ", scaled, " pixels long");
  return std::max<std::int64_t>(1, std::llround(scaled));
}

// What the output will be; finds out before any work whether it can be.
PictureFormat OutputFormat(const Upscaler& upscaler, const FileJob& job, const PictureFormat& in) {
  PictureFormat out = HeldFormat(job.format, in);
  if (job.size.scale) {
    out.width = ScaledLength(in.width, *job.size.scale);
    out.height = ScaledLength(in.height, *job.size.scale);
  } else {
    const Upscaler::Size size = upscaler.OwnSize(in.width, in.height);
    out.width = size.width;
    out.height = size.height;
  }
  const std::int64_t limit = MaxDimension(job.format);
  Require(out.width <= limit && out.height <= limit, "the result has ", out.width, "x", out.height,
          " pixels; ", Name(job.format), " holds at most ", limit, " a side");
  return out;
}

}  // namespace

FilePlan PlanFile(const Upscaler& upscaler, PictureInput& input, const FileJob& job) {
  FilePlan plan{.input = input.format(), .output = {}, .upscale = {}};
  return NamingFile(input.path(), [&] {
    plan.output = OutputFormat(upscaler, job, plan.input);
    plan.upscale = upscaler.MakePlan(plan.input, plan.output);
    plan.memory_bytes = plan.upscale.bytes + WriterBytes(job.format, plan.output);
    return plan;
  });
}

FileResult UpscaleFile(const Upscaler& upscaler, PictureInput& input, const FileJob& job,
                       const TileProgress& progress) {
  NamingFile(job.output, [&] { AtomicFile::CheckTarget(job.output); });
  FileResult result{.input = input.format(), .output = {}};
  result.output =
      NamingFile(input.path(), [&] { return OutputFormat(upscaler, job, result.input); });
  const Picture upscaled(result.output);
  PictureOutput output(job.output, job.format, upscaled, job.write);
  NamingFile(input.path(), [&] {
    upscaler.Upscale(input.picture(), upscaled,
                     {.need = [&](std::int64_t end) { input.NeedRows(end); },
                      .done = [&](std::int64_t end) { output.RowsDone(end); }},
                     progress);
  });
  ThreadTeam team(upscaler.threads());
  output.Commit(team);

  result.notes = input.Warnings();
  if (result.input.HasAlpha() && !result.output.HasAlpha())
    result.notes.push_back(StrCat(Name(job.format), " has no alpha: flattened on white"));
  if (result.input.bit_depth > result.output.bit_depth)
    result.notes.push_back(StrCat(Name(job.format), " has no 16 bits: reduced to 8"));
  return result;
}

}  // namespace tessera
