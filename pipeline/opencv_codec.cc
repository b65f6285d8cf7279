// Reads every other format, by OpenCV. It works on whole pictures; rows are handed out of those.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <opencv2/core.hpp>
#include <opencv2/imgcodecs.hpp>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "ops/error.h"
#include "pipeline/codecs.h"
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

bool IsPnm(std::string_view file) {
  return file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '7';
}
// Numbers as text.
bool IsPlainPnm(std::string_view file) { return IsPnm(file) && file[1] <= '3'; }

struct PnmHeader {
  std::int64_t width = 0, height = 0, max = 1;
};

// Nothing if the header is damaged.
std::optional<PnmHeader> ParsePnmHeader(std::string_view file) {
  std::string_view rest = file;
  const auto skip_to = [&](std::size_t at) { rest.remove_prefix(std::min(at, rest.size())); };
  skip_to(2);
  PnmHeader header;
  const bool bitmap = file[1] == '1' || file[1] == '4';
  for (std::int64_t* value : {&header.width, &header.height, &header.max}) {
    if (value == &header.max && bitmap) break;
    constexpr std::string_view kSpace = " \t\n\v\f\r";
    skip_to(rest.find_first_not_of(kSpace));
    while (rest.starts_with('#')) {
      skip_to(rest.find('\n'));
      skip_to(rest.find_first_not_of(kSpace));
    }
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *value);
    if (error != std::errc()) return std::nullopt;
    skip_to(static_cast<std::size_t>(end - rest.data()));
  }
  return header;
}

// OpenCV believes sizes in headers.
void CheckPnm(std::string_view file, const ReadOptions& options) {
  Require(file[1] != '7', "PAM files (P7) are not supported");
  const std::optional<PnmHeader> header = ParsePnmHeader(file);
  Require(header.has_value(), "its header is damaged");
  CheckInputSize(header->width, header->height, options);
  const std::int64_t pixels = header->width * header->height;
  const std::int64_t samples = file[1] == '3' || file[1] == '6' ? 3 * pixels : pixels;
  std::int64_t least = header->max > 255 ? 2 * samples : samples;
  if (file[1] == '4') least = (header->width + 7) / 8 * header->height;
  if (file[1] == '2' || file[1] == '3') least = 2 * samples - 1;  // a space after each
  CheckFileSize(file.size(), static_cast<std::size_t>(least));
}

// OpenCV leaves samples as they are in the file, except those of 8 bits in plain text.
void ScalePnmToFullRange(std::string_view file, cv::Mat& picture) {
  const int full = picture.depth() == CV_8U ? 255 : 65535;
  if (file[1] == '1' || file[1] == '4' || (IsPlainPnm(file) && full == 255)) return;
  const std::int64_t max = ParsePnmHeader(file).value_or(PnmHeader{}).max;
  if (max <= 0 || max >= full) return;
  picture.convertTo(picture, picture.type(), full / static_cast<double>(max));
}

bool IsBmp(std::string_view file) { return file.starts_with("BM") && file.size() >= 46; }

std::int64_t BmpNumber(std::string_view file, std::size_t at, std::size_t size) {
  const auto value = TiffNumber(std::as_bytes(std::span(file)).subspan(at, size), false);
  return size == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
}

// Of the rarer kinds OpenCV makes wrong pictures.
void CheckBmp(std::string_view file, const ReadOptions& options) {
  constexpr std::int64_t kOldHeaderBytes = 12, kNone = 0, kBitFields = 3;
  Require(BmpNumber(file, 14, 4) != kOldHeaderBytes, "BMP files of OS/2 1.x are not supported");
  const std::int64_t compression = BmpNumber(file, 30, 4);
  Require(compression == kNone || compression == kBitFields,
          "compressed BMP files are not supported");
  const std::int64_t width = BmpNumber(file, 18, 4), height = std::abs(BmpNumber(file, 22, 4));
  CheckInputSize(width, height, options);
  const std::int64_t bits = BmpNumber(file, 28, 2);
  Require(bits <= 32, "BMP files of ", bits, " bits a pixel are not supported");
  CheckFileSize(file.size(), static_cast<std::size_t>((width * bits + 31) / 32 * 4 * height));
}

class OpenCvReader final : public ImageReader {
 public:
  OpenCvReader(FilePtr file, const ReadOptions& options) {
    std::string bytes = ReadToEnd(file.get(), kMaxFileInMemory);
    file.reset();
    if (IsPnm(bytes)) CheckPnm(bytes, options);
    if (IsBmp(bytes)) CheckBmp(bytes, options);
    // OpenCV looks for a space behind the last number.
    if (IsPlainPnm(bytes)) bytes.push_back('\n');
    try {
      const Complaints complaints;
      picture_ = cv::imdecode(cv::Mat(1, static_cast<int>(bytes.size()), CV_8U, bytes.data()),
                              cv::IMREAD_UNCHANGED);
    } catch (const cv::Exception& e) {
      throw Error(StrCat("cannot be decoded: ", e.err));
    }
    Require(!picture_.empty(), "damaged, or no picture of a known format");
    CheckInputSize(picture_.cols, picture_.rows, options);
    const int depth = picture_.depth(), channels = picture_.channels();
    Require(depth != CV_32F && depth != CV_64F, "floating-point (HDR) samples are not supported");
    Require(depth == CV_8U || depth == CV_16U,
            "samples of this type are not supported (only 8 and 16-bit integers)");
    Require(channels == 1 || channels == 3 || channels == 4, "pictures with ", channels,
            " channels are not supported");
    if (IsPnm(bytes)) ScalePnmToFullRange(bytes, picture_);
    if (IsBmp(bytes)) ReadBmpDensity(bytes);
    format_ = {.width = picture_.cols,
               .height = picture_.rows,
               .channels = channels,
               .bit_depth = depth == CV_8U ? 8 : 16};
  }

  std::size_t HeldBytes() const override { return picture_.total() * picture_.elemSize(); }

  void ReadRow(std::byte* row) override {
    std::memcpy(row, picture_.ptr(next_row_++), format_.RowBytes());
    SwapRedAndBlue(row, format_);
  }

 private:
  void ReadBmpDensity(std::string_view file) {
    constexpr std::int64_t kInfoHeaderBytes = 40;
    if (BmpNumber(file, 14, 4) < kInfoHeaderBytes) return;
    const std::int64_t x = BmpNumber(file, 38, 4), y = BmpNumber(file, 42, 4);
    if (x > 0 && y > 0)
      metadata_.density =
          Metadata::Density{.x = static_cast<double>(x), .y = static_cast<double>(y)};
  }

  cv::Mat picture_;
  int next_row_ = 0;
};

}  // namespace

std::unique_ptr<ImageReader> OpenWithOpenCv(FilePtr file, const ReadOptions& options) {
  return std::make_unique<OpenCvReader>(std::move(file), options);
}

}  // namespace tessera
