// Rounding of vectors to quantised elements, by the definition in ops/quantize.h.
// Included once per target.
#if defined(TESSERA_OPS_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZE_INL_H_
#undef TESSERA_OPS_QUANTIZE_INL_H_
#else
#define TESSERA_OPS_QUANTIZE_INL_H_
#endif

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/quantize.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// `value` between two bounds; NaN becomes the lower one.
template <class V>
HWY_INLINE V ClampTo(V value, V lowest, V highest) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Min(hn::Max(value, lowest), highest);  // the second operand where one is NaN
#else
  value = hn::IfThenElse(hn::Gt(value, lowest), value, lowest);
  return hn::IfThenElse(hn::Lt(value, highest), value, highest);
#endif
}

// 1.5 * 2^23: a float of at most 2^22 that is added to it has no bits left for fractions, and is
// rounded, half to even; the sum's last bits are the integer. Conversions to int32 also look for
// what does not fit, and take longer.
inline constexpr float kRoundingShift = 12582912;

// RoundAndSaturate for vectors.
template <typename Q, class D>
class Saturation {
 public:
  // Saturates at `low` and `high`, values of Q.
  Saturation(D d, std::int32_t zero_point, std::int32_t low = std::numeric_limits<Q>::min(),
             std::int32_t high = std::numeric_limits<Q>::max())
      : lowest_(hn::Set(d, static_cast<float>(low - zero_point))),
        highest_(hn::Set(d, static_cast<float>(high - zero_point))),
        shift_(hn::Set(hn::RebindToSigned<D>(),
                       std::bit_cast<std::int32_t>(kRoundingShift) - zero_point)) {}

  HWY_INLINE hn::Vec<D> Clamp(hn::Vec<D> value) const { return ClampTo(value, lowest_, highest_); }

  // As int32. With kBounded, which asks for |value| of at most 2^21, it is saturated only when
  // the result is stored as Q.
  template <bool kBounded = false>
  HWY_INLINE hn::Vec<hn::RebindToSigned<D>> Run(hn::Vec<D> value) const {
    const D d;
    if constexpr (!kBounded) value = Clamp(value);
    const auto shifted = hn::Add(value, hn::Set(d, kRoundingShift));
    return hn::Sub(hn::BitCast(hn::RebindToSigned<D>(), shifted), shift_);
  }

  HWY_INLINE void Store(hn::Vec<D> value, Q* out) const {
    const hn::Rebind<Q, D> dq;
    hn::StoreU(hn::DemoteTo(dq, Run(value)), dq, out);
  }

 private:
  hn::Vec<D> lowest_, highest_;
  hn::Vec<hn::RebindToSigned<D>> shift_;
};

// Quotients by one scale, rounded and saturated to bytes: what Saturation makes of value / scale,
// to the bit. A division takes longer than all the rest, so that the quotient is taken from a
// product with the inverse wherever both round to the same integer: unless it is near a tie. For
// powers of two the product is the quotient.
template <typename Q, class D>
class Quotient {
 public:
  using V = hn::Vec<D>;
  static_assert(sizeof(Q) == 1);

  Quotient(D d, float scale, std::int32_t zero_point)
      : Quotient(d, hn::Set(d, scale), zero_point) {}

  // A scale for each lane.
  Quotient(D d, V scale, std::int32_t zero_point)
      : saturation_(d, zero_point),
        scale_(scale),
        inverse_(hn::Div(hn::Set(d, 1), scale)),
        shift_(hn::Set(d, kRoundingShift + static_cast<float>(zero_point))),
        tie_(hn::IfThenElse(InverseIsExact(d, scale), hn::Set(d, 0.5f - kDoubt), hn::Set(d, -1))),
        highest_(hn::Set(d, static_cast<float>(std::numeric_limits<Q>::max() - zero_point))),
        zero_point_(hn::Set(hn::RebindToSigned<D>(), zero_point)),
        is_power_of_two_(hn::AllTrue(d, hn::And(InverseIsExact(d, scale), PowersOfTwo(d, scale)))) {
  }

