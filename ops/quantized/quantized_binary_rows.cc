#include <algorithm>
#include <cmath>

#include "ops/quantized/quantized_binary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_binary_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// float(bytes - zero_point)
template <class D>
HWY_INLINE hn::Vec<D> LoadReal(D d, const std::uint8_t* bytes, std::int32_t zero_point) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint8_t, D> d8;
  const auto value = hn::PromoteTo(di, hn::LoadU(d8, bytes));
  return hn::ConvertTo(d, hn::Sub(value, hn::Set(di, zero_point)));
}

// out[i] = value(d, i), saturated to bytes by `saturation`, for i < n.
template <bool kBounded, class Saturate, class Value>
HWY_INLINE void ForBytes(const Saturate& saturation, std::int64_t n, std::uint8_t* out,
                         const Value& value) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto all = saturation(d);
  const auto at = [&](std::int64_t i) HWY_ATTR { return all.template Run<kBounded>(value(d, i)); };
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    StoreFourAsBytes(hn::RebindToSigned<decltype(d)>(), at(i), at(i + lanes), at(i + 2 * lanes),
                     at(i + 3 * lanes), out + i);
  }
  const hn::CappedTag<float, 1> one;
  const auto single = saturation(one);
  for (; i < n; ++i) single.Store(value(one, i), out + i);
}

// Whether sums of these multiples of bytes need no bounds before they are rounded.
constexpr float kMostBounded = 0x1p21f;
bool IsBounded(float sum_of_factors) { return sum_of_factors * 255 <= kMostBounded; }

bool AreBounded(const float* factors, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto most = hn::Mul(hn::Abs(hn::LoadU(d, factors + i)), hn::Set(d, 255.0f));
    if (!hn::AllTrue(d, hn::Le(most, hn::Set(d, kMostBounded)))) return false;
  }
  for (; i < n; ++i) {
    if (!IsBounded(std::abs(factors[i]))) return false;
  }
  return true;
}

template <bool kBounded>
void AddBounded(const QuantizedAddParams& p, const std::uint8_t* a, const std::uint8_t* b,
                std::uint8_t* out, std::int64_t n) {
  const auto saturation = [=](auto d) HWY_ATTR {
    return Saturation<std::uint8_t, decltype(d)>(d, p.y_zero_point, p.y_min, p.y_max);
  };
  ForBytes<kBounded>(saturation, n, out, [=](auto d, std::int64_t i) HWY_ATTR {
    const auto va = hn::Mul(LoadReal(d, a + i, p.a_zero_point), hn::Set(d, p.a_factor));
    const auto vb = hn::Mul(LoadReal(d, b + i, p.b_zero_point), hn::Set(d, p.b_factor));
    return hn::Add(va, vb);
  });
}

void AddOfTarget(const QuantizedAddParams& p, const std::uint8_t* a, const std::uint8_t* b,
                 std::uint8_t* out, std::int64_t n) {
  const bool whole_range = p.y_min == 0 && p.y_max == 255;
  if (whole_range && IsBounded(std::abs(p.a_factor) + std::abs(p.b_factor))) {
    AddBounded<true>(p, a, b, out, n);
  } else {
    AddBounded<false>(p, a, b, out, n);
  }
}

template <bool kBounded>
void ScaleBounded(const QuantizedScaleParams& p, const std::uint8_t* in, const float* factors,
                  std::int64_t period, std::uint8_t* out, std::int64_t n) {
  const auto saturation = [=](auto d) HWY_ATTR {
    return Saturation<std::uint8_t, decltype(d)>(d, p.y_zero_point);
  };
  if (period == 1) {
    ForBytes<kBounded>(saturation, n, out, [=](auto d, std::int64_t i) HWY_ATTR {
      return hn::Mul(LoadReal(d, in + i, p.x_zero_point), hn::Set(d, *factors));
    });
    return;
  }
  for (std::int64_t first = 0; first < n; first += period) {
    const std::uint8_t* from = in + first;
    ForBytes<kBounded>(
        saturation, std::min(period, n - first), out + first, [=](auto d, std::int64_t i) HWY_ATTR {
          return hn::Mul(LoadReal(d, from + i, p.x_zero_point), hn::LoadU(d, factors + i));
        });
  }
}

void ScaleOfTarget(const QuantizedScaleParams& p, const std::uint8_t* in, const float* factors,
                   std::int64_t period, std::uint8_t* out, std::int64_t n) {
  if (AreBounded(factors, period)) {
    ScaleBounded<true>(p, in, factors, period, out, n);
  } else {
    ScaleBounded<false>(p, in, factors, period, out, n);
  }
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(AddOfTarget);
HWY_EXPORT(ScaleOfTarget);

void AddByteRow(const QuantizedAddParams& p, const std::uint8_t* a, const std::uint8_t* b,
                std::uint8_t* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddOfTarget)(p, a, b, out, n);
}

void ScaleByteRow(const QuantizedScaleParams& p, const std::uint8_t* in, const float* factors,
                  std::int64_t period, std::uint8_t* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(ScaleOfTarget)(p, in, factors, period, out, n);
}

}  // namespace tessera
#endif  // HWY_ONCE
