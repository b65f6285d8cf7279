// Threads for runs, all of them within one budget.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ops/parallel.h"

namespace tessera {

class ThreadTeam;

// CPUs, shared by the teams that are at work. Each caller takes one; what is left goes to helper
// threads, which serve one team at a time and sleep otherwise. A caller that comes when all CPUs
// are taken gets that of a helper of another team, which leaves it after the task that it is at:
// there are never more helpers and callers at work than CPUs, unless there are more callers.
class CpuBudget {
 public:
  explicit CpuBudget(int cpus);
  ~CpuBudget();  // no team may be left
  CpuBudget(const CpuBudget&) = delete;
  CpuBudget& operator=(const CpuBudget&) = delete;

  // That of this process: AvailableCpus(), unless it was limited.
  static CpuBudget& OfProcess();
  // Takes away all CPUs but so many. While no team is at work.
  void Limit(int cpus);

 private:
  friend class ThreadTeam;

  struct Helper {
    std::atomic<ThreadTeam*> team = nullptr;  // that it is to serve
    ThreadTeam* attached = nullptr;           // whose memory it may touch still
    std::atomic<std::uint32_t> wake = 0;      // changes when `team` is set, or it is to stop
    std::thread thread;
  };

  // All with the mutex held.
  void Update();
  void GiveHelpers(ThreadTeam& team);
  void Assign(Helper& helper, ThreadTeam& team);
  void Release(Helper& helper);

  void Serve(Helper& helper);

  int cpus_;
  std::mutex mutex_;
  std::condition_variable detached_;  // a helper has left its team
  std::vector<std::unique_ptr<Helper>> helpers_;
  int callers_ = 0, serving_ = 0;
  std::atomic<int> free_ = 0;  // CPUs that nobody has
  std::atomic<bool> stop_ = false;
};

// The caller, and helpers of the budget: `threads` at most at a time, fewer while others need the
// CPUs. Made once, used by one caller at a time; its tasks use neither
// this team nor another one.
class ThreadTeam final : public Parallel {
 public:
  explicit ThreadTeam(int threads, CpuBudget& budget = CpuBudget::OfProcess());
  ~ThreadTeam() override;
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int num_threads() const override { return threads_; }
  void Begin() override;
  void End() override;
  void For(std::int64_t count, FunctionRef<void(std::int64_t, int)> body) override;

 private:
  friend class CpuBudget;
  using Body = FunctionRef<void(std::int64_t, int)>;

  // Runs a task that nobody has taken; false if there is none.
  bool RunTask(int thread);
  // The one that was taken when so many tasks of its share were left.
  void RunTask(int thread, int share, std::int64_t left);
  // What a helper does from when it is assigned until it is not.
  void Help(int thread, const std::atomic<ThreadTeam*>& assigned);

  const int threads_;
  CpuBudget& budget_;
  int depth_ = 0;  // of Begin

  // By the budget, under its mutex.
  std::atomic<int> helpers_ = 0;
  std::vector<bool> thread_taken_;

  // The tasks of one For, cut into a share for each thread at work. A thread begins with its own,
  // so that it meets the same part of the picture again in the next step, in its own cache, and
  // goes on with those of others. `tickets` holds the number of tasks that nobody has taken yet
  // and, above them, the number of the For: a thread that is late takes none of another one.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> tickets = 0;
  };
  static constexpr int kCountBits = 40;
  static constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;
  const std::unique_ptr<Share[]> shares_;
  std::atomic<int> num_shares_ = 0;
  std::uint64_t number_ = 0;
  std::int64_t count_ = 0;
  const Body* body_ = nullptr;
  alignas(64) std::atomic<std::int64_t> done_ = 0;
  std::atomic<std::uint32_t> wake_ = 0;  // changes with each For, and when a helper is released
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace tessera
