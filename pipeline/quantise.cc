#include "pipeline/quantise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/quantise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Clamps to [0, 1] and scales; what is no number becomes anything. Both return false if any value
// was not finite.
bool RoundRow(const float* src, std::int64_t count, float scale, std::int32_t* dst) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1.f), factor = hn::Set(d, scale);
  auto finite = hn::Eq(zero, zero);
  const auto round = [&](auto v) {
    finite = hn::And(finite, hn::IsFinite(v));
    return hn::NearestInt(hn::Mul(hn::Min(hn::Max(v, zero), one), factor));
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(round(hn::LoadU(d, src + i)), di, dst + i);
  HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
  HWY_ALIGN std::int32_t rounded[hn::MaxLanes(d)];
  std::copy(src + i, src + count, rest);
  hn::Store(round(hn::Load(d, rest)), di, rounded);
  std::copy(rounded, rounded + (count - i), dst + i);
  return hn::AllTrue(d, finite);
}

bool ClampRow(const float* src, std::int64_t count, float* dst) {
  const hn::ScalableTag<float> d;
  const auto zero = hn::Zero(d), one = hn::Set(d, 1.f);
  auto finite = hn::Eq(zero, zero);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, src + i);
    finite = hn::And(finite, hn::IsFinite(v));
    hn::StoreU(hn::Min(hn::Max(v, zero), one), d, dst + i);
  }
  bool rest_finite = true;
  for (; i < count; ++i) {
    rest_finite = rest_finite && std::isfinite(src[i]);
    dst[i] = std::min(std::max(src[i], 0.f), 1.f);
  }
  return rest_finite && hn::AllTrue(d, finite);
}

}  // namespace
}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RoundRow);
HWY_EXPORT(ClampRow);

std::int64_t FirstBad(const float* src, std::int64_t begin, std::int64_t end) {
  while (begin < end && std::isfinite(src[begin])) ++begin;
  return begin < end ? begin : -1;
}

}  // namespace

template <typename T>
std::int64_t Quantise(const float* src, std::int64_t count, T* dst, int dst_step) {
  constexpr std::int64_t kChunk = 512;  // integers that stay in the first-level cache
  constexpr float kMax = std::numeric_limits<T>::max();
  std::int32_t integers[kChunk];
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t n = std::min(kChunk, count - start);
    if (!HWY_DYNAMIC_DISPATCH(RoundRow)(src + start, n, kMax, integers))
      return FirstBad(src, start, start + n);
    T* out = dst + start * dst_step;
    if (dst_step == 1) {
      for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(integers[i]);
    } else {
      for (std::int64_t i = 0; i < n; ++i) out[i * dst_step] = static_cast<T>(integers[i]);
    }
  }
  return -1;
}

std::int64_t ClampToUnit(const float* src, std::int64_t count, float* dst) {
  return HWY_DYNAMIC_DISPATCH(ClampRow)(src, count, dst) ? -1 : FirstBad(src, 0, count);
}

template std::int64_t Quantise(const float*, std::int64_t, std::uint8_t*, int);
template std::int64_t Quantise(const float*, std::int64_t, std::uint16_t*, int);

}  // namespace tessera
#endif  // HWY_ONCE
