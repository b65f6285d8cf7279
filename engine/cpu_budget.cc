#include "engine/cpu_budget.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "engine/cgroup.h"

namespace tessera {
namespace {

// CPUs that a quota of `quota` microseconds each `period` is worth.
int QuotaCpus(double quota, double period) {
  if (quota <= 0 || period <= 0) return std::numeric_limits<int>::max();
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

// The smallest quota of the process's cgroup and the groups above it.
int CgroupCpus() {
  int cpus = std::numeric_limits<int>::max();
  for (const CgroupFolder& group : CgroupFolders("cpu")) {
    if (group.v2) {
      std::ifstream in(group.path / "cpu.max");
      std::string quota;
      double period = 0;
      if (in >> quota >> period && quota != "max") {
        cpus = std::min(cpus, QuotaCpus(std::atof(quota.c_str()), period));
      }
    } else {
      cpus = std::min(cpus, QuotaCpus(ReadNumber(group.path / "cpu.cfs_quota_us").value_or(-1),
                                      ReadNumber(group.path / "cpu.cfs_period_us").value_or(-1)));
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
