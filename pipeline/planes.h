// Between integer samples and float planes.
#pragma once

#include <cstdint>

#include "pipeline/picture.h"

namespace tessera {

// Reads one channel of `rect` into dst, rows without gaps, as samples / MaxValue(). The picture
// continues beyond its borders by reflection (about the outermost pixel) as far as that goes, then
// by its last value.
void ReadChannel(const Picture& picture, int channel, const Rect& rect, float* dst);

// Float planes of a part of a picture; rows are `stride` floats apart.
struct PlanesView {
  const float* colour[3] = {};
  int colours = 0;  // 1: grey, 3: RGB
  std::int64_t stride = 0;
  const float* alpha = nullptr;  // null: opaque
  std::int64_t alpha_stride = 0;
};

// Writes `rect` of `picture` from planes that start at its top left pixel. Grey from RGB is
// Rec. 601 luma, as in most image tools; alpha that the picture has no channel for is flattened on
// white. Values are clamped and rounded as by Quantise. Throws Error at the first value that is no
// finite number, with its place.
void WritePlanes(const PlanesView& planes, const Rect& rect, const Picture& picture);

}  // namespace tessera
