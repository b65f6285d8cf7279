#include "pipeline/planes.h"

#include <algorithm>
#include <vector>

#include "pipeline/quantise.h"

namespace tessera {
namespace {

template <typename T>
void ReadChannelAs(const Picture& picture, int channel, const Rect& rect, float* dst,
                   const Border& border) {
  const std::int64_t channels = picture.format().channels;
  const auto max = static_cast<float>(picture.format().MaxValue());
  const std::int64_t inside_begin = std::clamp<std::int64_t>(-rect.x, 0, rect.width);
  const std::int64_t inside_end =
      std::clamp<std::int64_t>(picture.width() - rect.x, inside_begin, rect.width);
  for (std::int64_t y = 0; y < rect.height; ++y, dst += rect.width) {
    const T* row = picture.Row<T>(BorderSource(rect.y + y, picture.height(), border.y)) + channel;
    const auto outside = [&](std::int64_t x) {
      dst[x] =
          static_cast<float>(row[BorderSource(rect.x + x, picture.width(), border.x) * channels]) /
          max;
    };
    for (std::int64_t x = 0; x < inside_begin; ++x) outside(x);
    const T* in = row + (rect.x + inside_begin) * channels;
    for (std::int64_t x = inside_begin; x < inside_end; ++x, in += channels)
      dst[x] = static_cast<float>(*in) / max;
    for (std::int64_t x = inside_end; x < rect.width; ++x) outside(x);
  }
}

template <typename T>
std::optional<Place> WritePlanesAs(const PlanesView& planes, const Rect& rect,
                                   const Picture& picture,
                                   const std::array<std::uint8_t, 3>& background) {
  const PictureFormat& format = picture.format();
  const int colours = format.ColourChannels();
  const bool flatten = planes.alpha != nullptr && !format.HasAlpha();
  const auto width = static_cast<std::size_t>(rect.width);
  std::vector<float> mixed(width);
  std::array<float, 3> behind;
  for (std::size_t c = 0; c < 3; ++c) behind[c] = static_cast<float>(background[c]) / 255;
  if (colours == 1) Luma(&behind[0], &behind[1], &behind[2], 1, &behind[0]);
  std::optional<Place> bad;
  for (std::int64_t y = 0; y < rect.height; ++y) {
    T* row = picture.Row<T>(rect.y + y) + rect.x * format.channels;
    const float* alpha = planes.alpha == nullptr ? nullptr : planes.alpha + y * planes.alpha_stride;
    const auto quantise = [&](const float* values, int channel) {
      const std::int64_t x = Quantise(values, rect.width, row + channel, format.channels);
      if (x >= 0 && !bad) bad = Place{rect.x + x, rect.y + y};
    };
    for (int c = 0; c < colours; ++c) {
      const float* values = planes.colour[planes.colours == 3 ? c : 0] + y * planes.stride;
      if (colours == 1 && planes.colours == 3) {
        Luma(values, planes.colour[1] + y * planes.stride, planes.colour[2] + y * planes.stride,
             rect.width, mixed.data());
        values = mixed.data();
      }
      if (flatten) {
        for (std::size_t x = 0; x < width; ++x) {
          const float a = std::clamp(alpha[x], 0.f, 1.f);
          mixed[x] = a * values[x] + (1 - a) * behind[static_cast<std::size_t>(c)];
        }
        values = mixed.data();
      }
      quantise(values, c);
    }
    if (bad) return bad;
    if (!format.HasAlpha()) continue;
    if (alpha != nullptr) {
      quantise(alpha, colours);
    } else {
      for (std::size_t x = 0; x < width; ++x)
        row[x * static_cast<std::size_t>(format.channels) + static_cast<std::size_t>(colours)] =
            static_cast<T>(format.MaxValue());
    }
  }
  return bad;
}

}  // namespace

void ReadChannel(const Picture& picture, int channel, const Rect& rect, float* dst,
                 const Border& border) {
  if (picture.format().bit_depth == 8)
    ReadChannelAs<std::uint8_t>(picture, channel, rect, dst, border);
  else
    ReadChannelAs<std::uint16_t>(picture, channel, rect, dst, border);
}

std::optional<Place> WritePlanes(const PlanesView& planes, const Rect& rect, const Picture& picture,
                                 const std::array<std::uint8_t, 3>& background) {
  return picture.format().bit_depth == 8
             ? WritePlanesAs<std::uint8_t>(planes, rect, picture, background)
             : WritePlanesAs<std::uint16_t>(planes, rect, picture, background);
}

void Luma(const float* r, const float* g, const float* b, std::int64_t count, float* dst) {
  for (std::int64_t i = 0; i < count; ++i) dst[i] = 0.299f * r[i] + 0.587f * g[i] + 0.114f * b[i];
}

}  // namespace tessera
