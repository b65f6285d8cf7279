#include "engine/cpu_budget.h"

#include <sched.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#include "ops/error.h"
#include "simd/flush_denormals.h"

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

struct ThreadTeam::Impl {
  explicit Impl(int threads)
      : threads(std::max(1, threads)),
        // oneTBB makes as many threads as there are CPUs unless it is told otherwise.
        limit(tbb::global_control::max_allowed_parallelism,
              std::max<std::size_t>(
                  static_cast<std::size_t>(this->threads),
                  tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism))),
        arena(this->threads) {}

  int threads;
  tbb::global_control limit;
  tbb::task_arena arena;
};

ThreadTeam::ThreadTeam(int threads) : impl_(std::make_unique<Impl>(threads)) {}
ThreadTeam::~ThreadTeam() = default;

int ThreadTeam::num_threads() const { return impl_->threads; }

void ThreadTeam::For(std::int64_t count, FunctionRef<void(std::int64_t, int)> body) {
  if (count <= 1 || impl_->threads == 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  impl_->arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(0, count, 1),
        [&](const tbb::blocked_range<std::int64_t>& range) {
          const FlushDenormals flush;
          const int thread = tbb::this_task_arena::current_thread_index();
          for (std::int64_t i = range.begin(); i != range.end(); ++i) body(i, thread);
        },
        tbb::simple_partitioner());
  });
}

}  // namespace tessera
