// Trackers of networks that are loaded already.
#pragma once

#include <memory>
#include <string>

#include "engine/session.h"
#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/tracker.h"
#include "pipeline/tracking/tracker_config.h"

namespace tessera {

// What TrackerFiles::variant says; if it is empty, what the shapes of the networks tell. `head` is
// null for a network with both towers. Throws Error, which names what is wrong.
TrackerConfig FindTrackerConfig(const std::string& variant, Session& model, Session* head);

// `head` is null for a network with both towers. Throws Error as MakeTwoPartNetwork does.
std::unique_ptr<SiameseNetwork> MakeSiameseNetwork(const std::shared_ptr<Session>& model,
                                                   Session* head, const TrackerConfig& config);

}  // namespace tessera
