#include "engine/thread_team.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "engine/cpu_budget.h"
#include "simd/flush_denormals.h"

namespace tessera {
namespace {

// To fall asleep and be woken takes longer than most steps of a small network: threads that wait
// for the next step watch for it at first. After a run they do so for as long as it takes to start
// another one, when runs follow each other.
constexpr std::chrono::microseconds kWatchDuringRun{200}, kWatchAfterRun{20};

// Whether `ready` became true within that time.
template <class Ready>
bool Watch(std::chrono::microseconds limit, const Ready& ready) {
  using Clock = std::chrono::steady_clock;
  constexpr int kLooksPerClock = 32;
  const Clock::time_point end = Clock::now() + limit;
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (ready()) return true;
      hwy::Pause();
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace

CpuBudget::CpuBudget(int cpus) : cpus_(std::max(1, cpus)) { Update(); }

CpuBudget::~CpuBudget() {
  stop_ = true;
  for (const auto& helper : helpers_) {
    ++helper->wake;
    helper->wake.notify_one();
    helper->thread.join();
  }
}

CpuBudget& CpuBudget::OfProcess() {
  // Never destroyed: sessions that are static objects may outlive any other static object.
  static CpuBudget& budget = *new CpuBudget(AvailableCpus());
  return budget;
}

void CpuBudget::Limit(int cpus) {
  const std::lock_guard lock(mutex_);
  cpus_ = std::max(1, std::min(cpus_, cpus));
  Update();
}

void CpuBudget::Update() { free_ = std::max(0, cpus_ - callers_ - serving_); }

void CpuBudget::Assign(Helper& helper, ThreadTeam& team) {
  ++serving_;
  ++team.helpers_;
  helper.team = &team;
  ++helper.wake;
  helper.wake.notify_one();
}

void CpuBudget::Release(Helper& helper) {
  ThreadTeam& team = *helper.team;
  --serving_;
  --team.helpers_;
  helper.team = nullptr;
  ++team.wake_;
  team.wake_.notify_all();
}

// Those that have not left this team yet first.
void CpuBudget::GiveHelpers(ThreadTeam& team) {
  for (const bool attached : {true, false}) {
    for (const auto& helper : helpers_) {
      if (free_ == 0 || team.helpers_ >= team.threads_ - 1) return;
      if (helper->team != nullptr || (helper->attached == &team) != attached) continue;
      Assign(*helper, team);
      Update();
    }
  }
  while (free_ > 0 && team.helpers_ < team.threads_ - 1) {
    auto helper = std::make_unique<Helper>();
    try {
      helper->thread = std::thread([this, h = helper.get()] { Serve(*h); });
    } catch (const std::system_error&) {
      return;  // the system has no more threads: the work is done without
    }
    helpers_.push_back(std::move(helper));
    Assign(*helpers_.back(), team);
    Update();
  }
}

void CpuBudget::Serve(Helper& helper) {
  const FlushDenormals flush;
  while (!stop_) {
    const std::uint32_t wake = helper.wake;
    const auto called = [&] { return helper.team != nullptr || stop_; };
    Watch(kWatchAfterRun, [&] { return called() || free_ == 0; });
    if (!called()) {
      helper.wake.wait(wake);
      continue;
    }
    std::unique_lock lock(mutex_);
    ThreadTeam* team = helper.team;
    if (team == nullptr) continue;
    // A helper that was released may have its number still.
    auto& taken = team->thread_taken_;
    const auto number = std::find(taken.begin(), taken.end(), false);
    if (number == taken.end()) {
      detached_.wait(lock);
      continue;
    }
    *number = true;
    helper.attached = team;
    lock.unlock();
    team->Help(static_cast<int>(number - taken.begin()), helper.team);
    lock.lock();
    *number = false;
    helper.attached = nullptr;
    detached_.notify_all();
  }
}

ThreadTeam::ThreadTeam(int threads, CpuBudget& budget)
    : threads_(std::max(1, threads)),
      budget_(budget),
      thread_taken_(static_cast<std::size_t>(threads_)),
      shares_(std::make_unique<Share[]>(static_cast<std::size_t>(threads_))) {
  thread_taken_[0] = true;  // the caller's
}

ThreadTeam::~ThreadTeam() {
  std::unique_lock lock(budget_.mutex_);
  budget_.detached_.wait(lock, [&] {
    return std::none_of(budget_.helpers_.begin(), budget_.helpers_.end(),
                        [&](const auto& helper) { return helper->attached == this; });
  });
}

void ThreadTeam::Begin() {
  if (depth_++ > 0) return;
  std::unique_lock lock(budget_.mutex_);
  ++budget_.callers_;
  budget_.Update();
  if (budget_.callers_ + budget_.serving_ > budget_.cpus_) {
    for (auto it = budget_.helpers_.rbegin(); it != budget_.helpers_.rend(); ++it) {
      CpuBudget::Helper& helper = **it;
      ThreadTeam* team = helper.team;
      if (team == nullptr) continue;
      budget_.Release(helper);
      budget_.detached_.wait(lock, [&] { return helper.attached != team; });
      break;
    }
  }
  budget_.GiveHelpers(*this);
}

void ThreadTeam::End() {
  if (--depth_ > 0) return;
  const std::lock_guard lock(budget_.mutex_);
  for (const auto& helper : budget_.helpers_) {
    if (helper->team == this) budget_.Release(*helper);
  }
  --budget_.callers_;
  budget_.Update();
}

void ThreadTeam::For(std::int64_t count, Body body) {
  const FlushDenormals flush;
  const ParallelSection section(*this);
  if (count > 1 && helpers_ < threads_ - 1 && budget_.free_ > 0) {
    const std::lock_guard lock(budget_.mutex_);
    budget_.GiveHelpers(*this);
  }
  if (count <= 1 || helpers_ == 0) {
    for (std::int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  count_ = count;
  body_ = &body;
  done_.store(0, std::memory_order_relaxed);
  const int shares = helpers_ + 1;
  num_shares_.store(shares, std::memory_order_relaxed);
  ++number_;
  for (int s = 0; s < shares; ++s) {
    const std::int64_t tasks = count * (s + 1) / shares - count * s / shares;
    shares_[static_cast<std::size_t>(s)].tickets.store(
        (number_ << kCountBits) | static_cast<std::uint64_t>(tasks), std::memory_order_release);
  }
  ++wake_;
  wake_.notify_all();
  while (RunTask(0)) {
  }
  while (!Watch(kWatchDuringRun, [&] { return done_ == count; })) {
    const std::int64_t done = done_;
    if (done != count) done_.wait(done);
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool ThreadTeam::RunTask(int thread) {
  const int shares = num_shares_.load(std::memory_order_relaxed);
  for (int i = 0; i < shares; ++i) {
    const int s = (thread + i) % shares;
    std::uint64_t tickets =
        shares_[static_cast<std::size_t>(s)].tickets.load(std::memory_order_acquire);
    while ((tickets & kCountMask) != 0) {
      if (shares_[static_cast<std::size_t>(s)].tickets.compare_exchange_weak(
              tickets, tickets - 1, std::memory_order_acq_rel)) {
        RunTask(thread, s, static_cast<std::int64_t>(tickets & kCountMask));
        return true;
      }
    }
  }
  return false;
}

// This For cannot end, and another not begin, before the task is done.
void ThreadTeam::RunTask(int thread, int share, std::int64_t left) {
  const std::int64_t count = count_;
  try {
    const std::int64_t end = count * (share + 1) / num_shares_.load(std::memory_order_relaxed);
    (*body_)(end - left, thread);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::current_exception();
  }
  if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) done_.notify_all();
}

void ThreadTeam::Help(int thread, const std::atomic<ThreadTeam*>& assigned) {
  while (true) {
    // Before all that it announces: what changes after this look ends the wait.
    const std::uint32_t wake = wake_;
    if (assigned != this) return;
    if (RunTask(thread)) continue;
    if (!Watch(kWatchDuringRun, [&] { return wake_ != wake; })) wake_.wait(wake);
  }
}

}  // namespace tessera
