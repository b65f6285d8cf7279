#include "pipeline/opencv_decode.h"

#include <iostream>
#include <mutex>
#include <opencv2/imgcodecs.hpp>
#include <sstream>

#include "ops/error.h"

namespace tessera {
namespace {

// OpenCV's codecs write their complaints to std::cerr; while this lives they go here instead. One
// at a time. (The programs' own messages go to stderr, which this does not touch.)
class Complaints {
 public:
  Complaints() : lock_(mutex_), stderr_(std::cerr.rdbuf(text_.rdbuf())) {
    cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  }
  ~Complaints() { std::cerr.rdbuf(stderr_); }

 private:
  static inline std::mutex mutex_;
  std::lock_guard<std::mutex> lock_;
  std::ostringstream text_;
  std::streambuf* stderr_;
};

}  // namespace

cv::Mat DecodeWithOpenCv(std::string& file) {
  cv::Mat picture;
  try {
    const Complaints complaints;
    picture = cv::imdecode(cv::Mat(1, static_cast<int>(file.size()), CV_8U, file.data()),
                           cv::IMREAD_UNCHANGED);
  } catch (const cv::Exception& e) {
    throw Error(StrCat("cannot be decoded: ", e.err));
  }
  Require(!picture.empty(), "damaged, or no picture of a known format");
  return picture;
}

PictureFormat FormatOf(const cv::Mat& picture) {
  const int depth = picture.depth(), channels = picture.channels();
  Require(depth == CV_8U || depth == CV_16U,
          "samples of this type are not supported (only 8 and 16-bit integers)");
  Require(channels == 1 || channels == 3 || channels == 4, "pictures with ", channels,
          " channels are not supported");
  return {.width = picture.cols,
          .height = picture.rows,
          .channels = channels,
          .bit_depth = depth == CV_8U ? 8 : 16};
}

}  // namespace tessera
