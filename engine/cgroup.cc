#include "engine/cgroup.h"

#include <fstream>
#include <sstream>
#include <string>

#include "ops/error.h"

namespace tessera {

namespace fs = std::filesystem;

std::vector<CgroupFolder> CgroupFolders(std::string_view controller, const fs::path& root) {
  std::vector<CgroupFolder> folders;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/path" is version 2, "N:cpu,cpuacct:/path" version 1.
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = StrCat(",", line.substr(first + 1, second - first - 1), ",");
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(StrCat(",", controller, ",")) == std::string::npos) continue;
    const fs::path mount = v2 ? root / "sys/fs/cgroup" : root / "sys/fs/cgroup" / controller;
    std::string path = line.substr(second + 1);
    while (true) {
      const fs::path group = fs::path(path).relative_path();
      folders.push_back({group.empty() ? mount : mount / group, v2});
      if (path.empty() || path == "/") break;
      path.erase(path.find_last_of('/'));
    }
  }
  return folders;
}

std::optional<double> ReadNumber(const fs::path& file) {
  std::ifstream in(file);
  double value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

std::optional<double> ReadNumber(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    double value = 0;
    words >> word;
    if (word.ends_with(':')) word.pop_back();
    if (word == key && words >> value) return value;
  }
  return std::nullopt;
}

}  // namespace tessera
