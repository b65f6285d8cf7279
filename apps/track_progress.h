// What `track` says while it works, on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "apps/status_line.h"
#include "pipeline/tracking/track_record.h"
#include "pipeline/tracking/track_video.h"

namespace tessera {

class TrackProgress {
 public:
  // `frames`: of the whole run, if that is known.
  TrackProgress(std::optional<std::int64_t> frames, bool quiet);

  void Tracked(const TrackRecord& record);
  void Noted(const std::string& note);
  void Finished(const TrackSummary& summary);

 private:
  const std::optional<std::int64_t> frames_;
  const bool quiet_, terminal_;
  StatusLine line_;
  std::chrono::steady_clock::time_point start_ = {};  // the first frame
  std::int64_t done_ = 0, lost_ = 0;
};

}  // namespace tessera
