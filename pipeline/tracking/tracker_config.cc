#include "pipeline/tracking/tracker_config.h"

#include "ops/error.h"

namespace tessera {

TrackerConfig NanoTrackConfig(int version) {
  Require(version >= 1 && version <= 3, "there is no NanoTrack v", version);
  TrackerConfig config;
  config.name = StrCat("NanoTrack v", version);
  struct Constants {
    double window_influence, penalty, rate;
  };
  static constexpr Constants kConstants[] = {
      {0.462, 0.148, 0.390}, {0.490, 0.150, 0.385}, {0.455, 0.138, 0.348}};
  const Constants& constants = kConstants[version - 1];
  config.window_influence = constants.window_influence;
  config.penalty = constants.penalty;
  config.rate = constants.rate;
  return config;
}

}  // namespace tessera
