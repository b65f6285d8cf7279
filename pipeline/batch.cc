#include "pipeline/batch.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/memory_budget.h"
#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "simd/memory_limit.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

// The memory of the files in work. One thread at a time waits.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t bytes) : bytes_(bytes) {}

  // Waits until `bytes` are free, or nobody has any.
  void Take(std::size_t bytes) {
    std::unique_lock lock(mutex_);
    freed_.wait(lock,
                [&] { return owners_ == 0 || (taken_ <= bytes_ && bytes <= bytes_ - taken_); });
    ++owners_;
    taken_ += bytes;
  }
  void Return(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    --owners_;
    taken_ -= bytes;
    freed_.notify_one();
  }
  // Waits until nobody has any; false if nobody had.
  bool AwaitAll() {
    std::unique_lock lock(mutex_);
    if (owners_ == 0) return false;
    freed_.wait(lock, [&] { return owners_ == 0; });
    return true;
  }

 private:
  const std::size_t bytes_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::size_t taken_ = 0;
  int owners_ = 0;
};

class Batch {
 public:
  Batch(const Upscaler& upscaler, std::span<const BatchFile> files, const BatchOptions& options,
        BatchEvents& events)
      : upscaler_(upscaler),
        files_(files),
        options_(options),
        events_(events),
        memory_(std::min(options.memory_bytes, AvailableMemory())) {}

  // Takes one file after the other until none is left.
  void Work() {
    while (true) {
      std::unique_lock entrance(entrance_);
      if (next_ == files_.size()) return;
      const std::size_t file = next_++;
      try {
        Upscale(file, std::move(entrance));
      } catch (const Error& error) {
        Failed(file, error.what());
      } catch (const std::bad_alloc& error) {
        Failed(file, StrCat(InputName(files_[file].input), ": ", MemoryMessage(error)));
      } catch (const std::exception& error) {
        Failed(file, StrCat(InputName(files_[file].input), ": ", error.what()));
      }
    }
  }

 private:
  // Files are opened one at a time and wait at the entrance for their memory: only one takes any
  // before it is let in, and a large file is not overtaken for ever by small ones.
  void Upscale(std::size_t file, std::unique_lock<std::mutex> entrance) {
    const Clock::time_point start = Clock::now();
    const BatchFile& each = files_[file];
    PictureInput input(each.input, options_.read);
    const FilePlan plan = PlanFile(upscaler_, input, each.job);
    NamingInput(each.input, [&] { AwaitMemory(plan); });
    if (options_.dry_run) {
      if (each.job.output != "-") {
        NamingFile(each.job.output,
                   [&] { AtomicFile::CheckTarget(each.job.output, options_.makes_folders); });
      }
      const std::lock_guard lock(events_mutex_);
      events_.Planned(file, plan);
      return;
    }
    memory_.Take(plan.memory_bytes);
    entrance.unlock();
    const struct Returned {
      MemoryBudget& memory;
      std::size_t bytes;
      ~Returned() { memory.Return(bytes); }
    } returned{memory_, plan.memory_bytes};
    {
      const std::lock_guard lock(events_mutex_);
      events_.Planned(file, plan);
    }
    const FileResult result =
        UpscaleFile(upscaler_, input, each.job, [&](std::size_t done, std::size_t /*total*/) {
          const std::lock_guard lock(events_mutex_);
          events_.Progress(file, done);
        });
    const std::chrono::duration<double> seconds = Clock::now() - start;
    const std::lock_guard lock(events_mutex_);
    events_.Done(file, result, seconds.count());
  }

  // Refuses a file that does not fit into the memory, even when nobody else is in work.
  void AwaitMemory(const FilePlan& plan) {
    try {
      CheckMemory(plan);
    } catch (const Error&) {
      if (!memory_.AwaitAll()) throw;
      CheckMemory(plan);
    }
  }

  void Failed(std::size_t file, const std::string& reason) {
    const std::lock_guard lock(events_mutex_);
    events_.Failed(file, reason);
  }

  const Upscaler& upscaler_;
  const std::span<const BatchFile> files_;
  const BatchOptions& options_;
  BatchEvents& events_;
  MemoryBudget memory_;
  std::mutex entrance_, events_mutex_;
  std::size_t next_ = 0;  // by entrance_
};

}  // namespace

void UpscaleFiles(const Upscaler& upscaler, std::span<const BatchFile> files,
                  const BatchOptions& options, BatchEvents& events) {
  Batch batch(upscaler, files, options, events);
  std::vector<std::jthread> others;
  const int workers = static_cast<int>(
      std::min<std::size_t>(files.size(), static_cast<std::size_t>(std::max(1, options.files))));
  try {
    for (int i = 1; i < workers; ++i) others.emplace_back([&batch] { batch.Work(); });
  } catch (const std::system_error&) {
    // The system has no more threads: the work is done without.
  }
  batch.Work();
}

}  // namespace tessera
