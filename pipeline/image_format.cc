#include "pipeline/image_format.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <string>

#include "ops/error.h"

namespace tessera {
namespace {

struct KnownExtension {
  std::string_view name;
  ImageFormat format;
};
constexpr KnownExtension kExtensions[] = {
    {".png", ImageFormat::kPng},   {".jpg", ImageFormat::kJpeg}, {".jpeg", ImageFormat::kJpeg},
    {".webp", ImageFormat::kWebp}, {".tif", ImageFormat::kTiff}, {".tiff", ImageFormat::kTiff},
    {".bmp", ImageFormat::kBmp},   {".ppm", ImageFormat::kPnm},  {".pgm", ImageFormat::kPnm},
    {".pnm", ImageFormat::kPnm},
};

bool StartsWith(std::span<const std::byte> head, std::string_view magic) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

std::string_view Name(ImageFormat format) {
  switch (format) {
    case ImageFormat::kPng:
      return "PNG";
    case ImageFormat::kJpeg:
      return "JPEG";
    case ImageFormat::kWebp:
      return "WebP";
    case ImageFormat::kTiff:
      return "TIFF";
    case ImageFormat::kBmp:
      return "BMP";
    case ImageFormat::kPnm:
      return "PNM";
  }
  return "?";
}

std::string_view Extension(ImageFormat format) {
  switch (format) {
    case ImageFormat::kPng:
      return ".png";
    case ImageFormat::kJpeg:
      return ".jpg";
    case ImageFormat::kWebp:
      return ".webp";
    case ImageFormat::kTiff:
      return ".tif";
    case ImageFormat::kBmp:
      return ".bmp";
    case ImageFormat::kPnm:
      return ".pnm";
  }
  return "";
}

std::optional<ImageFormat> FormatOfExtension(const std::filesystem::path& path) {
  std::string extension = path.extension().native();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const KnownExtension& known : kExtensions)
    if (extension == known.name) return known.format;
  return std::nullopt;
}

std::string_view KnownExtensions() { return "png, jpg, jpeg, webp, tif, tiff, bmp, ppm, pgm, pnm"; }

Decoder DecoderOf(std::span<const std::byte> head) {
  if (StartsWith(head, "\x89PNG\r\n\x1A\n")) return Decoder::kPng;
  if (StartsWith(head, "\xFF\xD8\xFF")) return Decoder::kJpeg;
  return Decoder::kOther;
}

PictureFormat HeldFormat(ImageFormat format, const PictureFormat& wanted) {
  PictureFormat held = wanted;
  switch (format) {
    case ImageFormat::kPng:
      break;
    case ImageFormat::kJpeg:
      held.channels = wanted.ColourChannels();
      held.bit_depth = 8;
      break;
    case ImageFormat::kWebp:
      held.channels = wanted.HasAlpha() ? 4 : 3;
      held.bit_depth = 8;
      break;
    case ImageFormat::kTiff:
      if (wanted.channels == 2) held.channels = 4;
      break;
    case ImageFormat::kBmp:
      // Readers take the fourth byte of a BMP for padding.
      held.channels = wanted.ColourChannels();
      held.bit_depth = 8;
      break;
    case ImageFormat::kPnm:
      held.channels = wanted.ColourChannels();
      break;
  }
  return held;
}

std::int64_t MaxDimension(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return 65500;  // libjpeg's JPEG_MAX_DIMENSION
    case ImageFormat::kWebp:
      return 16383;
    default:
      return std::numeric_limits<std::int32_t>::max();
  }
}

}  // namespace tessera
