// Pictures for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "pipeline/picture.h"
#include "tests/temporary_folder.h"

namespace tessera {

inline std::uint32_t Sample(const Picture& picture, std::int64_t x, std::int64_t y, int channel) {
  const auto i = x * picture.format().channels + channel;
  return picture.format().bit_depth == 8 ? picture.Row<std::uint8_t>(y)[i]
                                         : picture.Row<std::uint16_t>(y)[i];
}

inline void SetSample(const Picture& picture, std::int64_t x, std::int64_t y, int channel,
                      std::uint32_t value) {
  const auto i = x * picture.format().channels + channel;
  if (picture.format().bit_depth == 8) {
    picture.Row<std::uint8_t>(y)[i] = static_cast<std::uint8_t>(value);
  } else {
    picture.Row<std::uint16_t>(y)[i] = static_cast<std::uint16_t>(value);
  }
}

// Seeded noise over all samples.
inline Picture NoisePicture(const PictureFormat& format, std::uint32_t seed = 1) {
  Picture picture(format);
  std::uint32_t s = seed * 2654435761u + 1;
  for (std::int64_t y = 0; y < format.height; ++y) {
    for (std::int64_t x = 0; x < format.width; ++x) {
      for (int c = 0; c < format.channels; ++c) {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        SetSample(picture, x, y, c, s >> (32 - format.bit_depth));
      }
    }
  }
  return picture;
}

inline bool SamePixels(const Picture& a, const Picture& b) {
  return a.format() == b.format() && std::memcmp(a.Row(0), b.Row(0), a.bytes()) == 0;
}

}  // namespace tessera
