// What the system says of a file.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <filesystem>
#include <optional>
#include <system_error>

namespace tessera {

// The same for all names of a file.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  friend auto operator<=>(const FileId&, const FileId&) = default;
};

inline FileId IdOf(const struct stat& status) { return {status.st_dev, status.st_ino}; }

// Of what a link leads to. nullopt: it is not there, or may not be looked at.
inline std::optional<struct stat> StatusOf(const std::filesystem::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

inline bool IsFolder(const std::optional<struct stat>& status) {
  return status && S_ISDIR(status->st_mode);
}

// Whether both names lead to the same file, or would if it were there.
inline bool SameFile(const std::filesystem::path& a, const std::filesystem::path& b) {
  const auto status_a = StatusOf(a), status_b = StatusOf(b);
  if (status_a && status_b) return IdOf(*status_a) == IdOf(*status_b);
  if (status_a || status_b) return false;
  std::error_code error;
  const std::filesystem::path whole_a = std::filesystem::weakly_canonical(a, error);
  if (error) return false;
  return whole_a == std::filesystem::weakly_canonical(b, error) && !error;
}

}  // namespace tessera
