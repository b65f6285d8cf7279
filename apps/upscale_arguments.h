// The command line of `upscale`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/upscale_model.h"
#include "pipeline/file_list.h"
#include "pipeline/upscale_file.h"

namespace tessera {

enum class ProgressMode : std::uint8_t { kAuto, kBar, kLines, kJson, kNone };

struct UpscaleArguments {
  std::string print;  // help or version, to be shown instead of doing anything
  bool list_models = false;

  ListOptions list;
  ModelChoice model;
  bool int8 = false;  // it is to compute with 8-bit integers
  FileJob job;        // for all files, but for output and format
  PictureOptions picture;
  bool background_given = false;
  TileOptions tiles;
  ReadOptions read;
  int files = 1;               // in work at a time
  std::size_t max_memory = 0;  // bytes; 0: DefaultMaxMemory()

  bool dry_run = false;
  ProgressMode progress = ProgressMode::kAuto;
  bool verbose = false, quiet = false;
};

// Throws Error for what cannot be meant.
UpscaleArguments ParseUpscaleArguments(int argc, char** argv);

}  // namespace tessera
