#include "engine/memory_budget.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "engine/cgroup.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Bytes, also as kB of /proc times kKilo; infinity where there is no limit.
constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr double kKilo = 1024;

// What the files of one group leave to the processes in it.
double GroupMemory(const CgroupFolder& group) {
  const auto number = [&](const char* file) { return ReadNumber(group.path / file); };
  const double limit =
      group.v2 ? std::min(number("memory.max").value_or(kUnlimited),
                          number("memory.high").value_or(kUnlimited))  // above it, it is slowed
               : number("memory.limit_in_bytes").value_or(kUnlimited);
  const double used = number(group.v2 ? "memory.current" : "memory.usage_in_bytes").value_or(0);
  const double cache =
      ReadNumber(group.path / "memory.stat", group.v2 ? "inactive_file" : "total_inactive_file")
          .value_or(0);
  return limit - std::max(0.0, used - cache);
}

// What a limit of this process leaves of what /proc/self/status calls `key`.
double LimitMemory(int resource, const fs::path& status, std::string_view key) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return static_cast<double>(limit.rlim_cur) - kKilo * ReadNumber(status, key).value_or(0);
}

}  // namespace

std::size_t AvailableMemory(const fs::path& root) {
  const fs::path proc = root / "proc", status = proc / "self/status";
  double bytes = kUnlimited;
  if (const auto available = ReadNumber(proc / "meminfo", "MemAvailable")) {
    bytes = kKilo * *available;
  }
  for (const CgroupFolder& group : CgroupFolders("memory", root)) {
    bytes = std::min(bytes, GroupMemory(group));
  }
  bytes = std::min({bytes, LimitMemory(RLIMIT_AS, status, "VmSize"),
                    LimitMemory(RLIMIT_DATA, status, "VmData")});
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  if (bytes >= static_cast<double>(kMost)) return kMost;
  return static_cast<std::size_t>(std::max(0.0, bytes));
}

}  // namespace tessera
