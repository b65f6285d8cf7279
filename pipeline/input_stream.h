// Files, pipes and standard input as streams that a picture can be read from.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace tessera {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, FileCloser>;

// Opens a file to read; "-" is standard input. Throws Error with the system's reason.
FilePtr OpenInput(const std::filesystem::path& path);

// The first `size` bytes, or all if there are fewer. `file` gives them again afterwards, even if it
// is a pipe: then it becomes a stream that cannot seek. To be called before anything is read.
// Throws Error if the file cannot be read.
std::string Peek(FilePtr& file, std::size_t size);

// Whether the stream is an ordinary file that can seek, and at its start: one that others have read
// or written before has other offsets.
bool IsSeekable(std::FILE* file);

// What is left of the stream. Throws Error if it cannot be read, or is longer than `limit` bytes.
std::string ReadToEnd(std::FILE* file, std::size_t limit);

// A stream that can seek, with the same bytes: the file itself, or else a copy of it in memory of
// at most `limit` bytes. Throws Error as ReadToEnd does.
FilePtr MakeSeekable(FilePtr file, std::size_t limit);

// Standard input, to be read more than once. Takes what comes through a pipe into memory, all of
// it.
class RepeatableStandardInput {
 public:
  // Throws Error with the system's reason if it cannot be read.
  RepeatableStandardInput();
  // The next that opens it begins where the first did.
  void Rewind() const;

 private:
  off_t start_ = 0;
};

// The length of a stream that can seek. Leaves it at its start.
std::size_t FileSize(std::FILE* file);

}  // namespace tessera
