#include "ops/reorder_bytes.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reorder_bytes.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kSide = 16;  // of the squares that are transposed

#if HWY_TARGET != HWY_SCALAR

using D8 = hn::Full128<std::uint8_t>;
using V8 = hn::Vec<D8>;

// Transposes the 16x16 bytes of v. Interleaving rows i and i + 8 rotates the eight bits of
// (row, column) by one place; four times, it swaps row and column.
HWY_INLINE void Transpose(V8 (&v)[kSide]) {
  const D8 d;
  for (int pass = 0; pass < 4; ++pass) {
    V8 next[kSide];
    for (std::size_t i = 0; i < kSide / 2; ++i) {
      next[2 * i] = hn::InterleaveLower(d, v[i], v[i + kSide / 2]);
      next[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kSide / 2]);
    }
    std::copy_n(next, kSide, v);
  }
}

// 16 pixels of 16 channels, of which `channels` are real.
HWY_INLINE void SquareToPixels(const std::uint8_t* planes, std::size_t plane_stride,
                               std::size_t channels, std::uint8_t* pixels,
                               std::size_t pixel_stride) {
  const D8 d;
  V8 v[kSide];
  for (std::size_t c = 0; c < kSide; ++c) {
    v[c] = c < channels ? hn::LoadU(d, planes + c * plane_stride) : hn::Zero(d);
  }
  Transpose(v);
  for (std::size_t x = 0; x < kSide; ++x) hn::StoreU(v[x], d, pixels + x * pixel_stride);
}

HWY_INLINE void SquareToPlanes(const std::uint8_t* pixels, std::size_t pixel_stride,
                               std::size_t channels, std::uint8_t* planes,
                               std::size_t plane_stride) {
  const D8 d;
  V8 v[kSide];
  for (std::size_t x = 0; x < kSide; ++x) v[x] = hn::LoadU(d, pixels + x * pixel_stride);
  Transpose(v);
  for (std::size_t c = 0; c < channels; ++c) hn::StoreU(v[c], d, planes + c * plane_stride);
}

// Pixels of 4 bytes.
HWY_INLINE void QuartersToPixels(const std::uint8_t* planes, std::size_t plane_stride,
                                 std::size_t channels, std::uint8_t* pixels) {
  const D8 d;
  const auto plane = [&](std::size_t c) HWY_ATTR {
    return c < channels ? hn::LoadU(d, planes + c * plane_stride) : hn::Zero(d);
  };
  hn::StoreInterleaved4(plane(0), plane(1), plane(2), plane(3), d, pixels);
}

HWY_INLINE void QuartersToPlanes(const std::uint8_t* pixels, std::size_t channels,
                                 std::uint8_t* planes, std::size_t plane_stride) {
  const D8 d;
  V8 v[4];
  hn::LoadInterleaved4(d, pixels, v[0], v[1], v[2], v[3]);
  for (std::size_t c = 0; c < channels; ++c) hn::StoreU(v[c], d, planes + c * plane_stride);
}

#endif  // HWY_TARGET != HWY_SCALAR

// Calls square(x, c, channels) for squares that cover all pixels and channels. False if there are
// fewer pixels than one square has.
template <class Square>
HWY_INLINE bool ForSquares(std::size_t channels, std::size_t count, std::size_t group,
                           const Square& square) {
  if (HWY_TARGET == HWY_SCALAR || count < kSide) return false;
  for (std::size_t i = 0; i < count; i += kSide) {
    const std::size_t x = std::min(i, count - kSide);  // the last one may overlap
    for (std::size_t c = 0; c < channels; c += group) square(x, c, std::min(group, channels - c));
  }
  return true;
}

void ToPixels(const std::uint8_t* planes, std::size_t plane_stride, std::size_t channels,
              std::size_t count, std::uint8_t* pixels, std::size_t pixel_stride) {
  const std::size_t group = pixel_stride == 4 ? 4 : kSide;
  if (ForSquares(channels, count, group,
                 [=]([[maybe_unused]] std::size_t x, [[maybe_unused]] std::size_t c,
                     [[maybe_unused]] std::size_t n) HWY_ATTR {
#if HWY_TARGET != HWY_SCALAR
                   const std::uint8_t* from = planes + c * plane_stride + x;
                   std::uint8_t* to = pixels + x * pixel_stride + c;
                   if (group == 4) return QuartersToPixels(from, plane_stride, n, to);
                   SquareToPixels(from, plane_stride, n, to, pixel_stride);
#endif
                 })) {
    return;
  }
  const std::size_t padded = (channels + group - 1) / group * group;
  for (std::size_t x = 0; x < count; ++x) {
    for (std::size_t c = 0; c < padded; ++c) {
      pixels[x * pixel_stride + c] = c < channels ? planes[c * plane_stride + x] : std::uint8_t{0};
    }
  }
}

void ToPlanes(const std::uint8_t* pixels, std::size_t pixel_stride, std::size_t channels,
              std::size_t count, std::uint8_t* planes, std::size_t plane_stride) {
  const std::size_t group = pixel_stride == 4 ? 4 : kSide;
  if (ForSquares(channels, count, group,
                 [=]([[maybe_unused]] std::size_t x, [[maybe_unused]] std::size_t c,
                     [[maybe_unused]] std::size_t n) HWY_ATTR {
#if HWY_TARGET != HWY_SCALAR
                   const std::uint8_t* from = pixels + x * pixel_stride + c;
                   std::uint8_t* to = planes + c * plane_stride + x;
                   if (group == 4) return QuartersToPlanes(from, n, to, plane_stride);
                   SquareToPlanes(from, pixel_stride, n, to, plane_stride);
#endif
                 })) {
    return;
  }
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t x = 0; x < count; ++x) {
      planes[c * plane_stride + x] = pixels[x * pixel_stride + c];
    }
  }
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(ToPixels);
HWY_EXPORT(ToPlanes);

void BytePlanesToPixels(const std::uint8_t* planes, std::size_t plane_stride, std::size_t channels,
                        std::size_t count, std::uint8_t* pixels, std::size_t pixel_stride) {
  HWY_DYNAMIC_DISPATCH(ToPixels)(planes, plane_stride, channels, count, pixels, pixel_stride);
}

void BytePixelsToPlanes(const std::uint8_t* pixels, std::size_t pixel_stride, std::size_t channels,
                        std::size_t count, std::uint8_t* planes, std::size_t plane_stride) {
  HWY_DYNAMIC_DISPATCH(ToPlanes)(pixels, pixel_stride, channels, count, planes, plane_stride);
}

}  // namespace tessera
#endif  // HWY_ONCE
