// Pictures as frames.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/video/frame_source.h"

namespace tessera {

// Pictures in the folder itself, not in those within it: what FindPictures takes for such.
std::vector<std::filesystem::path> PicturesOfFolder(const std::filesystem::path& folder);

struct PatternPictures {
  std::vector<std::filesystem::path> files;
  std::size_t left_out = 0;  // beyond a gap in the numbers
};
// From the lowest number that is there to the last one before a gap.
PatternPictures PicturesOfPattern(const std::filesystem::path& pattern);

// One frame a file. `shown_name` is the source's in messages. That files were left out is noted.
std::unique_ptr<FrameSource> MakePictureSource(std::vector<std::filesystem::path> files,
                                               const std::string& shown_name,
                                               const SourceOptions& options,
                                               std::size_t left_out = 0);

}  // namespace tessera
