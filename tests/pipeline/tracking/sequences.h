// The sequences of the shared folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "pipeline/tracking/ground_truth.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

inline std::filesystem::path SequenceFolder(const std::filesystem::path& shared,
                                            const std::string& name) {
  return shared / "tracking/sequences" / name;
}

inline std::unique_ptr<FrameSource> OpenSequence(const std::filesystem::path& shared,
                                                 const std::string& name) {
  const std::filesystem::path folder = SequenceFolder(shared, name);
  const std::filesystem::path frames = folder / "frames", video = folder / "video.mp4";
  return OpenFrameSource((std::filesystem::exists(frames) ? frames : video).string(), {});
}

inline Box StartBox(const std::filesystem::path& shared, const std::string& name) {
  return ReadGroundTruth(SequenceFolder(shared, name) / "init.txt").at(0);
}

}  // namespace tessera
