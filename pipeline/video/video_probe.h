// What a video's container tells, without decoding.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "pipeline/video/frame_source.h"

namespace tessera {

// A file as FFmpeg wants to be told of it, whatever characters its name has.
std::string FileUrl(const std::filesystem::path& path);

// Why a video cannot be opened, in words. Tries it for some seconds at most, or until `stop` is
// true (it may be null).
std::string WhyUnreadable(const std::string& url, const std::atomic<bool>* stop);

// The colours that its head states; kRec601 if they are not coded as luma and chroma.
ColorCoding ColorsOf(const std::string& url, const std::atomic<bool>* stop);

// What is in a video, whether or not it can be decoded.
struct VideoExtent {
  bool cut_off = false;  // it ends before what its head announces
  bool damaged = false;  // packets before the last are incomplete or missing
  double seconds = 0;    // from the first to the last frame that is to be shown; 0 if not known
};

// Reads all of a file; to be asked if there were fewer frames than OpenCV counts
// (CAP_PROP_FRAME_COUNT).
//
// That number proves nothing by itself: in most containers it is the length times the rate. The
// length may be that of the sound (Matroska, WebM, fragmented MP4), the rate may vary, and of what
// an edit list hides there is no frame (MP4 that was trimmed without encoding anew). So a video
// counts as cut off if the file is shorter than its parts say (EndsInsideItsParts), if its last
// packet is incomplete, or if no stream comes as near to the length that the head tells as a fifth
// of a second or two frames. It counts as damaged if FFmpeg found a packet before the last to be
// so, or, in Matroska and WebM, whose packets lie in order, if there are bytes between them that
// belong to none as well as a gap between the times of the video's: that alone may be a change of
// the rate. Where the head tells none (MPEG-TS, what was
// written to a pipe), nothing is missed. The result says nothing if `stop` (it may be null) became
// true on the way.
VideoExtent ExtentOf(const std::filesystem::path& file, const std::atomic<bool>* stop);

}  // namespace tessera
