#include "engine/cpu_budget.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#include "ops/error.h"

namespace tessera {
namespace {

// CPUs that a quota of `quota` microseconds each `period` is worth.
int QuotaCpus(double quota, double period) {
  if (quota <= 0 || period <= 0) return std::numeric_limits<int>::max();
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

double ReadNumber(const std::string& path) {
  std::ifstream in(path);
  double value = -1;
  in >> value;
  return in ? value : -1;
}

// The smallest quota of the process's cgroup and the groups above it.
int CgroupCpus() {
  int cpus = std::numeric_limits<int>::max();
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // "0::/path" is version 2, "N:cpu,cpuacct:/path" version 1.
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = StrCat(",", line.substr(first + 1, second - first - 1), ",");
    const bool v2 = controllers == ",,";
    if (!v2 && controllers.find(",cpu,") == std::string::npos) continue;
    const std::string root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    std::string path = line.substr(second + 1);
    while (true) {
      const std::string folder = root + path + (path.ends_with('/') ? "" : "/");
      if (v2) {
        std::ifstream in(folder + "cpu.max");
        std::string quota;
        double period = 0;
        if (in >> quota >> period && quota != "max") {
          cpus = std::min(cpus, QuotaCpus(std::atof(quota.c_str()), period));
        }
      } else {
        cpus = std::min(cpus, QuotaCpus(ReadNumber(folder + "cpu.cfs_quota_us"),
                                        ReadNumber(folder + "cpu.cfs_period_us")));
      }
      if (path.empty() || path == "/") break;
      path.erase(path.find_last_of('/'));
    }
  }
  return cpus;
}

}  // namespace

int AvailableCpus() {
  static const int available = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    int cpus = sched_getaffinity(0, sizeof(set), &set) == 0
                   ? CPU_COUNT(&set)
                   : static_cast<int>(std::thread::hardware_concurrency());
    return std::max(1, std::min(cpus, CgroupCpus()));
  }();
  return available;
}

}  // namespace tessera
