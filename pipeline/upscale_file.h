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

// How large the output is to be; at most one of the three ways. None: the model's own scale.
struct SizeOptions {
  std::optional<double> scale = std::nullopt;  // of the output to the input
  // In pixels. One of the two alone keeps the picture's proportions.
  std::optional<std::int64_t> width = std::nullopt, height = std::nullopt;
  // Of the longer, or the shorter, side.
  std::optional<std::int64_t> longest = std::nullopt, shortest = std::nullopt;
};

struct FileJob {
  std::filesystem::path output = {};       // may be the input; "-" is standard output
  ImageFormat format = ImageFormat::kPng;  // of the output
  SizeOptions size = {};
  std::optional<int> bit_depth = std::nullopt;  // 8 or 16; default: the input's
  bool strip_metadata = false;
  WriteOptions write = {};  // its metadata are those of the input
};

// What will be done with a file.
struct FilePlan {
  PictureFormat input, output;
  Upscaler::Plan upscale;
  std::size_t memory_bytes = 0;  // of all buffers, those of reader and writer too; an estimate
};

struct FileResult {
  PictureFormat input, output;
  std::vector<std::string> notes = {};  // on what was lost or is odd, for the user
};

// Opens the input, and says what its output will be and take. Throws Error that names the file if
// it cannot be read or the output's format cannot hold the size.
FilePlan PlanFile(const Upscaler& upscaler, PictureInput& input, const FileJob& job);
// Throws Error, with the numbers, if the memory that is there now does not suffice.
void CheckMemory(const FilePlan& plan);

// Reads, upscales and writes, all three at the same time as far as that goes. The output is as
// PlanFile says. Complete, or not there (a file that was there before stays). Throws Error that
// names the file.
FileResult UpscaleFile(const Upscaler& upscaler, PictureInput& input, const FileJob& job,
                       const TileProgress& progress = {});

}  // namespace tessera
