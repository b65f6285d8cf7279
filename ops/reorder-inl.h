// Transposes between planes (row-major NCHW) and pixels (one block of channels of NCHWc), and
// copies with a stride.
// Included once per target.

#if defined(TESSERA_OPS_REORDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_REORDER_INL_H_
#undef TESSERA_OPS_REORDER_INL_H_
#else
#define TESSERA_OPS_REORDER_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR

// A vector of 128-bit groups; group g comes from, or goes to, p + g * stride.
template <class D>
HWY_INLINE hn::Vec<D> LoadGroups(D d, const float* p, std::size_t stride) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadGroups(half, p + hn::Lanes(half) / 4 * stride, stride),
                       LoadGroups(half, p, stride));
  }
}
template <class D>
HWY_INLINE void StoreGroups(D d, hn::Vec<D> v, float* p, std::size_t stride) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    hn::StoreU(v, d, p);
  } else {
    const hn::Half<D> half;
    StoreGroups(half, hn::LowerHalf(half, v), p, stride);
    StoreGroups(half, hn::UpperHalf(half, v), p + hn::Lanes(half) / 4 * stride, stride);
  }
}

// Transposes the 4x4 matrices that group g of v0, v1, v2, v3 forms, for each g.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void Transpose4x4InGroups(D d, V& v0, V& v1, V& v2, V& v3) {
  const hn::Repartition<double, D> dd;
  const auto a = hn::BitCast(dd, hn::InterleaveLower(d, v0, v1));
  const auto b = hn::BitCast(dd, hn::InterleaveUpper(d, v0, v1));
  const auto p = hn::BitCast(dd, hn::InterleaveLower(d, v2, v3));
  const auto q = hn::BitCast(dd, hn::InterleaveUpper(d, v2, v3));
  v0 = hn::BitCast(d, hn::InterleaveLower(dd, a, p));
  v1 = hn::BitCast(d, hn::InterleaveUpper(dd, a, p));
  v2 = hn::BitCast(d, hn::InterleaveLower(dd, b, q));
  v3 = hn::BitCast(d, hn::InterleaveUpper(dd, b, q));
}

#endif  // HWY_TARGET != HWY_SCALAR

// pixels[x * lanes + c] = planes[c * plane_stride + x] for x < count; channels from `channels` to
// the lanes become zero.
template <class D>
HWY_NOINLINE void PlanesToPixels(D d, const float* planes, std::size_t plane_stride,
                                 std::size_t channels, std::size_t count, float* pixels) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  if (channels == lanes) {
    for (; x + 4 <= count; x += 4) {
      const float* p = planes + x;
      auto v0 = LoadGroups(d, p, 4 * plane_stride);
      auto v1 = LoadGroups(d, p + plane_stride, 4 * plane_stride);
      auto v2 = LoadGroups(d, p + 2 * plane_stride, 4 * plane_stride);
      auto v3 = LoadGroups(d, p + 3 * plane_stride, 4 * plane_stride);
      Transpose4x4InGroups(d, v0, v1, v2, v3);
      hn::StoreU(v0, d, pixels + x * lanes);
      hn::StoreU(v1, d, pixels + (x + 1) * lanes);
      hn::StoreU(v2, d, pixels + (x + 2) * lanes);
      hn::StoreU(v3, d, pixels + (x + 3) * lanes);
    }
  }
#endif
  for (; x < count; ++x) {
    hn::StoreU(hn::Zero(d), d, pixels + x * lanes);
    for (std::size_t c = 0; c < channels; ++c) pixels[x * lanes + c] = planes[c * plane_stride + x];
  }
}

// The inverse: planes[c * plane_stride + x] = pixels[x * lanes + c] for c < channels, x < count.
template <class D>
HWY_NOINLINE void PixelsToPlanes(D d, const float* pixels, std::size_t channels, std::size_t count,
                                 float* planes, std::size_t plane_stride) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  if (channels == lanes) {
    for (; x + 4 <= count; x += 4) {
      auto v0 = hn::LoadU(d, pixels + x * lanes);
      auto v1 = hn::LoadU(d, pixels + (x + 1) * lanes);
      auto v2 = hn::LoadU(d, pixels + (x + 2) * lanes);
      auto v3 = hn::LoadU(d, pixels + (x + 3) * lanes);
      Transpose4x4InGroups(d, v0, v1, v2, v3);
      float* p = planes + x;
      StoreGroups(d, v0, p, 4 * plane_stride);
      StoreGroups(d, v1, p + plane_stride, 4 * plane_stride);
      StoreGroups(d, v2, p + 2 * plane_stride, 4 * plane_stride);
      StoreGroups(d, v3, p + 3 * plane_stride, 4 * plane_stride);
    }
  }
#endif
  for (; x < count; ++x) {
    for (std::size_t c = 0; c < channels; ++c) planes[c * plane_stride + x] = pixels[x * lanes + c];
  }
}

// to[i] = from[i * stride] for i < count. Reads nothing beyond the last of these.
template <class D>
HWY_NOINLINE void CopyStrided([[maybe_unused]] D d, const float* from, std::size_t stride,
                              std::size_t count, float* to) {
  if (stride == 1) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const std::size_t lanes = hn::Lanes(d);
  if (stride == 2 && count > lanes) {
    const auto copy_vector = [&](std::size_t first) HWY_ATTR {
      const float* p = from + 2 * first;
      hn::StoreU(hn::ConcatEven(d, hn::LoadU(d, p + lanes), hn::LoadU(d, p)), d, to + first);
    };
    for (; i + lanes < count; i += lanes) copy_vector(i);
    // A vector of the last elements would read one too many.
    i = count - 1;
    copy_vector(i - lanes);
  }
#endif
  for (; i < count; ++i) to[i] = from[i * stride];
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
