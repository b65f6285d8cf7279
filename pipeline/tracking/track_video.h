// A tracker's run over a video, in which reading, tracking, drawing and writing overlap.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/tracking/draw_track.h"
#include "pipeline/tracking/track_record.h"
#include "pipeline/tracking/tracker.h"
#include "pipeline/video/frame_sink.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

// What is done on the way, by the thread that called TrackVideo, in the order of the frames. Errors
// end the run.
class TrackEvents {
 public:
  enum class Wish : std::uint8_t { kGoOn, kStartAnew, kEnd };

  virtual ~TrackEvents() = default;

  // Where the target is in the first frame.
  virtual Box Start(const Frame& first) = 0;
  // Before the tracker's update with a frame: of all but the first.
  virtual void Updating(const Frame& /*frame*/, Tracker& /*tracker*/) {}
  // The tracker's result for a frame, the first too. May change the record. kEnd if this is to be
  // the last frame.
  virtual Wish Tracked(const Frame& frame, const Tracker& tracker, TrackRecord& record) = 0;
  // After kStartAnew: where the target is in the same frame. The tracker begins anew with that, or
  // goes on as it was for nullopt.
  virtual std::optional<Box> StartAnew(const Frame& /*frame*/) { return std::nullopt; }
  // What is left of a frame when all this is done.
  virtual void Recorded(const TrackRecord& record) = 0;
  // Many times a second while no frame comes. False if the run is to end.
  virtual bool Waiting() { return true; }
  // What the source or the sink got over, soon after it happened.
  virtual void Noted(const std::string& note) = 0;
};

struct TrackSummary {
  std::int64_t frames = 0, lost = 0;   // tracked, and without the target
  std::int64_t width = 0, height = 0;  // of the first frame
  double seconds = 0;                  // of the run, but for Start and StartAnew of TrackEvents
  double network_seconds = 0;          // of these, in the network
  bool stopped = false;                // by the caller, before the source's end
  std::vector<std::string> failures;   // why the run ended before, or outputs are missing
};

// Tracks from the source's first frame to its end, or until `stop` is set or the events end it. The
// source, the painter and the sink have threads of their own, which take the frames from each
// other; the frames are a few that are used again and again, so that the fast stages wait for the
// slow one, and nothing is allocated once all have had a frame of each size.
//
// `stop` is SourceOptions::stop of the source: the run sets it when it ends, whatever the reason,
// so as not to wait for a frame that it does not want. What the source fails with once it is set is
// no failure. If it does not return within a second then, its thread is left behind (see
// FrameReader::Join): the process has to end without waiting for it (_exit).
//
// `sink` and `painter` may be null: then frames are not written, or as they were read.
//
// What the source has given before it fails or is stopped is tracked, drawn and written, and the
// sink is closed. The same goes for the frames before one at which the tracker or the events fail.
// If the painter or the sink fails, everything ends and the sink is not closed. Throws Error if
// the first frame's box cannot be had or is refused.
TrackSummary TrackVideo(const std::shared_ptr<FrameSource>& source, Tracker& tracker,
                        TrackEvents& events, FrameSink* sink, TrackPainter* painter,
                        std::atomic<bool>& stop);

}  // namespace tessera
