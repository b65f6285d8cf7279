// Frames into a video or a folder of pictures.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/tracking/frame_source.h"

namespace tessera {

struct SinkOptions {
  double frames_per_second = 25;  // of a video
  bool overwrite = false;
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;

  // A video has the size of its first frame: later ones are scaled to it.
  virtual void Write(const Frame& frame) = 0;
  // Completes the output with what has been written, and puts it in its place.
  virtual void Close() = 0;

  std::vector<std::string> TakeNotes() { return std::exchange(notes_, {}); }

 protected:
  std::vector<std::string> notes_;
};

// A video if `path` ends like one (mp4, mkv, avi, mov, webm, ...), else a folder, which is made;
// its pictures are named like those of a source of pictures, else by their numbers; or a printf
// pattern (out/%05d.png). Nothing is at `path` before Close (in a folder: each picture is complete
// or not there), and nothing that was there is lost until then. Throws Error, which names the path,
// if it cannot be written, or exists without `overwrite`.
std::unique_ptr<FrameSink> OpenFrameSink(const std::filesystem::path& path,
                                         const SinkOptions& options);

}  // namespace tessera
