#include "apps/upscale_progress.h"

#include <chrono>
#include <utility>

#include "ops/error.h"
#include "pipeline/display_name.h"

namespace tessera {

UpscaleProgress::UpscaleProgress(FileList list, std::unique_ptr<ProgressDisplay> display,
                                 bool dry_run)
    : state_(std::move(list)), display_(std::move(display)), dry_run_(dry_run) {
  for (const UnreadFolder& folder : state_.list.unread) {
    state_.failures.push_back(StrCat(DisplayName(folder.path), ": ", folder.reason));
    display_->Failed(state_, std::nullopt, state_.failures.back());
  }
}

void UpscaleProgress::Planned(std::size_t file, const FilePlan& plan) {
  const std::lock_guard lock(mutex_);
  state_.in_work[file] = {.plan = plan};
  display_->Planned(state_, file);
  if (!dry_run_) return;
  ++state_.done;  // as far as it goes
  state_.in_work.erase(file);
}

void UpscaleProgress::Progress(std::size_t file, std::size_t tiles_done) {
  const std::lock_guard lock(mutex_);
  state_.in_work.at(file).tiles_done = tiles_done;
  display_->Progress(state_, file);
}

void UpscaleProgress::Done(std::size_t file, const FileResult& result, double seconds) {
  const std::lock_guard lock(mutex_);
  state_.in_work.erase(file);
  ++state_.done;
  state_.pixels +=
      static_cast<double>(result.output.width) * static_cast<double>(result.output.height);
  display_->Done(state_, file, result, seconds);
}

void UpscaleProgress::Failed(std::size_t file, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  state_.in_work.erase(file);
  ++state_.failed;
  state_.failures.push_back(reason);
  display_->Failed(state_, file, reason);
}

bool UpscaleProgress::Finish() {
  const std::lock_guard lock(mutex_);
  display_->Finished(state_, false);
  return state_.failures.empty();
}

void UpscaleProgress::Interrupt() {
  if (!mutex_.try_lock_for(std::chrono::seconds(1))) return;
  display_->Finished(state_, true);
}

}  // namespace tessera
