// A tracker's run over a video, in which reading, tracking, drawing and writing overlap.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "pipeline/tracking/draw_track.h"
#include "pipeline/tracking/frame_sink.h"
#include "pipeline/tracking/frame_source.h"
#include "pipeline/tracking/track_record.h"
#include "pipeline/tracking/tracker.h"

namespace tessera {

// What is done on the way, by the thread that called TrackVideo, in the order of the frames. Errors
// end the run.
class TrackEvents {
 public:
  virtual ~TrackEvents() = default;

  // Where the target is in the first frame.
  virtual Box Start(const Frame& first) = 0;
  // Before the tracker's update with a frame: of all but the first.
  virtual void Updating(const Frame& /*frame*/, Tracker& /*tracker*/) {}
  // The result for a frame, the first too. May begin anew with another box in it (Tracker::Init)
  // and change the record. False if this is to be the last frame.
  virtual bool Tracked(const Frame& frame, Tracker& tracker, TrackRecord& record) = 0;
  // What the source or the sink got over.
  virtual void Noted(const std::string& note) = 0;
};

struct TrackSummary {
  std::int64_t frames = 0, lost = 0;   // tracked, and without the target
  std::int64_t width = 0, height = 0;  // of the first frame
  double seconds = 0;                  // of the run, but for TrackEvents::Start
  double network_seconds = 0;          // of these, in the network
  bool stopped = false;                // by the caller, before the source's end
  std::string failure;                 // why the run ended before; else empty
};

// Tracks from the source's first frame to its end, or until `stop` is set or TrackEvents::Tracked
// returns false. The source, the painter and the sink have threads of their own, which take the
// frames from each other; the frames are a few that are used again and again, so that the fast
// stages wait for the slow one, and nothing is allocated once all have had a frame of each size.
//
// `sink` and `painter` may be null: then frames are not written, or as they were read.
//
// What the source has given before it fails or is stopped is tracked, drawn and written, and the
// sink is closed. The same goes for the frames before one at which the tracker or the events fail.
// If the painter or the sink fails, everything ends and the sink is not closed. Throws Error if
// the first frame's box cannot be had or is refused.
TrackSummary TrackVideo(FrameSource& source, Tracker& tracker, TrackEvents& events, FrameSink* sink,
                        TrackPainter* painter, const std::atomic<bool>& stop);

}  // namespace tessera
