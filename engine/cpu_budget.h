// The CPU time that this process may use, and threads to use it with.
#pragma once

#include <memory>

#include "ops/parallel.h"

namespace tessera {

// CPUs that the affinity mask and the cgroup quota (v1 or v2, rounded up) leave to this process;
// at least 1.
int AvailableCpus();

// Threads for runs: `threads` at most at a time, the caller among them. Made once (threads start
// lazily), used by one caller at a time.
class ThreadTeam final : public Parallel {
 public:
  explicit ThreadTeam(int threads);
  ~ThreadTeam() override;
  int num_threads() const override;
  void For(std::int64_t count, FunctionRef<void(std::int64_t, int)> body) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
