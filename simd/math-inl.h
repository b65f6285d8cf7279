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

// 2^n for integers n in [-126, 127].
template <class D, class VI>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// e^x = 2^n (1 + m) with n = round(x / ln 2), for x in [-105, 90]. Returns m; the polynomial
// interpolates (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2 at Chebyshev nodes, which leaves 0.02 ulp
// before rounding.
template <class D, class V, class VI>
HWY_INLINE V ReduceExp(D d, V x, VI& n) {
  n = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504f)));
  const V nf = hn::ConvertTo(d, n);
  // ln 2 in two parts, the first with few bits, so that n times it is exact.
  V r = hn::NegMulAdd(nf, hn::Set(d, 0x1.63p-1f), x);
  r = hn::NegMulAdd(nf, hn::Set(d, -0x1.bd0106p-13f), r);
  V p = hn::Set(d, 0x1.a1256cp-13f);
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.6d43b0p-10f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.1110e0p-7f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.5554e8p-5f));
  p = hn::MulAdd(p, r, hn::Set(d, 0x1.555556p-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  return hn::MulAdd(p, hn::Mul(r, r), r);
}

// e^x within 2 ulp for every x; overflows to infinity, underflows through subnormals to zero, NaN
// stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  // Beyond these the result is 0 or infinity; they keep n small enough for the scaling below.
  const V clamped = hn::Min(hn::Set(d, 90.f), hn::Max(hn::Set(d, -105.f), x));
  hn::Vec<hn::RebindToSigned<D>> n;
  V p = hn::Add(ReduceExp(d, clamped, n), hn::Set(d, 1.f));
  // In two steps: 2^n itself may be out of range where the result is not.
  const auto half = hn::ShiftRight<1>(n);
  p = hn::Mul(hn::Mul(p, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(n, half)));
  return hn::IfThenElse(hn::IsNaN(x), x, p);
}

// e^x - 1 within 3 ulp for x <= 0 (the side that Elu and Tanh need), NaN stays NaN. Other x give
// 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Expm1OfNegative(D d, V x) {
  const V clamped = hn::Min(hn::Zero(d), hn::Max(hn::Set(d, -80.f), x));
  hn::Vec<hn::RebindToSigned<D>> n;
  const V m = ReduceExp(d, clamped, n);
  const V scale = PowerOfTwo(d, n);
  // Small x have n = 0: nothing cancels.
  const V result = hn::MulAdd(m, scale, hn::Sub(scale, hn::Set(d, 1.f)));
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// tanh x within 4 ulp, NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V m = Expm1OfNegative(d, hn::Mul(hn::Abs(x), hn::Set(d, -2.f)));
  const V magnitude = hn::Div(hn::Neg(m), hn::Add(m, hn::Set(d, 2.f)));
  return hn::CopySign(magnitude, x);
}

// 1 / (1 + e^-x) within 4 ulp wherever it is a normal number. Never exponentiates a positive
// number, so both tails are accurate.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.f);
  const V e = Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
