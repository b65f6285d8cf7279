#include "pipeline/planes.h"

#include <algorithm>
#include <vector>

#include "ops/error.h"
#include "pipeline/quantise.h"

namespace tessera {
namespace {

std::int64_t Reflect(std::int64_t i, std::int64_t length) {
  if (i < 0) return std::min(-i, length - 1);
  if (i >= length) return std::max<std::int64_t>(2 * (length - 1) - i, 0);
  return i;
}

template <typename T>
void ReadChannelAs(const Picture& picture, int channel, const Rect& rect, float* dst) {
  const std::int64_t channels = picture.format().channels;
  const auto max = static_cast<float>(picture.format().MaxValue());
  const std::int64_t inside_begin = std::clamp<std::int64_t>(-rect.x, 0, rect.width);
  const std::int64_t inside_end =
      std::clamp<std::int64_t>(picture.width() - rect.x, inside_begin, rect.width);
  for (std::int64_t y = 0; y < rect.height; ++y, dst += rect.width) {
    const T* row = picture.Row<T>(Reflect(rect.y + y, picture.height())) + channel;
    const auto outside = [&](std::int64_t x) {
      dst[x] = static_cast<float>(row[Reflect(rect.x + x, picture.width()) * channels]) / max;
    };
    for (std::int64_t x = 0; x < inside_begin; ++x) outside(x);
    const T* in = row + (rect.x + inside_begin) * channels;
    for (std::int64_t x = inside_begin; x < inside_end; ++x, in += channels)
      dst[x] = static_cast<float>(*in) / max;
    for (std::int64_t x = inside_end; x < rect.width; ++x) outside(x);
  }
}

template <typename T>
void WritePlanesAs(const PlanesView& planes, const Rect& rect, const Picture& picture) {
  const PictureFormat& format = picture.format();
  const int colours = format.ColourChannels();
  const bool flatten = planes.alpha != nullptr && !format.HasAlpha();
  const auto width = static_cast<std::size_t>(rect.width);
  std::vector<float> mixed(width);
  for (std::int64_t y = 0; y < rect.height; ++y) {
    T* row = picture.Row<T>(rect.y + y) + rect.x * format.channels;
    const float* alpha = planes.alpha == nullptr ? nullptr : planes.alpha + y * planes.alpha_stride;
    const auto quantise = [&](const float* values, int channel) {
      const std::int64_t bad = Quantise(values, rect.width, row + channel, format.channels);
      Require(bad < 0, "the result holds a value that is no finite number at (", rect.x + bad, ", ",
              rect.y + y, ")");
    };
    for (int c = 0; c < colours; ++c) {
      const float* values = planes.colour[planes.colours == 3 ? c : 0] + y * planes.stride;
      if (colours == 1 && planes.colours == 3) {
        const float *r = values, *g = planes.colour[1] + y * planes.stride,
                    *b = planes.colour[2] + y * planes.stride;
        for (std::size_t x = 0; x < width; ++x)
          mixed[x] = 0.299f * r[x] + 0.587f * g[x] + 0.114f * b[x];
        values = mixed.data();
      }
      if (flatten) {
        for (std::size_t x = 0; x < width; ++x) {
          const float a = std::clamp(alpha[x], 0.f, 1.f);
          mixed[x] = a * values[x] + (1 - a);
        }
        values = mixed.data();
      }
      quantise(values, c);
    }
    if (!format.HasAlpha()) continue;
    if (alpha != nullptr) {
      quantise(alpha, colours);
    } else {
      for (std::size_t x = 0; x < width; ++x)
        row[x * static_cast<std::size_t>(format.channels) + static_cast<std::size_t>(colours)] =
            static_cast<T>(format.MaxValue());
    }
  }
}

}  // namespace

void ReadChannel(const Picture& picture, int channel, const Rect& rect, float* dst) {
  if (picture.format().bit_depth == 8)
    ReadChannelAs<std::uint8_t>(picture, channel, rect, dst);
  else
    ReadChannelAs<std::uint16_t>(picture, channel, rect, dst);
}

void WritePlanes(const PlanesView& planes, const Rect& rect, const Picture& picture) {
  if (picture.format().bit_depth == 8)
    WritePlanesAs<std::uint8_t>(planes, rect, picture);
  else
    WritePlanesAs<std::uint16_t>(planes, rect, picture);
}

}  // namespace tessera
