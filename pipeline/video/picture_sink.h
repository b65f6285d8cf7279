// Pictures as outputs.
#pragma once

#include <filesystem>
#include <memory>

#include "pipeline/video/frame_sink.h"

namespace tessera {

// Each frame becomes a file at once, complete or not at all. The folder, and those around it, are
// made with the first frame. Files of the source's names where it has any, else 000012.png.
//
// Throws Error, which names the folder, if it cannot be written, holds pictures already and
// `overwrite` is not set, or holds the source's pictures. Write throws Error, which names the file,
// if that cannot be written, or exists meanwhile.
std::unique_ptr<FrameSink> MakeFolderSink(const std::filesystem::path& folder,
                                          const SinkOptions& options);
// The same with names by a printf pattern with one number (NumberedName). Throws Error also if its
// extension is that of no picture that can be written; of the pictures in the folder only those of
// the pattern stand in the way.
std::unique_ptr<FrameSink> MakePatternSink(const std::filesystem::path& pattern,
                                           const SinkOptions& options);

}  // namespace tessera
