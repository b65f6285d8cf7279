// Both towers and the head in one network, as LightTrack and FEAR are exported.
#include <array>

#include "pipeline/tracking/network_shapes.h"
#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/split_network.h"

namespace tessera {

std::unique_ptr<SiameseNetwork> MakeTwoInputNetwork(Session& network, const TrackerConfig& config) {
  const Shape target = PatchShape(config.template_size), search = PatchShape(config.search_size);
  const std::size_t index = PatchTemplateInput(network, config);
  return std::make_unique<SplitNetwork>(
      network, index, index == 0 ? std::array{target, search} : std::array{search, target}, config);
}

}  // namespace tessera
