// A picture file through a network into another file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/image_writer.h"
#include "pipeline/picture_input.h"
#include "pipeline/upscaler.h"

namespace tessera {

struct FileJob {
  std::filesystem::path output;            // may be the input
  ImageFormat format = ImageFormat::kPng;  // of the output
  // Of the output to the input; default: the model's own.
  std::optional<double> scale = std::nullopt;
  WriteOptions write = {};
};

struct FileResult {
  PictureFormat input, output;
  std::vector<std::string> notes = {};  // on what was lost or is odd, for the user
};

// Reads, upscales and writes, all three at the same time as far as that goes. The output is
// round(width * scale) by round(height * scale), at least 1x1, of the input's channels and bit
// depth as far as its format holds them. Complete, or not there (a file that was there before
// stays). Throws Error that names the file.
FileResult UpscaleFile(const Upscaler& upscaler, PictureInput& input, const FileJob& job,
                       const TileProgress& progress = {});

}  // namespace tessera
