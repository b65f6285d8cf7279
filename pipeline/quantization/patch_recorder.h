// What a tracker shows to its network.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "pipeline/tracking/siamese_network.h"

namespace tessera {

struct SearchSample {
  std::size_t target = 0;  // what is looked for, in TrackerSamples::targets
  Tensor patch;            // [1, 3, search_size, search_size]
  // Of the target before the search, in pixels of the patch.
  double width = 0, height = 0;
};

struct TrackerSamples {
  std::vector<Tensor> targets;  // [1, 3, template_size, template_size]
  std::vector<SearchSample> searches;
};

// A network that keeps copies of the patches it is given, while `recording` is set.
class PatchRecorder final : public SiameseNetwork {
 public:
  struct Tape {
    bool recording = false;
    TrackerSamples samples;
  };

  // Without a network it finds nothing: the maps are 16 x 16 points of zeros.
  // `tape` outlives it.
  PatchRecorder(std::unique_ptr<SiameseNetwork> network, Tape& tape);

  std::int64_t map_side() const override;
  void SetTemplate(const TensorView& patch, Parallel& parallel) override;
  Maps Search(const TensorView& patch, Parallel& parallel) override;

 private:
  const std::unique_ptr<SiameseNetwork> network_;
  std::vector<float> nothing_;  // maps without a network
  Tape& tape_;
};

}  // namespace tessera
