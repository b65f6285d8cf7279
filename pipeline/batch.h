// Many picture files through one network.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "pipeline/upscale_file.h"

namespace tessera {

struct BatchFile {
  std::filesystem::path input;  // "-" is standard input
  FileJob job;
};

struct BatchOptions {
  // Files in work at a time, at most: while one is read or written, the others keep the CPUs busy.
  int files = 2;
  // For the files in work, by their plans' estimates; not more than there is (AvailableMemory). One
  // file is let in in any case.
  std::size_t memory_bytes = TileOptions().memory_bytes;
  ReadOptions read = {};
  // Only says what would be done: Planned or Failed for each file, and nothing is written.
  bool dry_run = false;
  bool makes_folders = false;  // those of the outputs, before a run that is no dry one
};

// What happens to the files, by their place in the list. One call at a time, from any thread. A
// file is Planned and then Done or Failed, or Failed at once.
class BatchEvents {
 public:
  virtual ~BatchEvents() = default;
  // Its run starts next.
  virtual void Planned(std::size_t file, const FilePlan& plan) = 0;
  virtual void Progress(std::size_t file, std::size_t tiles_done) = 0;
  // `seconds` since the file was opened.
  virtual void Done(std::size_t file, const FileResult& result, double seconds) = 0;
  // `reason` begins with the name of the file that is at fault.
  virtual void Failed(std::size_t file, const std::string& reason) = 0;
};

// Upscales all files; one that fails stops no other. They are begun in their order. What is written
// does not depend on how many are in work.
void UpscaleFiles(const Upscaler& upscaler, std::span<const BatchFile> files,
                  const BatchOptions& options, BatchEvents& events);

}  // namespace tessera
