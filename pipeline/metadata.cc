#include "pipeline/metadata.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "ops/error.h"
#include "pipeline/exif.h"
#include "pipeline/jpeg_segments.h"
#include "pipeline/utf8.h"
#include "pipeline/xmp.h"

namespace tessera {
namespace {

// What a format has a place for.
struct Places {
  bool icc = false, exif = false, xmp = false, density = false, png = false, comment = false;
};
Places PlacesOf(ImageFormat format) {
  switch (format) {
    case ImageFormat::kPng:
      return {.icc = true, .exif = true, .xmp = true, .density = true, .png = true};
    case ImageFormat::kJpeg:
      return {.icc = true, .exif = true, .xmp = true, .density = true, .comment = true};
    case ImageFormat::kTiff:
      return {.icc = true, .exif = true, .xmp = true, .density = true};
    case ImageFormat::kWebp:
      return {.icc = true, .exif = true, .xmp = true};
    case ImageFormat::kBmp:
      return {.density = true};
    case ImageFormat::kPnm:
      break;
  }
  return {};
}

// An ICC profile: a header, and a table of tags (ICC.1:2022, sections 7.2 and 7.3).
class IccProfile {
 public:
  explicit IccProfile(std::string_view bytes) : bytes_(bytes) {}

  std::size_t Size() const { return Number(0); }
  bool IsWhole() const {
    if (bytes_.size() < kHeaderBytes + 4 || Size() > bytes_.size() || Size() < kHeaderBytes + 4 ||
        bytes_.substr(36, 4) != "acsp")
      return false;
    const std::size_t tags = Number(kHeaderBytes);
    if (tags > (Size() - kHeaderBytes - 4) / kTagBytes) return false;
    for (std::size_t i = 0; i < tags; ++i) {
      const std::size_t tag = kHeaderBytes + 4 + i * kTagBytes;
      if (Number(tag + 4) + Number(tag + 8) > Size()) return false;
    }
    return true;
  }
  // "RGB ", "GRAY", "CMYK", ...
  std::string_view ColourSpace() const { return bytes_.substr(16, 4); }

 private:
  static constexpr std::size_t kHeaderBytes = 128, kTagBytes = 12;

  std::size_t Number(std::size_t at) const {
    std::size_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    return value;
  }

  std::string_view bytes_;
};

void AdaptIcc(std::string& icc, const PictureFormat& output, std::vector<std::string>& notes) {
  if (icc.empty()) return;
  const IccProfile profile(icc);
  if (!profile.IsWhole()) {
    notes.emplace_back("the ICC profile is damaged: left out");
    icc.clear();
    return;
  }
  icc.resize(profile.Size());
  const std::string_view fitting = output.ColourChannels() == 1 ? "GRAY" : "RGB ";
  if (profile.ColourSpace() == fitting) return;
  notes.push_back(StrCat("the ICC profile is not for ",
                         output.ColourChannels() == 1 ? "grey" : "RGB",
                         ", which the output is: left out"));
  icc.clear();
}

void AdaptExif(std::string& exif, const PictureFormat& output, std::vector<std::string>& notes) {
  if (exif.empty() || PatchExif(exif, output.width, output.height)) return;
  notes.emplace_back("the EXIF data are damaged: left out");
  exif.clear();
}

void AdaptXmp(std::string& xmp, const PictureFormat& output, std::vector<std::string>& notes) {
  if (xmp.empty()) return;
  const bool is_utf8 = IsUtf8(xmp);
  if (is_utf8 && LooksLikeXmp(xmp)) {
    PatchXmp(xmp, output.width, output.height);
  } else {
    notes.push_back(StrCat("the XMP data are ", is_utf8 ? "damaged" : "not UTF-8", ": left out"));
    xmp.clear();
  }
}

// Whether the colours are meant to be seen otherwise than where nothing is said of them, which is
// as sRGB.
bool HasOwnColours(const Metadata& metadata) {
  if (!metadata.icc.empty()) return false;
  constexpr std::array<std::uint8_t, 4> kSrgbCicp{1, 13, 0, 1};
  if (metadata.cicp) return metadata.cicp != kSrgbCicp;
  if (metadata.srgb_intent) return false;
  constexpr double kGamma = 1 / 2.2, kClose = 0.005;
  constexpr std::array<double, 8> kSrgb{0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06};
  const auto is_close = [](double a, double b) { return std::abs(a - b) <= kClose; };
  return !is_close(metadata.gamma.value_or(kGamma), kGamma) ||
         !std::ranges::equal(metadata.chromaticity.value_or(kSrgb), kSrgb, is_close);
}

// Takes things out, and keeps their names.
class LeftOut {
 public:
  void Take(bool fits, std::string& block, std::string_view name) {
    if (fits || block.empty()) return;
    Add(name);
    block.clear();
  }
  void Add(std::string_view name) {
    if (!names_.empty()) names_ += ", ";
    names_ += name;
  }
  const std::string& names() const { return names_; }

 private:
  std::string names_;
};

void TakeWithoutPlace(Metadata& metadata, const Places& places, LeftOut& left_out) {
  left_out.Take(places.icc, metadata.icc, "ICC profile");
  left_out.Take(places.exif, metadata.exif, "EXIF");
  left_out.Take(places.xmp, metadata.xmp, "XMP");
  if (!places.density) {
    if (metadata.density && !ExifDensity(metadata.exif)) left_out.Add("resolution");
    metadata.density.reset();
  }
  if (places.png) return;
  if (HasOwnColours(metadata)) left_out.Add("gamma and chromaticities");
  metadata.gamma.reset();
  metadata.srgb_intent.reset();
  metadata.chromaticity.reset();
  metadata.cicp.reset();
  const auto is_lost = [&](const Metadata::Text& text) {
    return !places.comment || text.keyword != kCommentKeyword;
  };
  if (std::erase_if(metadata.text, is_lost) > 0) left_out.Add("text");
}

void TakeBeyondSegments(Metadata& metadata, LeftOut& left_out) {
  const auto take = [&](std::size_t limit, std::string& block, std::string_view name) {
    left_out.Take(block.size() <= limit, block, name);
  };
  take(kJpegIccBytes, metadata.icc, "ICC profile");
  take(kJpegSegmentBytes - kJpegExif.size(), metadata.exif, "EXIF");
  take(kJpegSegmentBytes - kJpegXmp.size(), metadata.xmp, "XMP");
  const auto is_long = [](const Metadata::Text& text) {
    return text.value.size() > kJpegSegmentBytes;
  };
  if (std::erase_if(metadata.text, is_long) > 0) left_out.Add("comment");
}

}  // namespace

Metadata AdaptMetadata(Metadata metadata, const PictureFormat& output, ImageFormat format,
                       std::vector<std::string>& notes) {
  if (!metadata.density) metadata.density = ExifDensity(metadata.exif);
  AdaptIcc(metadata.icc, output, notes);
  AdaptExif(metadata.exif, output, notes);
  AdaptXmp(metadata.xmp, output, notes);

  LeftOut no_place, too_large;
  TakeWithoutPlace(metadata, PlacesOf(format), no_place);
  if (format == ImageFormat::kJpeg) TakeBeyondSegments(metadata, too_large);
  if (!no_place.names().empty())
    notes.push_back(StrCat(Name(format), " has no place for: ", no_place.names(), "; left out"));
  if (!too_large.names().empty())
    notes.push_back(StrCat("too large for ", Name(format), ": ", too_large.names(), "; left out"));
  return metadata;
}

}  // namespace tessera
