// Frames into a video or a folder of pictures.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/video/frame_source.h"
#include "pipeline/video/notes.h"

namespace tessera {

struct SinkOptions {
  double frames_per_second = 25;  // of a video
  ColorCoding colors = kRec601;   // that a video states; it is made by the matrix of Rec. 601
  bool overwrite = false;
  // What the frames come from, as for OpenFrameSource: not overwritten in any case.
  std::filesystem::path source = {};
};

class FrameSink {
 public:
  virtual ~FrameSink() = default;

  // A video has the size of its first frame: later ones are scaled to it. Throws Error, which names
  // the output, if it cannot be written; so does Close.
  virtual void Write(const Frame& frame) = 0;
  // Completes the output with what has been written, and puts it in its place.
  virtual void Close() = 0;

  // Since the last call; other threads may ask too, while Write is at work.
  std::vector<std::string> TakeNotes() { return notes_.Take(); }

 protected:
  Notes notes_;
};

// A video if `path` ends with .mp4, .m4v, .mov, .mkv, .avi or .webm; a printf pattern of pictures
// (out/%05d.png), numbered like the frames; else a folder of pictures, which is made, and ends with
// a '/' if there is a '.' in its name. These are named like those of the source, with an extension
// that can be written, else by their numbers (000012.png). Nothing is at `path` before Close (in a
// folder: each picture is complete or not there), and nothing that was there is lost until then.
//
// Throws Error, which names the path, if it cannot be written, is what `source` says, or, without
// `overwrite`, exists: for pictures, if the folder holds any, or any of the pattern's names.
//
// Changes the environment when it is called first, as OpenFrameSource does.
std::unique_ptr<FrameSink> OpenFrameSink(const std::filesystem::path& path,
                                         const SinkOptions& options);

}  // namespace tessera
