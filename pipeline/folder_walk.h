// The pictures in a folder.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "pipeline/file_list.h"
#include "pipeline/file_status.h"

namespace tessera {

// Pictures in `folder`, as paths relative to it, sorted: what FileList says of links and what is
// left out, which is counted there. Within `folder`, the folder that is `output` is not read.
std::vector<std::filesystem::path> FindPictures(const std::filesystem::path& folder, bool recursive,
                                                const std::optional<FileId>& output,
                                                FileList& list);

}  // namespace tessera
