// Elementary functions on vectors of floats. Included once per target.

#if defined(TESSERA_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_SIMD_MATH_INL_H_
#undef TESSERA_SIMD_MATH_INL_H_
#else
#define TESSERA_SIMD_MATH_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// min(max(x, lo), hi); NaN stays NaN.
template <class V>
HWY_INLINE V ClampOrNan(V x, V lo, V hi) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  // MAXPS and MINPS return their second operand if one is NaN. Elsewhere that is another matter.
  return hn::Min(hi, hn::Max(lo, x));
#else
  const V raised = hn::IfThenElse(hn::Lt(x, lo), lo, x);
  return hn::IfThenElse(hn::Gt(raised, hi), hi, raised);
#endif
}

// Adding this rounds floats below 2^22 to integers n, and the last bits of the sum are n + 127: the
// exponent of 2^n.
inline constexpr float kRounder = 0x1.8p23f + 127;

// e^x = 2^n (1 + m) with n = round(x / ln 2), for |x| <= 105. Returns m, and kRounder + n. The
// polynomial interpolates (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2 at Chebyshev nodes, which leaves
// 0.2 ulp of e^x and 0.4 ulp of m before rounding.
template <class D, class V>
HWY_INLINE V ReduceExp(D d, V x, V& rounded) {
  rounded = hn::MulAdd(x, hn::Set(d, 1.44269504f), hn::Set(d, kRounder));
  const V n = hn::Sub(rounded, hn::Set(d, kRounder));
  // ln 2 in two parts, the first with few bits, so that n times it is exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0x1.63p-1f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -0x1.bd0106p-13f), r);
  V p = hn::Set(d, 0x1.6d10fcp-10f);
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.120b62p-7f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.55551ap-5f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.5554dep-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  return hn::MulAdd(p, hn::Mul(r, r), r);
}

// 2^n for n in [-126, 127], and 0 for n = -127, given kRounder + n.
template <class D, class V>
HWY_INLINE V PowerOfTwo(D d, V rounded) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, rounded)));
}

// e^x within 2 ulp for every x; overflows to infinity, underflows through subnormals to zero, NaN
// stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  // Beyond these the result is 0 or infinity; they keep n small enough for the scaling below.
  V rounded;
  V p = ReduceExp(d, ClampOrNan(x, hn::Set(d, -105.f), hn::Set(d, 90.f)), rounded);
  p = hn::Add(p, hn::Set(d, 1.f));
  // In two steps: 2^n itself may be out of range where the result is not.
  const V n = hn::Sub(rounded, hn::Set(d, kRounder));
  const V half = hn::MulAdd(n, hn::Set(d, 0.5f), hn::Set(d, kRounder));
  const V rest = hn::Add(hn::Sub(n, hn::Sub(half, hn::Set(d, kRounder))), hn::Set(d, kRounder));
  return hn::Mul(hn::Mul(p, PowerOfTwo(d, half)), PowerOfTwo(d, rest));
}

// e^x - 1 within 3 ulp for x <= 0 (the side that Elu and Tanh need), NaN stays NaN. Other x give
// 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Expm1OfNegative(D d, V x) {
  V rounded;
  const V m = ReduceExp(d, ClampOrNan(x, hn::Set(d, -80.f), hn::Zero(d)), rounded);
  const V scale = PowerOfTwo(d, rounded);
  // Small x have n = 0: nothing cancels.
  return hn::MulAdd(m, scale, hn::Sub(scale, hn::Set(d, 1.f)));
}

// tanh x within 4 ulp, NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V m = Expm1OfNegative(d, hn::Mul(hn::Abs(x), hn::Set(d, -2.f)));
  const V magnitude = hn::Div(hn::Neg(m), hn::Add(m, hn::Set(d, 2.f)));
  return hn::CopySign(magnitude, x);
}

// e^x within 2 ulp for x <= 88 wherever it is a normal number (x > -87.3), 0 or subnormal below,
// NaN stays NaN. `highest` <= 88 is what greater x are taken for.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V ExpModerate(D d, V x, float highest) {
  V rounded;
  const V m = ReduceExp(d, ClampOrNan(x, hn::Set(d, -88.f), hn::Set(d, highest)), rounded);
  const V scale = PowerOfTwo(d, rounded);  // 0 at -88, which has n = -127
  return hn::MulAdd(m, scale, scale);
}

// 1 / (1 + e^-x) within 4 ulp wherever it is a normal number, NaN stays NaN. As e^x / (1 + e^x), so
// that neither tail cancels; beyond 20 the quotient is 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V e = ExpModerate(d, x, 20.f);
  return hn::Div(e, hn::Add(e, hn::Set(d, 1.f)));
}

// x tanh(log(1 + e^x)) within 4 ulp for x > -87.3, between that and 0 below (where it is above
// -1e-35). NaN stays NaN. With e = e^x it is x (e^2 + 2 e) / (e^2 + 2 e + 2), where nothing
// cancels.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Mish(D d, V x) {
  const V two = hn::Set(d, 2.f);
  const V e = ExpModerate(d, x, 20.f);
  const V n = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(n, hn::Add(n, two)));
}

// e ln 2 + log(1 + f) for |e| <= 150 and sqrt(1/2) <= 1 + f <= sqrt 2. The polynomial interpolates
// (log(1 + f) - f + f^2 / 2) / f^3 at Chebyshev nodes.
template <class D, class V>
HWY_INLINE V LogOfParts(D d, V e, V f) {
  V p = hn::Set(d, -0x1.43b246p-4f);
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.02814ep-3f));
  p = hn::MulAdd(p, f, hn::Set(d, -0x1.0a33eap-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.231ce6p-3f));
  p = hn::MulAdd(p, f, hn::Set(d, -0x1.54d03ep-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.999f14p-3f));
  p = hn::MulAdd(p, f, hn::Set(d, -0x1.0000cep-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 0x1.555554p-2f));
  p = hn::MulAdd(p, f, hn::Set(d, -0.5f));
  // ln 2 in two parts, as in ReduceExp.
  const V low = hn::MulAdd(e, hn::Set(d, -0x1.bd0106p-13f), f);
  return hn::MulAdd(e, hn::Set(d, 0x1.63p-1f), hn::MulAdd(p, hn::Mul(f, f), low));
}

