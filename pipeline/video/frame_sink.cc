#include "pipeline/video/frame_sink.h"

#include <string>

#include "ops/error.h"
#include "pipeline/atomic_file.h"
#include "pipeline/display_name.h"
#include "pipeline/file_status.h"
#include "pipeline/picture_name.h"
#include "pipeline/video/opencv_video.h"
#include "pipeline/video/picture_sink.h"
#include "pipeline/video/video_encoder.h"
#include "pipeline/video/video_sink.h"

namespace tessera {

std::unique_ptr<FrameSink> OpenFrameSink(const std::filesystem::path& path,
                                         const SinkOptions& options) {
  Require(!path.empty(), "the output has an empty name");
  SilenceVideoLibraries();
  const std::string shown_name = DisplayName(path);
  const auto status = StatusOf(path);
  if (IsFolder(status) || !path.has_filename()) return MakeFolderSink(path, options);
  if (!status && !HasVideoExtension(path) && path.native().find('%') != std::string::npos)
    return MakePatternSink(path, options);
  NamingFile(path, [&] { AtomicFile::CheckOverwrite(path, options.overwrite); });
  Require(!status || !SameFile(path, options.source), shown_name, ": is the input");
  if (HasVideoExtension(path)) return MakeVideoSink(path, options);
  Require(!HasPictureExtension(path), shown_name,
          ": is a single picture; frames need a video, a folder, or a pattern like %04d",
          path.extension().native());
  Require(!path.has_extension(), shown_name, ": no video format has this extension; known are ",
          KnownVideoExtensions(), " (a folder of pictures is named with a '/' at the end)");
  Require(!status, shown_name, ": is no folder");
  return MakeFolderSink(path, options);
}

}  // namespace tessera
