#include "pipeline/upscale_file.h"

#include <algorithm>
#include <cmath>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/image_reader.h"

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
  if (job.scale) {
    out.width = ScaledLength(in.width, *job.scale);
    out.height = ScaledLength(in.height, *job.scale);
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

FileResult UpscaleFile(const Upscaler& upscaler, const FileJob& job, const TileProgress& progress) {
  NamingFile(job.output, [&] { AtomicFile::CheckTarget(job.output); });
  FileResult result;
  const Picture upscaled = NamingFile(job.input, [&] {
    const std::unique_ptr<ImageReader> reader = OpenImage(job.input);
    result.input = reader->format();
    result.output = OutputFormat(upscaler, job, result.input);
    const Picture picture = ReadAll(*reader);
    result.notes = reader->warnings();
    return upscaler.Upscale(picture, result.output, progress);
  });
  if (result.input.HasAlpha() && !result.output.HasAlpha())
    result.notes.push_back(StrCat(Name(job.format), " has no alpha: flattened on white"));
  if (result.input.bit_depth > result.output.bit_depth)
    result.notes.push_back(StrCat(Name(job.format), " has no 16 bits: reduced to 8"));
  WritePicture(job.output, job.format, upscaled, job.write);
  return result;
}

}  // namespace tessera
