// A network with two inputs, one of which stays the same for a whole run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/session.h"
#include "pipeline/tracking/network_shapes.h"
#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/tracker_config.h"

namespace tessera {

// What follows from the template alone is computed once for all searches.
class SplitNetwork final : public SiameseNetwork {
 public:
  // Input `template_index` of the network's two belongs to the template. Makes the plans. Throws
  // Error, which names the model, if no output is a class or box map (see FindMaps).
  SplitNetwork(Session& network, std::size_t template_index, const std::array<Shape, 2>& shapes,
               const TrackerConfig& config);

  std::int64_t map_side() const override { return outputs_.side; }
  // Of the shapes that were given: patches, or features.
  void SetTemplate(const TensorView& of_template, Parallel& parallel) override;
  Maps Search(const TensorView& of_search, Parallel& parallel) override;

 private:
  // The map's values, those of float16 ones in `converted`.
  static const float* Floats(const Tensor& map, std::vector<float>& converted);

  std::string template_input_, search_input_;
  Session::Parts parts_;
  MapOutputs outputs_;
  std::vector<NamedView> search_inputs_;  // the search's own, and what the first part made
  std::vector<Tensor> features_, maps_;
  std::vector<float> classes_, boxes_;  // of float16 maps
};

}  // namespace tessera
