// The trackers of the shared folder.
#pragma once

#include <filesystem>

#include "ops/error.h"
#include "pipeline/tracking/tracker.h"

namespace tessera {

// NanoTrack 1, 2 or 3.
inline Tracker LoadNanoTrack(const std::filesystem::path& shared, int version, int threads = 1) {
  const auto file = [&](const char* part) {
    return shared / "models/nanotrack" / StrCat("nanotrackv", version, "_", part, ".onnx");
  };
  return LoadTracker(
      {.model = file("backbone"), .head = file("head"), .variant = StrCat("v", version)}, threads);
}

}  // namespace tessera
