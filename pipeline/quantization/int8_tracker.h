// A tracker whose networks compute with 8-bit integers.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "pipeline/quantization/int8_network.h"
#include "pipeline/quantization/tracker_inputs.h"
#include "pipeline/tracking/tracker.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

class Int8Tracker {
 public:
  // Reads the networks, and what was made of them in earlier runs. Networks that are quantised stay
  // as they are. Throws Error as LoadTracker does.
  Int8Tracker(const TrackerFiles& files, const std::optional<ModelCache>& cache, int threads);

  // Whether all networks are there as they are to be: nothing is left to quantise.
  bool complete() const { return model_int8_ != nullptr && (!head_ || head_int8_ != nullptr); }

  // Quantises what is left, by the target in its first frame and, of videos and pictures that are
  // files, in those that follow it. `input` is what the frame is from. Throws Error if the box is
  // refused or a network cannot be quantised.
  void Quantize(const std::string& input, const Frame& first, const Box& box, const Int8Note& note);

  // With the networks as they are now.
  Tracker Make() const;

 private:
  const int threads_;
  Int8Network model_;
  std::optional<Int8Network> head_;
  TrackerSessions float_;
  std::shared_ptr<Session> model_int8_, head_int8_;  // null: still to be made
};

}  // namespace tessera
