// NanoTrack's networks and the sequences of the shared folder.
#pragma once

#include <filesystem>
#include <string>

#include "engine/session.h"
#include "pipeline/tracking/tracker.h"

namespace tessera {

// NanoTrack 1, 2 or 3.
inline Tracker LoadNanoTrack(const std::filesystem::path& shared, int version, int threads = 1) {
  const auto file = [&](const char* part) {
    return shared / "models/nanotrack" /
           ("nanotrackv" + std::to_string(version) + "_" + part + ".onnx");
  };
  return LoadTracker({.model = file("backbone"), .head = file("head"), .variant = ""}, threads);
}

inline FrameView ViewOf(const cv::Mat& pixels) {
  return {pixels.data, pixels.cols, pixels.rows, static_cast<std::ptrdiff_t>(pixels.step[0])};
}

}  // namespace tessera
