// Keeps count of the files of `upscale`.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "apps/progress_display.h"
#include "pipeline/batch.h"
#include "pipeline/file_list.h"

namespace tessera {

// Thread-safe.
class UpscaleProgress final : public BatchEvents {
 public:
  UpscaleProgress(FileList list, std::unique_ptr<ProgressDisplay> display, bool dry_run);

  void Planned(std::size_t file, const FilePlan& plan) override;
  void Progress(std::size_t file, std::size_t tiles_done) override;
  void Done(std::size_t file, const FileResult& result, double seconds) override;
  void Failed(std::size_t file, const std::string& reason) override;

  // Shows the report at the end. False if anything failed.
  bool Finish();
  // Shows it when the work is cut short; every call that follows blocks for ever. Shows nothing if
  // another call is stuck, as when nobody reads the messages.
  void Interrupt();

 private:
  std::timed_mutex mutex_;
  BatchState state_;
  std::unique_ptr<ProgressDisplay> display_;
  const bool dry_run_;
};

}  // namespace tessera
