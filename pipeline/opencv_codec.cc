// Every other format, by OpenCV. It works on whole pictures; rows are handed in and out of those.
#include <cerrno>
#include <cstring>
#include <iostream>
#include <limits>
#include <mutex>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/codecs.h"

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

std::vector<uchar> ReadAll(std::FILE* file) {
  std::vector<uchar> bytes;
  std::size_t size = 0;
  do {
    bytes.resize(size + (std::size_t{1} << 20));
    size += std::fread(bytes.data() + size, 1, bytes.size() - size, file);
  } while (size == bytes.size());
  Require(!std::ferror(file), "cannot read: ", std::strerror(errno));
  Require(size <= std::numeric_limits<int>::max(),
          "files of 2 GB and more are read only if PNG or JPEG");
  bytes.resize(size);
  return bytes;
}

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
  explicit OpenCvReader(FilePtr file) {
    const std::vector<uchar> bytes = ReadAll(file.get());
    try {
      const Complaints complaints;
      picture_ = cv::imdecode(bytes, cv::IMREAD_UNCHANGED);
    } catch (const cv::Exception& e) {
      throw Error(StrCat("cannot be decoded: ", e.err));
    }
    Require(!picture_.empty(), "damaged, or no picture of a known format");
    CheckInputSize(picture_.cols, picture_.rows);
    const int depth = picture_.depth(), channels = picture_.channels();
    Require(depth == CV_8U || depth == CV_16U,
            "samples of this type are not supported (only 8 and 16-bit integers)");
    Require(channels == 1 || channels == 3 || channels == 4, "pictures with ", channels,
            " channels are not supported");
    format_ = {.width = picture_.cols,
               .height = picture_.rows,
               .channels = channels,
               .bit_depth = depth == CV_8U ? 8 : 16};
  }

  void ReadRow(std::byte* row) override {
    std::memcpy(row, picture_.ptr(next_row_++), format_.RowBytes());
    SwapRedAndBlue(row, format_);
  }

 private:
  cv::Mat picture_;
  int next_row_ = 0;
};

class OpenCvWriter final : public ImageWriter {
 public:
  OpenCvWriter(ImageFormat format, const PictureFormat& picture, const WriteOptions& options,
               std::FILE* out)
      : format_(picture),
        out_(out),
        picture_(static_cast<int>(picture.height), static_cast<int>(picture.width),
                 CV_MAKETYPE(picture.bit_depth == 8 ? CV_8U : CV_16U, picture.channels)) {
    switch (format) {
      case ImageFormat::kWebp:
        extension_ = ".webp";
        // Above 100 means lossless.
        parameters_ = {cv::IMWRITE_WEBP_QUALITY, options.quality.value_or(101)};
        break;
      case ImageFormat::kTiff:
        extension_ = ".tiff";
        break;
      case ImageFormat::kBmp:
        extension_ = ".bmp";
        break;
      case ImageFormat::kPnm:
        extension_ = picture.channels == 1 ? ".pgm" : ".ppm";
        break;
      case ImageFormat::kPng:
      case ImageFormat::kJpeg:
        throw Error("no format of OpenCV's");
    }
  }

  void WriteRow(const std::byte* row) override {
    auto* to = reinterpret_cast<std::byte*>(picture_.ptr(next_row_++));
    std::memcpy(to, row, format_.RowBytes());
    SwapRedAndBlue(to, format_);
  }

  void Finish() override {
    std::vector<uchar> bytes;
    bool encoded = false;
    try {
      const Complaints complaints;
      encoded = cv::imencode(extension_, picture_, bytes, parameters_);
    } catch (const cv::Exception& e) {
      throw Error(StrCat("cannot be encoded: ", e.err));
    }
    Require(encoded, "cannot be encoded");
    Require(std::fwrite(bytes.data(), 1, bytes.size(), out_) == bytes.size(),
            "cannot write: ", std::strerror(errno));
  }

 private:
  PictureFormat format_;
  std::FILE* out_;
  cv::Mat picture_;
  std::string extension_;
  std::vector<int> parameters_;
  int next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageReader> OpenWithOpenCv(FilePtr file) {
  return std::make_unique<OpenCvReader>(std::move(file));
}

std::unique_ptr<ImageWriter> MakeOpenCvWriter(ImageFormat format, const PictureFormat& picture,
                                              const WriteOptions& options, std::FILE* out) {
  return std::make_unique<OpenCvWriter>(format, picture, options, out);
}

}  // namespace tessera
