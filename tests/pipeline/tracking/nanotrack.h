// The trackers of the shared folder.
#pragma once

#include <filesystem>

#include "engine/session.h"
#include "ops/error.h"
#include "pipeline/tracking/tracker.h"

namespace tessera {

// NanoTrack 1, 2 or 3.
inline Tracker LoadNanoTrack(const std::filesystem::path& shared, int version, int threads = 1) {
  const auto load = [&](const char* part) {
    return Session::Load(shared / "models/nanotrack" /
                         StrCat("nanotrackv", version, "_", part, ".onnx"));
  };
  const TrackerConfig config = NanoTrackConfig(version);
  return Tracker(MakeTwoPartNetwork(load("backbone"), load("head"), config), config, threads);
}

}  // namespace tessera
