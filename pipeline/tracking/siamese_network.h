// The network of a tracker: features of the target are looked for in those of a search patch.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/session.h"
#include "pipeline/tracking/tracker_config.h"

namespace tessera {

// Used by one thread at a time.
class SiameseNetwork {
 public:
  // Row-major, as TrackerConfig::score and ::box say; they belong to the network and are good until
  // its next call.
  struct Maps {
    const float* classes = nullptr;  // [1 or 2, side, side]
    const float* boxes = nullptr;    // [4, side, side]
  };

  virtual ~SiameseNetwork() = default;

  // n of the maps, n x n.
  virtual std::int64_t map_side() const = 0;

  // Patches are [1, 3, size, size] with the sizes of the configuration. After the first call of
  // each, no call allocates.
  virtual void SetTemplate(const TensorView& patch, Parallel& parallel) = 0;
  virtual Maps Search(const TensorView& patch, Parallel& parallel) = 0;
};

// A backbone that is run on template and search patch, in two sizes with the same weights, and a
// head with two inputs, template features and search features. Both plans are made here. Throws
// Error if the shapes do not go together with the configuration or with each other.
std::unique_ptr<SiameseNetwork> MakeTwoPartNetwork(std::shared_ptr<Session> backbone, Session& head,
                                                   const TrackerConfig& config);

// Both towers and the head in one network with two inputs, template and search patch.
std::unique_ptr<SiameseNetwork> MakeTwoInputNetwork(Session& network, const TrackerConfig& config);

}  // namespace tessera
