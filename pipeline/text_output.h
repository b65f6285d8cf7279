// Text that is written piece by piece.
#pragma once

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/atomic_file.h"

namespace tessera {

// A file that is complete or absent (atomic_file.h), or standard output, which shows every piece at
// once. Errors name the file.
class TextOutput {
 public:
  // "-" is standard output. Throws Error if the file cannot be written, or exists without
  // `overwrite`. Removes what programs that were killed left half written in its folder.
  TextOutput(const std::filesystem::path& path, bool overwrite);

  // Throws Error if the text could not be written. Files may find that out later, at Close.
  void Write(std::string_view text);
  // Puts the file in its place. Throws Error if others made one there meanwhile, unless
  // `overwrite`. To be called at most once; without it nothing remains of the file.
  void Close();

 private:
  std::FILE* stream() const { return file_ ? file_->stream() : stdout; }

  std::string shown_name_;
  std::optional<AtomicFile> file_;
};

}  // namespace tessera
