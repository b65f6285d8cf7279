// Frames from videos, folders of pictures, cameras and streams.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <opencv2/core/mat.hpp>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/video/frame_view.h"
#include "pipeline/video/notes.h"

namespace tessera {

struct Frame {
  cv::Mat pixels;           // CV_8UC3, B, G, R
  std::int64_t number = 0;  // from 0, of the source: those that were left out are counted
  // Since frame 0; live sources: since the first one that was read; 0 for pictures, whose rate
  // nobody knows.
  double seconds = 0;
  std::string name;  // of the file, without folder; "" for videos

  FrameView view() const {
    return {pixels.data, pixels.cols, pixels.rows, static_cast<std::ptrdiff_t>(pixels.step[0])};
  }
};

struct SourceOptions {
  std::int64_t start = 0;                          // number of the first frame
  std::optional<std::int64_t> end = std::nullopt;  // the first that is not read any more
  std::int64_t every = 1;                          // one of so many frames
  int reconnect = 0;                               // times that a live source is opened again
  // When it becomes true, Read and the opening return soon, as at the end: at once, or when a
  // server or camera that is waited for has been silent for some seconds.
  const std::atomic<bool>* stop = nullptr;

  bool stopped() const { return stop != nullptr && *stop; }
};

// How the colours of a video are coded, by the numbers of ITU-T H.273; 2: it does not say.
struct ColorCoding {
  int primaries = 2, transfer = 2, matrix = 2;
  friend bool operator==(const ColorCoding&, const ColorCoding&) = default;
};
inline constexpr ColorCoding kRec601 = {.matrix = 6};

struct SourceInfo {
  // Of the frames that Read returns; 0 if nobody knows. Where it varies, what the container states.
  double frames_per_second = 0;
  // That Read will return, as far as the source knows: for some videos an estimate.
  std::optional<std::int64_t> frames = std::nullopt;
  // That a video file states; kRec601 for pictures and RGB. Frames are converted by the matrix of
  // Rec. 601 all the same, as OpenCV does: a video that is made of them with these colours stated
  // (SinkOptions) looks like this one.
  ColorCoding colors = {};
  bool live = false;      // a camera or stream: counted from its first frame; does not wait
  bool pictures = false;  // frames are files of their own
};

class FrameSource {
 public:
  virtual ~FrameSource() = default;

  const SourceInfo& info() const { return info_; }

  // The next frame; its pixels' memory is used again if it has the right size. False at the end, or
  // when it was stopped. Throws Error, which names the source, if what follows cannot be read: a
  // damaged picture, a video that ends before its time or before SourceOptions::start, a camera
  // that is gone and does not come back. Frames of a video that cannot be decoded are passed over;
  // the Error comes at its end. The first call skips what is before the start of a video.
  virtual bool Read(Frame& frame) = 0;

  // Since the last call; other threads may ask too, while Read is at work.
  std::vector<std::string> TakeNotes() { return notes_.Take(); }

 protected:
  SourceInfo info_;
  Notes notes_;
};

// `input` is a video file, a picture, a folder of pictures (in the order of their names, numbers in
// them by value), a printf pattern of them (img%04d.jpg: from the lowest number that there is to
// the first gap), the index or device of a camera, or a URL that OpenCV opens. What exists as a
// file or folder is that, whatever its name looks like.
//
// Pictures of one channel become three equal ones, 16 bits become 8, alpha is dropped. Videos are
// turned as their metadata say.
//
// Throws Error, which names the input, if it cannot be opened or holds no frames, if there are
// fewer pictures than `start` says, or if the options make no sense.
//
// Changes the environment when it is called first (SilenceVideoLibraries): not while other threads
// may read that.
std::unique_ptr<FrameSource> OpenFrameSource(const std::string& input,
                                             const SourceOptions& options);

// The input's name for messages: "camera 0", or on one line as DisplayName shows it. User, password
// and query of a URL are left out: rtsp://...@camera/live?...
std::string ShownInput(const std::string& input);

}  // namespace tessera
