// Reads the formats that have no codec of their own, by OpenCV. It works on whole pictures; rows
// are handed out of those.
#include <cstring>
#include <opencv2/core.hpp>
#include <string>
#include <utility>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/opencv_decode.h"
#include "pipeline/opencv_header.h"

namespace tessera {
namespace {

// BGR <-> RGB.
template <typename T>
void SwapRedAndBlue(T* row, std::int64_t width, int channels) {
  for (std::int64_t x = 0; x < width; ++x, row += channels) std::swap(row[0], row[2]);
}

void SwapRedAndBlue(std::byte* row, const PictureFormat& format) {
  if (format.channels < 3) return;
  if (format.bit_depth == 8)
    SwapRedAndBlue(reinterpret_cast<std::uint8_t*>(row), format.width, format.channels);
  else
    SwapRedAndBlue(reinterpret_cast<std::uint16_t*>(row), format.width, format.channels);
}

class OpenCvReader final : public ImageReader {
 public:
  OpenCvReader(FilePtr file, const ReadOptions& options)
      : file_(ReadToEnd(file.get(), kMaxFileInMemory)), header_(ParseOpenCvHeader(file_, options)) {
    held_file_bytes_ = file_.size();
    format_ = header_.format;
    metadata_.density = header_.density;
  }

  std::size_t HeldBytes() const override {
    return format_.RowBytes() * static_cast<std::size_t>(format_.height) + held_file_bytes_ +
           header_.decoder_bytes;
  }

  void ReadRow(std::byte* row) override {
    if (next_row_ == 0) Decode();
    std::memcpy(row, picture_.ptr(next_row_++), format_.RowBytes());
    SwapRedAndBlue(row, format_);
  }

 private:
  void Decode() {
    picture_ = DecodeWithOpenCv(file_);
    file_ = {};
    Require(FormatOf(picture_) == format_, "its header is damaged");
    const std::int64_t full = format_.MaxValue();
    if (header_.max_value < full)
      picture_.convertTo(picture_, picture_.type(),
                         static_cast<double>(full) / static_cast<double>(header_.max_value));
  }

  std::string file_;  // until it is decoded
  std::size_t held_file_bytes_ = 0;
  OpenCvHeader header_;
  cv::Mat picture_;
  int next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageReader> OpenWithOpenCv(FilePtr file, const ReadOptions& options) {
  return std::make_unique<OpenCvReader>(std::move(file), options);
}

}  // namespace tessera
