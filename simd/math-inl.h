// Elementary functions on vectors of floats. Included once per target.

#if defined(TESSERA_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_SIMD_MATH_INL_H_
#undef TESSERA_SIMD_MATH_INL_H_
#else
#define TESSERA_SIMD_MATH_INL_H_
#endif

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

// 1 / (1 + e^-x) within 4 ulp wherever it is a normal number, NaN stays NaN. As e^x / (1 + e^x), so
// that neither tail cancels: e^x is 0 at -88 (n = -127), and beyond 20 the quotient is 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  V rounded;
  const V m = ReduceExp(d, ClampOrNan(x, hn::Set(d, -88.f), hn::Set(d, 20.f)), rounded);
  const V scale = PowerOfTwo(d, rounded);
  const V e = hn::MulAdd(m, scale, scale);
  return hn::Div(e, hn::Add(e, hn::Set(d, 1.f)));
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
