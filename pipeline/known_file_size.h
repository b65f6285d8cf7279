// Whether a file can hold what its header claims.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <optional>

namespace tessera {

// Bytes of a regular file; nullopt for a pipe and the like, of which nobody knows.
inline std::optional<std::int64_t> KnownFileSize(std::FILE* file) {
  struct stat status;
  if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return status.st_size;
}

}  // namespace tessera
