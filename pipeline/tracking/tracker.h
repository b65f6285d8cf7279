// Follows one object from frame to frame.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "pipeline/tracking/box.h"
#include "pipeline/tracking/crop.h"
#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/tracker_config.h"
#include "pipeline/video/frame_view.h"

namespace tessera {

struct TrackResult {
  Box box;
  // 0 to 1, as the network gave it: of what is in that box; while it is lost, of the likeliest
  // thing at the place that was searched.
  double score = 0;
  bool lost = false;  // the box is where the target was last seen, moved into the frame
};

// Each frame is searched around where the target was: the square of the template, the box with its
// context, enlarged by search size / template size, is scaled to the search patch (see crop.h), the
// network compares it with the template, and the point with the highest rank (see point_ranking.h)
// gives the box. Its centre is taken as it is, its size
//
//   size = (1 - a) * size before + a * size found,   a = rate * penalty * score,
//
// and kept between min_side and the frame's. (SiamRPN, Li et al., CVPR 2018; NanoTrack of
// SiamTrackers, whose arithmetic this is to the bit but for the network's rounding.) Added to that:
// whether the target is there at all (see presence.h), and where it is looked for if not (see
// search_path.h); then several windows are searched for a frame, two at most.
class Tracker {
 public:
  // Where the target is taken to be: centre and size in pixels of the frame.
  struct State {
    double cx = 0, cy = 0, width = 0, height = 0;

    Box box() const { return {cx - width / 2, cy - height / 2, width, height}; }
  };

  // How the last Update came to its result.
  struct Step {
    CropWindow window;
    std::int64_t row = 0, column = 0;  // of the chosen point
    double score = 0, penalty = 0;
    double rank_margin = 0;  // over the second best point
  };

  // Threads of a run of the network: those of the process's CPU budget, `threads` at most.
  Tracker(std::unique_ptr<SiameseNetwork> network, const TrackerConfig& config, int threads = 1);
  ~Tracker();
  Tracker(Tracker&&) noexcept;
  Tracker& operator=(Tracker&&) noexcept;

  const TrackerConfig& config() const;

  // Begins, or begins anew, with the target in that box. It may lie in the frame only in part. Its
  // centre is taken to be x + (width - 1) / 2, half a pixel from where Update has it, as in
  // NanoTrack's demo.
  // Throws Error if the box is empty, no number, or wholly outside.
  void Init(const FrameView& frame, const Box& box);

  // Finds the target in the next frame. Allocates nothing, unless the frame's size has changed:
  // then the box is taken to have changed with it.
  //
  // The box of a target that is not lost may reach beyond the frame, but its centre does not.
  TrackResult Update(const FrameView& frame);

  // For comparisons with other implementations, one step at a time: the state that the next Update
  // starts from, as if the target had never been lost. Finite, sizes above 0.
  void SetState(const State& state);
  const State& state() const;
  const Step& last_step() const;

  // Of the network alone, in the last Init or Update.
  double network_seconds() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct TrackerFiles {
  std::filesystem::path model;  // backbone, or a network with both towers
  std::filesystem::path head;   // empty in the second case
  // "v1", "v2" or "v3" of NanoTrack, or a file for ReadTrackerConfig; empty: the version of
  // NanoTrack that has networks of these shapes.
  std::string variant;
};

// Throws Error, which names the file, for networks that cannot be used.
Tracker LoadTracker(const TrackerFiles& files, int threads = 1);

}  // namespace tessera
