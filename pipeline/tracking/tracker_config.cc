#include "pipeline/tracking/tracker_config.h"

#include "ops/error.h"

namespace tessera {

TrackerConfig NanoTrackConfig(int version) {
  Require(version >= 1 && version <= 3, "there is no NanoTrack v", version);
  TrackerConfig config;
  config.name = StrCat("NanoTrack v", version);
  struct Constants {
    double window_influence, penalty, rate;
    double lost_below, found_above;
  };
  // The scores are ours. On the sequences of OTB that were looked at they lie below those of all
  // frames with the target and above those of most places without it.
  static constexpr Constants kConstants[] = {{0.462, 0.148, 0.390, 0.73, 0.88},
                                             {0.490, 0.150, 0.385, 0.90, 0.97},
                                             {0.455, 0.138, 0.348, 0.92, 0.98}};
  const Constants& constants = kConstants[version - 1];
  config.window_influence = constants.window_influence;
  config.penalty = constants.penalty;
  config.rate = constants.rate;
  config.lost_below = constants.lost_below;
  config.found_above = constants.found_above;
  return config;
}

std::optional<int> NanoTrackNamed(std::string_view name) {
  for (const int version : {1, 2, 3}) {
    if (name == StrCat("v", version)) return version;
  }
  return std::nullopt;
}

}  // namespace tessera
