#include "pipeline/tile_workers.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/thread_team.h"

namespace tessera {

void ForEachTile(const TilePlan& plan,
                 FunctionRef<void(const Tile& tile, int worker, Parallel& parallel)> body) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::exception_ptr error;  // the first one

  const auto work = [&](int worker) {
    try {
      ThreadTeam team(plan.ThreadsOf(worker));
      for (std::size_t i = next++; i < plan.tiling.tiles.size() && !failed; i = next++)
        body(plan.tiling.tiles[i], worker, team);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!failed.exchange(true)) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int worker = 1; worker < plan.workers; ++worker) others.emplace_back(work, worker);
    } catch (const std::system_error&) {
      // The system has no more threads: the work is done without.
    }
    work(0);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace tessera
