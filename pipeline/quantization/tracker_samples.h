// Template and search patches out of clips, to calibrate a tracker's networks with.
#pragma once

#include <memory>

#include "pipeline/quantization/patch_recorder.h"
#include "pipeline/tracking/ground_truth.h"
#include "pipeline/tracking/tracker.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

// Patches are cut by a tracker itself, as it cuts them when it follows the target.
class TrackerSampler {
 public:
  // `network` follows the target where its box is not known; null: boxes are known.
  TrackerSampler(std::unique_ptr<SiameseNetwork> network, const TrackerConfig& config,
                 int threads = 1);

  // Takes the target in that box, and `searches` of it in the same frame, as if it had moved and
  // grown or shrunk a little since. Throws Error as Tracker::Init does.
  void AddFrame(const FrameView& frame, const Box& box, int searches);

  // Goes through the source's frames, or as many as it takes, until there are `searches` more, some
  // frames apart. Where `known` has boxes these are searched around; in a frame without one the
  // target is where the network says, until it loses it. Without a network, frames without a box
  // are left out, unless only one box is known: then the target is taken to stay there for a while.
  // Throws Error, which names the source, if it has no frame with a box, or cannot be read.
  void AddClip(FrameSource& source, const std::string& name, const GroundTruth& known,
               int searches);

  TrackerSamples Take() { return std::move(tape_->samples); }

 private:
  void Start(const FrameView& frame, const Box& box);
  // Search number `n` of those that are spread around the box.
  void SearchAround(const FrameView& frame, const Box& box, int n);
  // The samples that came since have the target that the tracker looked for.
  void NoteSizes(std::size_t first, const Tracker::State& before);

  const TrackerConfig config_;
  const bool follows_;
  std::unique_ptr<PatchRecorder::Tape> tape_ = std::make_unique<PatchRecorder::Tape>();
  Tracker tracker_;
};

}  // namespace tessera
