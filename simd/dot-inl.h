// Dot products of four bytes: uint8 times int8 into int32, one in each lane, exactly.
// Included once for each target (no include guard of the usual kind).
#if defined(TESSERA_SIMD_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_SIMD_DOT_INL_H_
#undef TESSERA_SIMD_DOT_INL_H_
#else
#define TESSERA_SIMD_DOT_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Whether kernels of this target have to be there twice, for CPUs with VNNI and without
// (HasVnni() in simd/cpu_target.h tells at run time).
inline constexpr bool kTargetHasVnni = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2;

// sum + a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3 in each lane, where `a` holds four uint8 a lane and
// `b` four int8, lowest byte first. Sums wrap around.
template <bool kVnni, class D, class V = hn::Vec<D>>
HWY_INLINE V DotBytes(D d, V sum, V a, V b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  if constexpr (kVnni) {
    // Not by intrinsics: the target's attributes, which Highway sets, do not have them.
#if HWY_TARGET == HWY_AVX3
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "vm"(b.raw));
#else
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(a.raw), "xm"(b.raw));
#endif
    return sum;
  }
#endif
  static_assert(!kVnni || kTargetHasVnni);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  // Pairs of int16, whose products fit: those of bytes (vpmaddubsw) would saturate.
  const hn::Repartition<std::int16_t, D> d16;
  const hn::Repartition<std::uint16_t, D> du16;
  const auto a_even = hn::And(hn::BitCast(d16, a), hn::Set(d16, 0xFF));
  const auto a_odd = hn::BitCast(d16, hn::ShiftRight<8>(hn::BitCast(du16, a)));
  const auto b_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(d16, b)));
  const auto b_odd = hn::ShiftRight<8>(hn::BitCast(d16, b));
  auto unused = hn::Zero(d);
  sum = hn::ReorderWidenMulAccumulate(d, a_even, b_even, sum, unused);
  return hn::ReorderWidenMulAccumulate(d, a_odd, b_odd, sum, unused);
#else
  const hn::RebindToUnsigned<D> du;
  const auto byte = [&](V v, auto shift) HWY_ATTR {  // of a
    constexpr int kShift = decltype(shift)::value;
    return hn::And(hn::BitCast(d, hn::ShiftRight<kShift>(hn::BitCast(du, v))), hn::Set(d, 0xFF));
  };
  const auto signed_byte = [&](V v, auto shift) HWY_ATTR {  // of b
    constexpr int kShift = decltype(shift)::value;
    return hn::ShiftRight<24>(hn::ShiftLeft<24 - kShift>(v));
  };
  const auto add = [&](auto shift) HWY_ATTR {
    sum = hn::Add(sum, hn::Mul(byte(a, shift), signed_byte(b, shift)));
  };
  add(std::integral_constant<int, 0>());
  add(std::integral_constant<int, 8>());
  add(std::integral_constant<int, 16>());
  add(std::integral_constant<int, 24>());
  return sum;
#endif
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
