// What the networks of a tracker are given for its samples.
#pragma once

#include <vector>

#include "engine/quantization/quantizer.h"
#include "engine/session.h"
#include "pipeline/quantization/patch_recorder.h"
#include "pipeline/tracking/tracker_config.h"

namespace tessera {

// The float networks of a tracker. `head` is null for a network with both towers, and for a
// backbone that is looked at alone.
struct TrackerSessions {
  std::shared_ptr<Session> model, head;
  TrackerConfig config;
};

// `count` of the searches, spread evenly, with all targets.
TrackerSamples SomeOf(const TrackerSamples& samples, std::size_t count);

// Inputs of the backbone: the targets, then the searches; or, of a network with both towers, a pair
// for each search.
std::vector<Sample> ModelInputs(const TrackerSessions& sessions, const TrackerSamples& samples);

// Inputs of the head: the features that the backbone makes of both, a pair for each search.
std::vector<Sample> HeadInputs(const TrackerSessions& sessions, const TrackerSamples& samples,
                               Parallel* parallel = nullptr);

// Pairs of features for the head, for each search, from the backbone's outputs for ModelInputs.
std::vector<Sample> PairFeatures(const TrackerSessions& sessions, const TrackerSamples& samples,
                                 std::span<const Outputs> features);

}  // namespace tessera
