// The control groups that limit this process (Linux, cgroups(7)).
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace tessera {

struct CgroupFolder {
  std::filesystem::path path;
  bool v2 = false;  // the names and the meaning of its files
};

// The folders with the files of the process's group and of those above it, from the bottom up: in
// version 1 those of `controller` ("cpu", "memory"), in version 2 those of all controllers. Not all
// of them need be there: a container sees the paths of its host, but only its own group. /proc and
// /sys are those in `root`.
std::vector<CgroupFolder> CgroupFolders(std::string_view controller,
                                        const std::filesystem::path& root = "/");

// The number in a file, or at the start of it; nullopt if there is none ("max" is none).
std::optional<double> ReadNumber(const std::filesystem::path& file);

// The number behind `key` in a file of lines "KEY NUMBER" or "KEY: NUMBER kB" (not converted).
std::optional<double> ReadNumber(const std::filesystem::path& file, std::string_view key);

}  // namespace tessera
