// Rounding of vectors to quantised elements, by the definition in ops/quantize.h.
// Included once per target.
#if defined(TESSERA_OPS_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZE_INL_H_
#undef TESSERA_OPS_QUANTIZE_INL_H_
#else
#define TESSERA_OPS_QUANTIZE_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <limits>

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

// RoundAndSaturate for vectors.
template <typename Q, class D>
class Saturation {
 public:
  // Saturates at `low` and `high`, values of Q.
  Saturation(D d, std::int32_t zero_point, std::int32_t low = std::numeric_limits<Q>::min(),
             std::int32_t high = std::numeric_limits<Q>::max())
      : lowest_(hn::Set(d, static_cast<float>(low - zero_point))),
        highest_(hn::Set(d, static_cast<float>(high - zero_point))),
        zero_point_(zero_point) {}

  HWY_INLINE hn::Vec<D> Clamp(hn::Vec<D> value) const { return ClampTo(value, lowest_, highest_); }

  HWY_INLINE void Store(hn::Vec<D> value, Q* out) const {
    value = Clamp(value);
#if HWY_TARGET == HWY_SCALAR  // its NearestInt is off by one just below 0.5
    *out = RoundAndSaturate<Q>(hn::GetLane(value), zero_point_);
#else
    const hn::Rebind<Q, D> dq;
    const auto zero_point = hn::Set(hn::RebindToSigned<D>(), zero_point_);
    hn::StoreU(hn::DemoteTo(dq, hn::Add(hn::NearestInt(value), zero_point)), dq, out);
#endif
  }

 private:
  hn::Vec<D> lowest_, highest_;
  std::int32_t zero_point_;
};

// Quotients by one scale, rounded and saturated to bytes: what Saturation makes of value / scale,
// to the bit. A division takes longer than all the rest, so that the quotient is taken from a
// product with the inverse wherever both round to the same integer: unless it is near a tie.
template <typename Q, class D>
class Quotient {
 public:
  using V = hn::Vec<D>;
  static_assert(sizeof(Q) == 1);

  Quotient(D d, float scale, std::int32_t zero_point)
      : saturation_(d, zero_point),
        scale_(hn::Set(d, scale)),
        inverse_(hn::Set(d, 1 / scale)),
        shift_(hn::Set(d, kShift + static_cast<float>(zero_point))),
        tie_(hn::Set(d, InverseIsExact(scale) ? 0.5f - kDoubt : -1)),
        zero_point_(zero_point) {}

#if HWY_TARGET != HWY_SCALAR
  // Of kVectors vectors, as int32.
  template <std::size_t kVectors>
  HWY_INLINE void Run(const V (&value)[kVectors],
                      hn::Vec<hn::RebindToSigned<D>> (&out)[kVectors]) const {
    const D d;
    const hn::RebindToSigned<D> di;
    V farthest = hn::Zero(d);  // from an integer
    for (std::size_t i = 0; i < kVectors; ++i) {
      const V q = saturation_.Clamp(hn::Mul(value[i], inverse_));
      // Added to this number, a float has no bits left for fractions.
      const V shifted = hn::Add(q, shift_);
      farthest = hn::Max(farthest, hn::Abs(hn::Sub(q, hn::Sub(shifted, shift_))));
      out[i] = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, hn::Set(d, kShift)));
    }
    if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(farthest, tie_)))) return;
    for (std::size_t i = 0; i < kVectors; ++i) {
      const V q = saturation_.Clamp(hn::Div(value[i], scale_));
      out[i] = hn::Add(hn::NearestInt(q), hn::Set(di, zero_point_));
    }
  }
#endif

  // Of one vector.
  HWY_INLINE void Store(V value, Q* out) const {
#if HWY_TARGET == HWY_SCALAR
    saturation_.Store(hn::Div(value, scale_), out);
#else
    const hn::Rebind<Q, D> dq;
    const V values[1] = {value};
    hn::Vec<hn::RebindToSigned<D>> q[1];
    Run(values, q);
    hn::StoreU(hn::DemoteTo(dq, q[0]), dq, out);
#endif
  }

 private:
  static constexpr float kShift = 12582912;  // 1.5 * 2^23
  // Quotients of at most 256, whose relative error is below 1.5 * 2^-23, differ by less.
  static constexpr float kDoubt = 0x1p-13f;

  // Whether the relative error of 1 / scale is one rounding's, and that of a product with it too
  // where the product is not far below 1.
  static bool InverseIsExact(float scale) {
    return std::abs(scale) >= 0x1p-100f && std::abs(scale) <= 0x1p100f;
  }

  Saturation<Q, D> saturation_;
  V scale_, inverse_, shift_, tie_;
  std::int32_t zero_point_;
};

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