// log x within 2 ulp; -infinity for 0, NaN for negative x and NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V zero = hn::Zero(d), infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto subnormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p23f)), x);
  // The exponent that leaves a mantissa in [sqrt(1/2), sqrt 2).
  const auto bits = hn::BitCast(di, scaled);
  const auto e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));
  const V mantissa = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  const V exponent = hn::Add(hn::ConvertTo(d, e), hn::IfThenElseZero(subnormal, hn::Set(d, -23.f)));
  V y = LogOfParts(d, exponent, hn::Sub(mantissa, hn::Set(d, 1.f)));
  y = hn::IfThenElse(hn::Lt(x, infinity), y, x);  // infinity and NaN are what they are
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
}

// log(1 + e^x) within 4 ulp wherever it is a normal number, NaN stays NaN. As max(x, 0) +
// log(1 + e^-|x|), which does not overflow.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Softplus(D d, V x) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.f);
  const V t = ExpModerate(d, hn::Neg(hn::Abs(x)), 0.f);
  // 1 + t is in [1, 2]; its upper part is halved, without rounding t away.
  const auto upper = hn::Gt(t, hn::Set(d, 0.41421356f));
  const V f = hn::IfThenElse(upper, hn::Mul(hn::Sub(t, one), hn::Set(d, 0.5f)), t);
  const V log1p = LogOfParts(d, hn::IfThenElseZero(upper, one), f);
  return hn::Add(hn::IfThenElseZero(hn::Gt(x, zero), x), log1p);
}

// The error function within 4 ulp, NaN stays NaN. As 1 - e^(-x p(x)), x > 0: the polynomial is a
// weighted least-squares fit of -log(1 - erf x) / x on [0, 3.95], beyond which erf rounds to 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Erf(D d, V x) {
  const V limit = hn::Set(d, 3.95f);
  const V a = hn::Abs(x);
  const V t = hn::IfThenElse(hn::Gt(a, limit), limit, a);
  V p = hn::Set(d, -0x1.22fd5ep-17f);
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.da014ap-14f));
  p = hn::MulAdd(p, t, hn::Set(d, -0x1.443474p-11f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.af0732p-10f));
  p = hn::MulAdd(p, t, hn::Set(d, -0x1.281942p-13f));
  p = hn::MulAdd(p, t, hn::Set(d, -0x1.39f148p-6f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.a4fc36p-4f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.45f2f6p-1f));
  p = hn::MulAdd(p, t, hn::Set(d, 0x1.20dd76p+0f));
  return hn::CopySign(Expm1OfNegative(d, hn::Neg(hn::Mul(t, p))), x);
}

// The angles that SinModerate and CosModerate take.
inline constexpr float kMaxModerateAngle = 8192;

// sin(x - h pi), times -1 if `sign` has its highest bit set, where h is an integer or half of an
// odd one and the difference is in [-pi / 2, pi / 2], or little beyond. The polynomial interpolates
// (sin r - r) / r^3 as a function of r^2 at Chebyshev nodes.
template <class D, class V, class VI>
HWY_INLINE V SinReduced(D d, V x, V h, VI sign) {
  // pi in three parts, two of them with 11 bits, so that h times them is exact.
  V r = hn::NegMulAdd(h, hn::Set(d, 0x1.92p+1f), x);
  r = hn::NegMulAdd(h, hn::Set(d, 0x1.fb4p-11f), r);
  r = hn::NegMulAdd(h, hn::Set(d, 0x1.4442d2p-23f), r);
  const V z = hn::Mul(r, r);
  V p = hn::Set(d, 0x1.619968p-19f);
  p = hn::MulAdd(p, z, hn::Set(d, -0x1.9fb622p-13f));
  p = hn::MulAdd(p, z, hn::Set(d, 0x1.11104cp-7f));
  p = hn::MulAdd(p, z, hn::Set(d, -0x1.555554p-3f));
  const hn::RebindToUnsigned<D> du;
  const auto highest_bit = hn::And(sign, hn::Set(du, 0x80000000u));
  const V y = hn::MulAdd(hn::Mul(p, z), r, r);
  return hn::BitCast(d, hn::Xor(hn::BitCast(du, y), highest_bit));
}

// sin x for |x| <= kMaxModerateAngle, within 4 ulp, or 1e-10 where that is more. NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SinModerate(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V rounder = hn::Set(d, 0x1.8p23f);  // its sums with integers have their last bits
  const V rounded = hn::MulAdd(x, hn::Set(d, 0x1.45f306p-2f), rounder);
  const auto sign = hn::ShiftLeft<31>(hn::BitCast(du, rounded));
  return SinReduced(d, x, hn::Sub(rounded, rounder), sign);
}

// cos x likewise, as -sin(x - pi / 2).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V CosModerate(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V rounder = hn::Set(d, 0x1.8p23f), half = hn::Set(d, 0.5f);
  const V turns = hn::MulAdd(x, hn::Set(d, 0x1.45f306p-2f), hn::Neg(half));
  const V rounded = hn::Add(turns, rounder);
  const auto sign = hn::ShiftLeft<31>(hn::Not(hn::BitCast(du, rounded)));
  return SinReduced(d, x, hn::Add(hn::Sub(rounded, rounder), half), sign);
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
