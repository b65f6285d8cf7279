// A file that is complete or absent.
#pragma once

#include <cstddef>
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
  // that is written. Throws Error if the target is a folder or another thing that is no file
  // (streams like /dev/stdout too), or the folder is not writable. Without `overwrite`, that there
  // is a file is an Error, here and, if others made it meanwhile, of Commit.
  explicit AtomicFile(const std::filesystem::path& target, bool overwrite = true);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Throws the Errors of the constructor that can be told beforehand, and creates nothing. The
  // reason tells why the target's folder cannot be created, if it is not there; that it is not is
  // enough for an Error unless it is going to be made (`makes_folder`).
  static void CheckTarget(const std::filesystem::path& target, bool makes_folder = false);

  // Throws the Errors of the constructor for what is there: no file, or a file without `overwrite`.
  static void CheckOverwrite(const std::filesystem::path& target, bool overwrite);

  // Where to write to. Errors of the stream are found at the latest by Commit.
  std::FILE* stream() const { return stream_; }

  // Flushes, waits until the disk has it (fsync), renames, and waits until the disk has the name as
  // far as the file system can say. Throws Error if anything could not be written, or would replace
  // what it may not. To be called at most once.
  void Commit();

  // Removes the temporary names of all AtomicFiles that are open; from then on every use of one
  // blocks for ever. For programs that are about to end because they were interrupted.
  static void AbandonAll();

  // Removes the temporary files in `folder` ("" is the current one) whose program has ended without
  // it (SIGKILL, a crash); those that are being written, by whatever program, stay. They are told
  // apart by a lock (flock) that ends with the program: where the file system has none, all stay.
  // Returns how many are gone; those that cannot be removed stay silently.
  static std::size_t RemoveStale(const std::filesystem::path& folder);

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  bool overwrite_;
  std::FILE* stream_ = nullptr;
  int lock_fd_ = -1;  // holds the lock from before the first byte to after the renaming
};

}  // namespace tessera
