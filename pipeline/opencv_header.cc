#include "pipeline/opencv_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <system_error>

#include "ops/error.h"
#include "pipeline/codecs.h"
#include "pipeline/jpeg2000_header.h"
#include "pipeline/opencv_decode.h"
#include "pipeline/tiff_tags.h"

namespace tessera {
namespace {

bool IsPnm(std::string_view file) {
  return file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '7';
}
// Numbers as text.
bool IsPlainPnm(std::string_view file) { return IsPnm(file) && file[1] <= '3'; }

struct PnmHeader {
  std::int64_t width = 0, height = 0, max = 255;
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

OpenCvHeader ReadPnm(std::string& file, const ReadOptions& options) {
  Require(file[1] != '7', "PAM files (P7) are not supported");
  const std::optional<PnmHeader> pnm = ParsePnmHeader(file);
  Require(pnm.has_value(), "its header is damaged");
  CheckInputSize(pnm->width, pnm->height, options);
  Require(pnm->max > 0 && pnm->max <= 65535, "its header claims samples up to ", pnm->max);
  OpenCvHeader header{.format = {.width = pnm->width,
                                 .height = pnm->height,
                                 .channels = file[1] == '3' || file[1] == '6' ? 3 : 1,
                                 .bit_depth = pnm->max > 255 ? 16 : 8},
                      .max_value = pnm->max};
  const std::int64_t samples = pnm->width * pnm->height * header.format.channels;
  std::int64_t least = pnm->max > 255 ? 2 * samples : samples;
  if (file[1] == '4') least = (pnm->width + 7) / 8 * pnm->height;
  if (file[1] == '2' || file[1] == '3') least = 2 * samples - 1;  // a space after each
  CheckFileSize(file.size(), static_cast<std::size_t>(least));
  if (!IsPlainPnm(file)) return header;
  if (header.format.bit_depth == 8) header.max_value = 255;  // OpenCV scales those of 8 bits
  file.push_back('\n');  // it looks for a space behind the last number
  return header;
}

// The type of the samples depends on the palette; OpenCV is asked what it makes of one pixel. Width
// and height are numbers of four bytes, one behind the other.
PictureFormat FormatOfOnePixel(std::string& file, std::size_t size_at, bool big_endian) {
  const std::string size = file.substr(size_at, 8);
  std::string one;
  for (int i = 0; i < 2; ++i) AppendTiffNumber(one, 1, 4, big_endian);
  file.replace(size_at, 8, one);
  const PictureFormat format = FormatOf(DecodeWithOpenCv(file));
  file.replace(size_at, 8, size);
  return format;
}

bool IsBmp(std::string_view file) { return file.starts_with("BM") && file.size() >= 46; }

std::int64_t BmpNumber(std::string_view file, std::size_t at, std::size_t size) {
  const auto value = TiffNumber(std::as_bytes(std::span(file)).subspan(at, size), false);
  return size == 4 ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
}

OpenCvHeader ReadBmp(std::string& file, const ReadOptions& options) {
  constexpr std::int64_t kOldHeaderBytes = 12, kInfoHeaderBytes = 40, kNone = 0, kBitFields = 3;
  const std::int64_t header_bytes = BmpNumber(file, 14, 4);
  Require(header_bytes != kOldHeaderBytes, "BMP files of OS/2 1.x are not supported");
  const std::int64_t compression = BmpNumber(file, 30, 4);
  Require(compression == kNone || compression == kBitFields,
          "compressed BMP files are not supported");
  const std::int64_t width = BmpNumber(file, 18, 4), height = std::abs(BmpNumber(file, 22, 4));
  CheckInputSize(width, height, options);
  const std::int64_t bits = BmpNumber(file, 28, 2);
  Require(bits <= 32, "BMP files of ", bits, " bits a pixel are not supported");
  CheckFileSize(file.size(), static_cast<std::size_t>((width * bits + 31) / 32 * 4 * height));

  OpenCvHeader header{.format = FormatOfOnePixel(file, 18, false), .max_value = 255};
  header.format.width = width;
  header.format.height = height;
  if (header_bytes < kInfoHeaderBytes) return header;
  const std::int64_t x = BmpNumber(file, 38, 4), y = BmpNumber(file, 42, 4);
  if (x > 0 && y > 0)
    header.density = Metadata::Density{.x = static_cast<double>(x), .y = static_cast<double>(y)};
  return header;
}

constexpr std::size_t kSunHeaderBytes = 32;

bool IsSunRaster(std::string_view file) {
  return file.starts_with("\x59\xA6\x6A\x95") && file.size() >= kSunHeaderBytes;
}

// Eight numbers: magic, width, height, bits, bytes, type, type of palette, its bytes.
OpenCvHeader ReadSunRaster(std::string& file, const ReadOptions& options) {
  const auto number = [&](std::size_t i) {
    return static_cast<std::int64_t>(
        TiffNumber(std::as_bytes(std::span(file)).subspan(4 * i, 4), true));
  };
  const std::int64_t width = number(1), height = number(2), bits = number(3), type = number(5);
  constexpr std::int64_t kOld = 0, kStandard = 1;
  CheckInputSize(width, height, options);
  Require(type == kOld || type == kStandard, "Sun raster files of type ", type,
          " are not supported");
  // Rows end on a multiple of 2 bytes.
  CheckFileSize(file.size(), static_cast<std::size_t>((width * bits + 15) / 16 * 2 * height));
  OpenCvHeader header{.format = FormatOfOnePixel(file, 4, true), .max_value = 255};
  header.format.width = width;
  header.format.height = height;
  return header;
}

OpenCvHeader ReadJpeg2000(const std::string& file, const ReadOptions& options) {
  const Jpeg2000Header jpeg = ParseJpeg2000Header(file);
  CheckInputSize(jpeg.width, jpeg.height, options);
  Require(jpeg.components == 1 || jpeg.components == 3 || jpeg.components == 4, "pictures with ",
          jpeg.components, " channels are not supported");
  Require(jpeg.bits >= 8 && jpeg.bits <= 16, "JPEG 2000 files of ", jpeg.bits,
          " bits a sample are not supported (only 8 to 16)");
  // A tile has the segments SOT and SOD. The format can say in a byte that the whole picture is
  // flat; but one that is not takes a byte a code block, of 4096 samples at the most. So large
  // pictures with less are taken for a damaged header.
  constexpr std::int64_t kTileBytes = 12 + 2, kBlockSamples = 4096, kSmall = 1 << 24;
  const std::int64_t pixels = jpeg.width * jpeg.height;
  const auto bytes = static_cast<std::int64_t>(file.size());
  Require(jpeg.tiles <= bytes / kTileBytes && (pixels <= kSmall || pixels / kBlockSamples <= bytes),
          "its header claims ", jpeg.width, "x", jpeg.height, " pixels in ", jpeg.tiles,
          " tiles, more than ", bytes, " bytes can be taken to hold");
  // OpenJPEG has samples as 32-bit integers, once in tiles and once in the picture, and keeps
  // parameters of each tile.
  constexpr std::int64_t kTileParameterBytes = 12 << 10;
  return {
      .format = {.width = jpeg.width,
                 .height = jpeg.height,
                 .channels = jpeg.components,
                 .bit_depth = jpeg.bits > 8 ? 16 : 8},
      .max_value = (1 << jpeg.bits) - 1,
      .decoder_bytes = file.size() + static_cast<std::size_t>(pixels * jpeg.components * 8 +
                                                              jpeg.tiles * kTileParameterBytes)};
}

// Radiance, OpenEXR, PFM.
bool IsFloatingPoint(std::string_view file) {
  for (const std::string_view magic : {"#?RADIANCE", "#?RGBE", "\x76\x2F\x31\x01", "PF", "Pf"})
    if (file.starts_with(magic)) return true;
  return false;
}

}  // namespace

OpenCvHeader ParseOpenCvHeader(std::string& file, const ReadOptions& options) {
  if (IsPnm(file)) return ReadPnm(file, options);
  if (IsBmp(file)) return ReadBmp(file, options);
  if (IsSunRaster(file)) return ReadSunRaster(file, options);
  if (IsJpeg2000(file)) return ReadJpeg2000(file, options);
  Require(!IsFloatingPoint(file), "floating-point (HDR) samples are not supported");
  throw Error("damaged, or no picture of a known format");
}

}  // namespace tessera
