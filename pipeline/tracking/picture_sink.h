// Pictures as outputs.
#pragma once

#include <filesystem>
#include <memory>

#include "pipeline/tracking/frame_sink.h"

namespace tessera {

std::unique_ptr<FrameSink> MakeFolderSink(const std::filesystem::path& folder,
                                          const SinkOptions& options);
std::unique_ptr<FrameSink> MakePatternSink(const std::filesystem::path& pattern,
                                           const SinkOptions& options);

}  // namespace tessera
