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

// Whether kernels of this target have to be there twice, for CPUs with instructions for such dot
// products (VNNI, on Arm SDOT) and without; HasVnni() in simd/cpu_target.h tells at run time.
inline constexpr bool kTargetHasVnni =
    HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON;

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
#elif HWY_TARGET == HWY_NEON
  if constexpr (sizeof(sum) == 16) {
    if constexpr (kVnni) {
      // Both operands are signed: a - 128 takes the place of a, and 128 * b is added again, by
      // halves since it is no int8.
      const auto multiply = [&](V x) HWY_ATTR {
        asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
            : "+w"(sum.raw)
            : "w"(x.raw), "w"(b.raw));
      };
      const auto half = hn::Set(d, 0x40404040);
      multiply(hn::Xor(a, hn::Set(d, static_cast<std::int32_t>(0x80808080))));
      multiply(half);
      multiply(half);
      return sum;
    } else {
      const uint8x16_t x = vreinterpretq_u8_s32(a.raw);
      const int8x16_t y = vreinterpretq_s8_s32(b.raw);
      const auto products = [](uint8x8_t u, int8x8_t s) HWY_ATTR {  // fit: at least -255 * 128
        return vmulq_s16(vreinterpretq_s16_u16(vmovl_u8(u)), vmovl_s8(s));
      };
      const int32x4_t low = vpaddlq_s16(products(vget_low_u8(x), vget_low_s8(y)));
      const int32x4_t high = vpaddlq_s16(products(vget_high_u8(x), vget_high_s8(y)));
      return V{vaddq_s32(sum.raw, vpaddq_s32(low, high))};
    }
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
