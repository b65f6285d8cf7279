#include "pipeline/jpeg_metadata.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "pipeline/jpeg_segments.h"
#include "pipeline/utf8.h"

namespace tessera {
namespace {

constexpr int kApp1 = JPEG_APP0 + 1, kApp2 = JPEG_APP0 + 2;
constexpr double kMetresPerInch = 0.0254, kMetresPerCentimetre = 0.01;
constexpr int kPerInch = 1, kPerCentimetre = 2;  // JFIF's units

// Nobody says what a comment is written in.
std::string CommentText(std::string_view bytes) {
  std::string text(bytes);
  std::erase(text, '\0');
  return IsUtf8(text) ? text : Latin1ToUtf8(text);
}

void WriteSegment(jpeg_compress_struct& jpeg, int marker, std::string_view head,
                  std::string_view body) {
  jpeg_write_m_header(&jpeg, marker, static_cast<unsigned>(head.size() + body.size()));
  for (const std::string_view part : {head, body})
    for (const char c : part) jpeg_write_m_byte(&jpeg, static_cast<unsigned char>(c));
}

}  // namespace

void KeepJpegMetadata(jpeg_decompress_struct& jpeg) {
  for (const int marker : {kApp1, kApp2, JPEG_COM}) jpeg_save_markers(&jpeg, marker, 0xFFFF);
}

Metadata ParseJpegMetadata(const jpeg_decompress_struct& jpeg, std::vector<std::string>& warnings) {
  Metadata metadata;
  bool extended = false;
  for (auto marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
    std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    const auto take = [&](std::string_view head, std::string& to) {
      if (data.starts_with(head) && to.empty()) to = data.substr(head.size());
    };
    if (marker->marker == kApp1) {
      take(kJpegExif, metadata.exif);
      take(kJpegXmp, metadata.xmp);
      extended |= data.starts_with(kJpegExtendedXmp);
    } else if (marker->marker == JPEG_COM) {
      metadata.text.push_back(
          {.keyword = std::string(kCommentKeyword), .value = CommentText(data)});
    }
  }
  if (extended) warnings.emplace_back("extended XMP is left out");
  if (jpeg.saw_JFIF_marker && jpeg.X_density > 0 && jpeg.Y_density > 0 &&
      (jpeg.density_unit == kPerInch || jpeg.density_unit == kPerCentimetre)) {
    const double metres = jpeg.density_unit == kPerInch ? kMetresPerInch : kMetresPerCentimetre;
    metadata.density = {.x = jpeg.X_density / metres, .y = jpeg.Y_density / metres};
  }
  return metadata;
}

void SetJpegDensity(jpeg_compress_struct& jpeg, const Metadata::Density& density) {
  const auto is_whole = [&](double metres) {
    const auto is_near = [](double x) { return std::abs(x - std::round(x)) < 0.01; };
    return is_near(density.x * metres) && is_near(density.y * metres);
  };
  // Inches, unless only centimetres come out even.
  const bool inches = is_whole(kMetresPerInch) || !is_whole(kMetresPerCentimetre);
  const auto rounded = [&](double per_metre) {
    const double value = per_metre * (inches ? kMetresPerInch : kMetresPerCentimetre);
    return static_cast<UINT16>(std::clamp(std::round(value), 1.0, 65535.0));
  };
  jpeg.density_unit = inches ? kPerInch : kPerCentimetre;
  jpeg.X_density = rounded(density.x);
  jpeg.Y_density = rounded(density.y);
}

void WriteJpegMetadata(jpeg_compress_struct& jpeg, const Metadata& metadata) {
  if (!metadata.exif.empty()) WriteSegment(jpeg, kApp1, kJpegExif, metadata.exif);
  if (!metadata.xmp.empty()) WriteSegment(jpeg, kApp1, kJpegXmp, metadata.xmp);
  if (!metadata.icc.empty())
    jpeg_write_icc_profile(&jpeg, reinterpret_cast<const JOCTET*>(metadata.icc.data()),
                           static_cast<unsigned>(metadata.icc.size()));
  for (const Metadata::Text& text : metadata.text)
    if (text.keyword == kCommentKeyword) WriteSegment(jpeg, JPEG_COM, {}, text.value);
}

}  // namespace tessera
