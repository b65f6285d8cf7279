// Between integer samples and float planes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "pipeline/border.h"
#include "pipeline/picture.h"

namespace tessera {

// Reads one channel of `rect` into dst, rows without gaps, as samples / MaxValue(). `rect` may
// reach beyond the picture's border.
void ReadChannel(const Picture& picture, int channel, const Rect& rect, float* dst,
                 const Border& border = {});

// Float planes of a part of a picture; rows are `stride` floats apart.
struct PlanesView {
  const float* colour[3] = {};
  int colours = 0;  // 1: grey, 3: RGB
  std::int64_t stride = 0;
  const float* alpha = nullptr;  // null: opaque
  std::int64_t alpha_stride = 0;
};

struct Place {
  std::int64_t x = 0, y = 0;
};

// Writes `rect` of `picture` from planes that start at its top left pixel. Grey from RGB is
// Rec. 601 luma, as in most image tools; alpha that the picture has no channel for is flattened on
// `background` (RGB, 8 bits). Values are clamped and rounded as by Quantise. Returns where in the
// picture the first value is that is no finite number, if there is one.
[[nodiscard]] std::optional<Place> WritePlanes(const PlanesView& planes, const Rect& rect,
                                               const Picture& picture,
                                               const std::array<std::uint8_t, 3>& background = {
                                                   255, 255, 255});

// Rec. 601 luma of `count` pixels.
void Luma(const float* r, const float* g, const float* b, std::int64_t count, float* dst);

}  // namespace tessera