  // Of kVectors vectors, as int32; for uint8, numbers below 0 may stay for the caller to saturate.
  template <std::size_t kVectors>
  HWY_INLINE void Run(const V (&value)[kVectors],
                      hn::Vec<hn::RebindToSigned<D>> (&out)[kVectors]) const {
    const D d;
    const hn::RebindToSigned<D> di;
#if HWY_TARGET == HWY_AVX3
    if constexpr (sizeof(V) == 64 && std::is_unsigned_v<Q>) return RunOnAvx3(value, out);
#endif
    if (is_power_of_two_) {
      for (std::size_t i = 0; i < kVectors; ++i) {
        out[i] = saturation_.Run(hn::Mul(value[i], inverse_));
      }
      return;
    }
    V farthest = hn::Zero(d);  // from an integer
    for (std::size_t i = 0; i < kVectors; ++i) {
      const V q = saturation_.Clamp(hn::Mul(value[i], inverse_));
      const V shifted = hn::Add(q, shift_);
      farthest = hn::Max(farthest, hn::Abs(hn::Sub(q, hn::Sub(shifted, shift_))));
      out[i] = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, hn::Set(d, kRoundingShift)));
    }
    if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(farthest, tie_)))) return;
    for (std::size_t i = 0; i < kVectors; ++i) {
      out[i] = saturation_.Run(hn::Div(value[i], scale_));
    }
  }

  // Of one vector.
  HWY_INLINE void Store(V value, Q* out) const {
    const hn::Rebind<Q, D> dq;
    const V values[1] = {value};
    hn::Vec<hn::RebindToSigned<D>> q[1];
    Run(values, q);
    hn::StoreU(hn::DemoteTo(dq, q[0]), dq, out);
  }

 private:
  // Quotients of at most 256, whose relative error is below 1.5 * 2^-23, differ by less.
  static constexpr float kDoubt = 0x1p-13f;

  // Whether the relative error of 1 / scale is one rounding's, and that of a product with it too
  // where the product is not far below 1.
  static HWY_INLINE hn::Mask<D> InverseIsExact(D d, V scale) {
    const V size = hn::Abs(scale);
    return hn::And(hn::Ge(size, hn::Set(d, 0x1p-100f)), hn::Le(size, hn::Set(d, 0x1p100f)));
  }

  static HWY_INLINE hn::Mask<D> PowersOfTwo(D d, V scale) {
    const hn::RebindToUnsigned<D> bits;
    const auto mantissa = hn::And(hn::BitCast(bits, scale), hn::Set(bits, (1u << 23) - 1));
    return hn::RebindMask(d, hn::Eq(mantissa, hn::Zero(bits)));
  }

#if HWY_TARGET == HWY_AVX3
  // The same with instructions that tell how far a number is from an integer, and which is the
  // larger of two without their signs. Conversion makes the least int32 of NaN and of what is below
  // all bytes.
  template <std::size_t kVectors>
  HWY_INLINE void RunOnAvx3(const V (&value)[kVectors],
                            hn::Vec<hn::RebindToSigned<D>> (&out)[kVectors]) const {
    const auto round = [&](__m512 q) HWY_ATTR {
      return _mm512_add_epi32(_mm512_cvtps_epi32(q), zero_point_.raw);
    };
    __m512 rest[kVectors];
    for (std::size_t i = 0; i < kVectors; ++i) {
      // Of NaN the second operand.
      rest[i] = _mm512_min_ps(highest_.raw, _mm512_mul_ps(value[i].raw, inverse_.raw));
      out[i].raw = round(rest[i]);
    }
    if (is_power_of_two_) return;
    for (std::size_t i = 0; i < kVectors; ++i) rest[i] = _mm512_reduce_ps(rest[i], 0);
    constexpr int kLargerAbs = 0b1011;
    __m512 farthest = _mm512_range_ps(rest[0], rest[kVectors - 1], kLargerAbs);
    for (std::size_t i = 1; i + 1 < kVectors; ++i) {
      farthest = _mm512_range_ps(farthest, rest[i], kLargerAbs);
    }
    if (HWY_LIKELY(_mm512_cmp_ps_mask(farthest, tie_.raw, _CMP_NLE_UQ) == 0)) return;
    for (std::size_t i = 0; i < kVectors; ++i) {
      out[i].raw = round(_mm512_min_ps(highest_.raw, _mm512_div_ps(value[i].raw, scale_.raw)));
    }
  }
#endif

  Saturation<Q, D> saturation_;
  V scale_, inverse_, shift_, tie_, highest_;
  hn::Vec<hn::RebindToSigned<D>> zero_point_;
  bool is_power_of_two_;
};

// Saturates four vectors of int32 and stores them as 4 * lanes bytes.
template <class D, class V>
HWY_INLINE void StoreFourAsBytes(D d, V v0, V v1, V v2, V v3, std::uint8_t* out) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(v0) == 64) {
    // Packing leaves four bytes of each vector in each 128 bits.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i bytes =
        _mm512_packus_epi16(_mm512_packs_epi32(v0.raw, v1.raw), _mm512_packs_epi32(v2.raw, v3.raw));
    _mm512_storeu_si512(out, _mm512_permutexvar_epi32(order, bytes));
    return;
  }
#endif
  const std::size_t lanes = hn::Lanes(d);
  const hn::Rebind<std::uint8_t, D> d8;
  hn::StoreU(hn::DemoteTo(d8, v0), d8, out);
  hn::StoreU(hn::DemoteTo(d8, v1), d8, out + lanes);
  hn::StoreU(hn::DemoteTo(d8, v2), d8, out + 2 * lanes);
  hn::StoreU(hn::DemoteTo(d8, v3), d8, out + 3 * lanes);
}

// Calls step(d, i) for vectors of elements from i on that make up n.
template <class Step>
HWY_INLINE void ForVectors(std::int64_t n, const Step& step) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) step(d, i);
  for (; i < n; ++i) step(hn::CappedTag<float, 1>(), i);
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
