#include "apps/track_progress.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "apps/message.h"
#include "ops/error.h"
#include "pipeline/format_text.h"

namespace tessera {
namespace {

std::string PerSecond(std::int64_t frames, double seconds) {
  return Fixed(static_cast<double>(frames) / std::max(seconds, 1e-9), 1);
}

}  // namespace

TrackProgress::TrackProgress(std::optional<std::int64_t> frames, bool quiet)
    : frames_(frames), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

void TrackProgress::Tracked(const TrackRecord& record) {
  if (done_++ == 0) start_ = std::chrono::steady_clock::now();
  lost_ += record.lost ? 1 : 0;
  if (quiet_ || !terminal_ || !line_.Due()) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
  std::string text = StrCat("frame ", record.frame);
  if (frames_ && *frames_ > 0) {
    text += StrCat(", ", std::min<std::int64_t>(100, 100 * done_ / *frames_), " %");
  }
  text +=
      StrCat(", ", PerSecond(done_, seconds.count()), " frames/s, score ", Fixed(record.score, 2));
  if (record.lost) text += ", lost";
  if (lost_ > 0) text += StrCat(" (", lost_, " without the target)");
  line_.Show(std::move(text));
}

void TrackProgress::Noted(const std::string& note) {
  if (quiet_) return;
  line_.Clear();
  Say(StrCat("note: ", note));
}

void TrackProgress::Finished(const TrackSummary& summary) {
  line_.Clear();
  if (quiet_ || summary.frames == 0) return;
  Say(StrCat(summary.stopped ? "stopped: " : "", summary.frames, " frames of ", summary.width, "x",
             summary.height, " in ", Fixed(summary.seconds, 2), " s, ", summary.lost,
             " without the target; frames/s: network ",
             PerSecond(summary.frames, summary.network_seconds), ", all ",
             PerSecond(summary.frames, summary.seconds)));
}

}  // namespace tessera
