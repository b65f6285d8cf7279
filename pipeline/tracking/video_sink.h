// Videos as outputs.
#pragma once

#include <filesystem>
#include <memory>

#include "pipeline/tracking/frame_sink.h"

namespace tessera {

std::unique_ptr<FrameSink> MakeVideoSink(const std::filesystem::path& path,
                                         const SinkOptions& options);

}  // namespace tessera
