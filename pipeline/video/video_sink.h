// Videos as outputs.
#pragma once

#include <filesystem>
#include <memory>

#include "pipeline/video/frame_sink.h"

namespace tessera {

// A video of the kind that the extension of `path` stands for (HasVideoExtension), of the first
// frame's size. It is written beside `path` and takes its place when it is closed.
//
// Throws Error, which names the file, if it cannot be created. Write and Close throw Error if there
// is no encoder for such frames, the disk is full, no frame came, or the file exists meanwhile and
// `overwrite` is not set.
std::unique_ptr<FrameSink> MakeVideoSink(const std::filesystem::path& path,
                                         const SinkOptions& options);

}  // namespace tessera
