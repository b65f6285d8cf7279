// Frames into a video, through FFmpeg's libraries.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <opencv2/core/mat.hpp>
#include <string>

#include "pipeline/video/frame_source.h"

namespace tessera {

// A file of that name is a video that can be written: mp4, m4v, mov, mkv, avi or webm, in any case.
bool HasVideoExtension(const std::filesystem::path& path);
// "mp4, m4v, ..."
std::string KnownVideoExtensions();

// H.264, else MPEG-4 or Motion JPEG; VP9 or VP8 in webm: the first that FFmpeg was built with and
// that can hold the frames. H.264 of the common kind has even sizes only; the others have any.
// Chroma is halved both ways (4:2:0), by the matrix of Rec. 601.
//
// cv::VideoWriter is not used: it cuts off the last row and column of odd sizes, rounds rates, and
// is silent about a disk that is full.
class VideoEncoder {
 public:
  // Starts a video of the container that the extension of `path` stands for, on `out`, which has to
  // be able to seek and belongs to the caller. The rate, in frames per second, is met exactly if it
  // is a fraction of numbers up to 65535, like 30000/1001. `colors` are stated where the container
  // has a place for that, whatever the matrix is. Throws Error, here and later, if no
  // encoder takes such frames or the file cannot be written.
  VideoEncoder(const std::filesystem::path& path, std::FILE* out, cv::Size size,
               double frames_per_second, const ColorCoding& colors);
  ~VideoEncoder();

  // CV_8UC3 of the size that was given.
  void Write(const cv::Mat& frame);
  // Completes the video; what is in the stream's buffer is the caller's to flush.
  void Finish();

  // "H.264", ...
  const std::string& codec() const;
  // A better codec than this one, and why it was passed over, or "".
  const std::string& note() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
