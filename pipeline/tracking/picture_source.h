// Pictures as frames.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/tracking/frame_source.h"

namespace tessera {

// Pictures in the folder itself, not in those within it: what FindPictures takes for such.
std::vector<std::filesystem::path> PicturesOfFolder(const std::filesystem::path& folder);
// From the lowest number that is there to the last one before a gap.
std::vector<std::filesystem::path> PicturesOfPattern(const std::filesystem::path& pattern);

// One frame a file. `shown_name` is the source's in messages.
std::unique_ptr<FrameSource> MakePictureSource(std::vector<std::filesystem::path> files,
                                               const std::string& shown_name,
                                               const SourceOptions& options);

}  // namespace tessera
