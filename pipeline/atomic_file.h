// A file that is complete or absent.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

namespace tessera {

// Writes to a temporary name (".tessera-....tmp") in the target's folder; Commit puts it in the
// target's place in one step. Without Commit nothing remains and a target that was there before is
// untouched. Errors give the reason without the name. Threads may use different AtomicFiles.
class AtomicFile {
 public:
  // Creates the temporary file, with the permissions of the file that it will replace, if there is
  // one. A target that is a link stays one; the file that it leads to, there or not, is the one
  // that is written. Throws Error if the target is a folder or another thing that is no file, or
  // the folder is not writable.
  explicit AtomicFile(const std::filesystem::path& target);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Throws the Errors of the constructor that can be told beforehand, and creates nothing.
  static void CheckTarget(const std::filesystem::path& target);

  // Where to write to. Errors of the stream are found at the latest by Commit.
  std::FILE* stream() const { return stream_; }

  // Flushes, waits until the disk has it (fsync), renames. Throws Error if anything could not be
  // written. To be called at most once.
  void Commit();

  // Removes the temporary names of all AtomicFiles that are open; from then on every use of one
  // blocks for ever. For programs that are about to end because they were interrupted.
  static void AbandonAll();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::FILE* stream_ = nullptr;
};

}  // namespace tessera
