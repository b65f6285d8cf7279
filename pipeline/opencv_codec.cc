// Every other format, by OpenCV. It works on whole pictures; rows are handed in and out of those.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <iostream>
#include <limits>
#include <mutex>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/require_system.h"
#include "pipeline/tiff_tags.h"

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
    Require(size <= std::numeric_limits<int>::max(),
            "files of 2 GB and more are read only if PNG or JPEG");
  } while (size == bytes.size());
  RequireSystem(!std::ferror(file), "cannot read");
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

bool IsPnm(std::span<const uchar> file) {
  return file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '7';
}
// Numbers as text.
bool IsPlainPnm(std::span<const uchar> file) { return IsPnm(file) && file[1] <= '3'; }

// The third number of the header, after width and height; 0 if it is not there.
int PnmMaxValue(std::span<const uchar> file) {
  std::string_view rest(reinterpret_cast<const char*>(file.data()), file.size());
  const auto skip_to = [&](std::size_t at) { rest.remove_prefix(std::min(at, rest.size())); };
  skip_to(2);
  int value = 0;
  for (int number = 0; number < 3; ++number) {
    constexpr std::string_view kSpace = " \t\n\v\f\r";
    skip_to(rest.find_first_not_of(kSpace));
    while (rest.starts_with('#')) {
      skip_to(rest.find('\n'));
      skip_to(rest.find_first_not_of(kSpace));
    }
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) return 0;
    skip_to(static_cast<std::size_t>(end - rest.data()));
  }
  return value;
}

// OpenCV leaves samples as they are in the file, except those of 8 bits in plain text.
void ScalePnmToFullRange(std::span<const uchar> file, cv::Mat& picture) {
  if (!IsPnm(file) || file[1] == '1' || file[1] == '4') return;
  const int full = picture.depth() == CV_8U ? 255 : 65535, max = PnmMaxValue(file);
  if (max <= 0 || max >= full || (IsPlainPnm(file) && picture.depth() == CV_8U)) return;
  picture.convertTo(picture, picture.type(), static_cast<double>(full) / max);
}

// Divides colours by alpha.
template <typename T>
void Unassociate(cv::Mat& rgba) {
  constexpr std::uint32_t kMax = std::numeric_limits<T>::max();
  for (int y = 0; y < rgba.rows; ++y) {
    T* pixel = rgba.ptr<T>(y);
    for (int x = 0; x < rgba.cols; ++x, pixel += 4) {
      const std::uint32_t alpha = pixel[3];
      if (alpha == 0) continue;
      for (int c = 0; c < 3; ++c)
        pixel[c] = static_cast<T>(std::min(kMax, (pixel[c] * kMax + alpha / 2) / alpha));
    }
  }
}

// Our pictures are not premultiplied. TIFF has both; of 8 bits OpenCV gives premultiplied ones in
// both cases, of 16 bits what is in the file.
void UnassociateTiffAlpha(std::span<const uchar> file, cv::Mat& picture) {
  constexpr int kAssociated = 1, kUnassociated = 2;
  if (picture.channels() != 4) return;
  const int extra = TiffShort(std::as_bytes(file), kTiffExtraSamples).value_or(0);
  if (picture.depth() == CV_8U && (extra == kAssociated || extra == kUnassociated))
    Unassociate<std::uint8_t>(picture);
  if (picture.depth() == CV_16U && extra == kAssociated) Unassociate<std::uint16_t>(picture);
}

class OpenCvReader final : public ImageReader {
 public:
  OpenCvReader(FilePtr file, const ReadOptions& options) {
    std::vector<uchar> bytes = ReadAll(file.get());
    Require(!IsPnm(bytes) || bytes[1] != '7', "PAM files (P7) are not supported");
    // OpenCV looks for a space behind the last number.
    if (IsPlainPnm(bytes)) bytes.push_back('\n');
    try {
      const Complaints complaints;
      picture_ = cv::imdecode(bytes, cv::IMREAD_UNCHANGED);
    } catch (const cv::Exception& e) {
      throw Error(StrCat("cannot be decoded: ", e.err));
    }
    Require(!picture_.empty(), "damaged, or no picture of a known format");
    CheckInputSize(picture_.cols, picture_.rows, options);
    const int depth = picture_.depth(), channels = picture_.channels();
    Require(depth == CV_8U || depth == CV_16U,
            "samples of this type are not supported (only 8 and 16-bit integers)");
    Require(channels == 1 || channels == 3 || channels == 4, "pictures with ", channels,
            " channels are not supported");
    ScalePnmToFullRange(bytes, picture_);
    UnassociateTiffAlpha(bytes, picture_);
    if (channels == 1 && TiffShort(std::as_bytes(std::span(bytes)), kTiffSamplesPerPixel) == 2)
      warnings_.emplace_back("the alpha of grey TIFF files is not read");
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

  void WriteStrip(const Picture& picture, std::int64_t begin, std::int64_t end,
                  const PackedStrip& /*packed*/) override {
    for (std::int64_t y = begin; y < end; ++y) {
      auto* to = reinterpret_cast<std::byte*>(picture_.ptr(static_cast<int>(y)));
      std::memcpy(to, picture.Row(y), format_.RowBytes());
      SwapRedAndBlue(to, format_);
    }
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
    RequireSystem(std::fwrite(bytes.data(), 1, bytes.size(), out_) == bytes.size(), "cannot write");
  }

 private:
  PictureFormat format_;
  std::FILE* out_;
  cv::Mat picture_;
  std::string extension_;
  std::vector<int> parameters_;
};

}  // namespace

std::unique_ptr<ImageReader> OpenWithOpenCv(FilePtr file, const ReadOptions& options) {
  return std::make_unique<OpenCvReader>(std::move(file), options);
}

std::unique_ptr<ImageWriter> MakeOpenCvWriter(ImageFormat format, const PictureFormat& picture,
                                              const WriteOptions& options, std::FILE* out) {
  return std::make_unique<OpenCvWriter>(format, picture, options, out);
}

}  // namespace tessera
