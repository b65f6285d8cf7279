// Vectors of int32 sums to uint8 or float32: QuantizedEpilogue (ops/quantized/quantized_conv.h) for
// kernels. Included once per target.
//
// Four vectors are packed to bytes without a permutation if their channels lie in quad order
// (QuadOrder).
#if defined(TESSERA_OPS_QUANTIZED_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_EPILOGUE_INL_H_
#undef TESSERA_OPS_QUANTIZED_EPILOGUE_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_EPILOGUE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/quantized/quantized_conv.h"

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#define TESSERA_X86_VECTORS 1
#else
#define TESSERA_X86_VECTORS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// std::max(v, low) and std::min(v, high): NaN stays what it is.
template <class V>
HWY_INLINE V AtLeast(V low, V v) {
#if TESSERA_X86_VECTORS
  return hn::Max(low, v);  // the second operand where one is NaN
#else
  return hn::IfThenElse(hn::Lt(v, low), low, v);
#endif
}

template <class V>
HWY_INLINE V AtMost(V high, V v) {
#if TESSERA_X86_VECTORS
  return hn::Min(high, v);
#else
  return hn::IfThenElse(hn::Gt(v, high), high, v);
#endif
}

// Rounds half to even. Below the range of int32, and for NaN, the result is its lowest value.
template <class D, class V = hn::Vec<hn::RebindToSigned<D>>>
HWY_INLINE V RoundToInt(D d, hn::Vec<D> v) {
#if HWY_TARGET == HWY_SCALAR  // its NearestInt is off by one just below 0.5
  const float limited = std::fmax(hn::GetLane(v), -2147483648.0f);
  static_cast<void>(d);
  return hn::Set(hn::RebindToSigned<D>(), static_cast<std::int32_t>(std::nearbyint(limited)));
#elif TESSERA_X86_VECTORS
  // Highway's would also handle what is too large: that has been clamped here.
  static_cast<void>(d);
  if constexpr (sizeof(v) == 16) {
    return V{_mm_cvtps_epi32(v.raw)};
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  } else if constexpr (sizeof(v) == 32) {
    return V{_mm256_cvtps_epi32(v.raw)};
#endif
#if HWY_TARGET == HWY_AVX3
  } else {
    return V{_mm512_cvtps_epi32(v.raw)};
#endif
  }
#else
  return hn::NearestInt(hn::IfThenElse(hn::Eq(v, v), v, hn::Set(d, -2147483648.0f)));
#endif
}

// What `use` returns for the form of an epilogue, as an integral constant.
template <class Use>
HWY_INLINE auto WithForm(const QuantizedEpilogue& epilogue, const Use& use) {
  using Form = QuantizedForm;
  switch (epilogue.form) {
    case Form::kLinear:
      return use(std::integral_constant<Form, Form::kLinear>());
    case Form::kOffset:
#if HWY_TARGET == HWY_AVX3
      return use(std::integral_constant<Form, Form::kOffset>());
#else
      break;  // for AVX-512 alone
#endif
    case Form::kSlope:
      return use(std::integral_constant<Form, Form::kSlope>());
    case Form::kHardSwish:
      return use(std::integral_constant<Form, Form::kHardSwish>());
    case Form::kWideHardSwish:
      return use(std::integral_constant<Form, Form::kWideHardSwish>());
    case Form::kGeneral:
      break;
  }
  return use(std::integral_constant<Form, Form::kGeneral>());
}

template <QuantizedForm kForm>
class QuantizedOutput {
 public:
  explicit QuantizedOutput(const QuantizedEpilogue& e)
      : limit_(static_cast<float>(e.highest - e.y_zero_point)),
        clip_low_(e.clip_low),
        clip_high_(e.clip_high),
        is_hard_swish_(e.is_hard_swish),
        has_addend_(e.has_addend),
        inverse_y_scale_(e.inverse_y_scale),
        addend_zero_point_(e.addend.zero_point),
        addend_scale_(e.addend.scale),
        zero_point_(e.y_zero_point),
        lowest_(e.lowest) {}

  // The sum as a real number (kGeneral). `positive` and `negative` belong to the lanes' channels;
  // `addend` holds the addend's bytes as int32, and is not looked at if there is none.
  template <class D, class V = hn::Vec<D>, class VF = hn::Vec<hn::Rebind<float, D>>>
  HWY_INLINE VF Real(D d, V sum, VF positive, VF negative, V addend) const {
    const hn::Rebind<float, D> df;
    VF r = hn::Mul(hn::ConvertTo(df, sum), Choose(d, sum, positive, negative));
    r = AtMost(hn::Set(df, clip_high_), AtLeast(hn::Set(df, clip_low_), r));
    if (is_hard_swish_) {
      const VF gate = hn::Add(hn::Mul(r, hn::Set(df, 1.0f / 6)), hn::Set(df, 0.5f));
      r = hn::Mul(r, AtMost(hn::Set(df, 1.0f), AtLeast(hn::Zero(df), gate)));
    }
    if (has_addend_) {
      const VF a = hn::ConvertTo(df, hn::Sub(addend, hn::Set(d, addend_zero_point_)));
      r = hn::Add(r, hn::Mul(a, hn::Set(df, addend_scale_)));
    }
    return r;
  }

  // y - y_zero_point as int32, not yet bounded from below: what the functions that store take.
  template <class D, class V = hn::Vec<D>, class VF = hn::Vec<hn::Rebind<float, D>>>
  HWY_INLINE V Round(D d, V sum, VF positive, VF negative, V addend) const {
    const hn::Rebind<float, D> df;
    VF v;
    if constexpr (kForm == QuantizedForm::kGeneral) {
      v = hn::Mul(Real(d, sum, positive, negative, addend), hn::Set(df, inverse_y_scale_));
    } else if constexpr (kForm == QuantizedForm::kHardSwish ||
                         kForm == QuantizedForm::kWideHardSwish) {
      const VF s = hn::ConvertTo(df, sum);
      const VF gate = hn::Add(hn::Mul(s, negative), hn::Set(df, 0.5f));
      v = hn::Mul(hn::Mul(s, positive), AtMost(hn::Set(df, 1.0f), AtLeast(hn::Zero(df), gate)));
    } else if constexpr (kForm == QuantizedForm::kSlope) {
      v = hn::Mul(hn::ConvertTo(df, sum), Choose(d, sum, positive, negative));
    } else if constexpr (kForm == QuantizedForm::kOffset) {
      v = hn::MulSub(hn::BitCast(df, sum), positive, negative);
    } else {
      v = hn::Mul(hn::ConvertTo(df, sum), positive);
    }
    // Saturation does the rest where v cannot leave the range of int32.
    if constexpr (!kSaturates) v = AtMost(hn::Set(df, limit_), v);
    return RoundToInt(df, v);
  }

  // Stores one rounded vector as bytes, lane by lane.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE void Store(D d, V v, std::uint8_t* out) const {
#if HWY_TARGET == HWY_SCALAR
    const auto y = std::int64_t{hn::GetLane(v)} + zero_point_;
    *out = static_cast<std::uint8_t>(std::clamp<std::int64_t>(y, lowest_, 255));
    static_cast<void>(d);
#else
    if constexpr (kSaturates) {
      // Not beyond int32 when the zero point is added.
      v = hn::Min(v, hn::Set(d, 255));
    }
    v = hn::Max(hn::Add(v, hn::Set(d, zero_point_)), hn::Set(d, lowest_));
    const hn::Rebind<std::uint8_t, D> d8;
    hn::StoreU(hn::DemoteTo(d8, v), d8, out);
#endif
  }

  // Stores four rounded vectors whose channels are in quad order: 4 * lanes bytes.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE void StoreQuad(D d, V v0, V v1, V v2, V v3, std::uint8_t* out) const {
#if !TESSERA_X86_VECTORS
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (lanes <= 4) {  // quad order is the natural one
      Store(d, v0, out);
      Store(d, v1, out + lanes);
      Store(d, v2, out + 2 * lanes);
      Store(d, v3, out + 3 * lanes);
      return;
    }
    HWY_ABORT("vectors of more than 128 bits");
#else
    const hn::Repartition<std::uint8_t, D> d8;
    hn::StoreU(Pack(d, v0, v1, v2, v3), d8, out);
#endif
  }

  // Stores four rounded vectors of the same channels, of four pixels that lie `stride` bytes apart.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE void StoreFour(D d, V v0, V v1, V v2, V v3, std::uint8_t* out,
                            std::int64_t stride) const {
#if HWY_TARGET == HWY_AVX3
    if constexpr (sizeof(v0) == 64) {
      // Each 128 bits hold four channels of each pixel.
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      const __m512i pixels = _mm512_permutexvar_epi32(order, Pack(d, v0, v1, v2, v3).raw);
      if (stride == 16) return _mm512_storeu_si512(out, pixels);
      const auto at = [&](std::int64_t pixel) {
        return reinterpret_cast<__m128i*>(out + pixel * stride);
      };
      _mm_storeu_si128(at(0), _mm512_castsi512_si128(pixels));
      _mm_storeu_si128(at(1), _mm512_extracti32x4_epi32(pixels, 1));
      _mm_storeu_si128(at(2), _mm512_extracti32x4_epi32(pixels, 2));
      _mm_storeu_si128(at(3), _mm512_extracti32x4_epi32(pixels, 3));
      return;
    }
#endif
    Store(d, v0, out);
    Store(d, v1, out + stride);
    Store(d, v2, out + 2 * stride);
    Store(d, v3, out + 3 * stride);
  }

  // Four rounded vectors of the same channels as bytes, those of lane l in lane l of the result,
  // v0's lowest.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE V ToQuads(D d, V v0, V v1, V v2, V v3) const {
#if !TESSERA_X86_VECTORS
    const auto byte = [&](V v) HWY_ATTR {
      v = hn::Min(hn::Max(v, hn::Set(d, -255)), hn::Set(d, 255));
      v = hn::Max(hn::Add(v, hn::Set(d, zero_point_)), hn::Set(d, lowest_));
      return hn::Min(v, hn::Set(d, 255));
    };
    return hn::Or(hn::Or(byte(v0), hn::ShiftLeft<8>(byte(v1))),
                  hn::Or(hn::ShiftLeft<16>(byte(v2)), hn::ShiftLeft<24>(byte(v3))));
#else
    const hn::Repartition<std::uint8_t, D> d8;
    alignas(16) static constexpr std::uint8_t kTransposed[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                                 2, 6, 10, 14, 3, 7, 11, 15};
    return hn::BitCast(
        d, hn::TableLookupBytes(Pack(d, v0, v1, v2, v3), hn::LoadDup128(d8, kTransposed)));
#endif
  }

 private:
  // Whether saturation alone bounds the bytes.
  static constexpr bool kSaturates = kForm == QuantizedForm::kLinear ||
                                     kForm == QuantizedForm::kOffset ||
                                     kForm == QuantizedForm::kHardSwish;

#if TESSERA_X86_VECTORS
  // The bytes of four rounded vectors: within each 128 bits those of v0, v1, v2 and v3.
  template <class D, class V, class V8 = hn::Vec<hn::Repartition<std::uint8_t, D>>>
  HWY_INLINE V8 Pack(D, V v0, V v1, V v2, V v3) const {
    const hn::Repartition<std::int16_t, D> d16;
    const hn::Repartition<std::uint8_t, D> d8;
    auto low = hn::ReorderDemote2To(d16, v0, v1), high = hn::ReorderDemote2To(d16, v2, v3);
    if (kForm != QuantizedForm::kOffset && zero_point_ != 0) {  // after Relu it is 0
      const auto zero_point = hn::Set(d16, static_cast<std::int16_t>(zero_point_));
      low = hn::SaturatedAdd(low, zero_point);
      high = hn::SaturatedAdd(high, zero_point);
    }
    const V8 bytes = PackUnsigned<V8>(low, high);
    if constexpr (kForm == QuantizedForm::kSlope) {
      return hn::Max(bytes, hn::Set(d8, static_cast<std::uint8_t>(lowest_)));
    }
    return bytes;
  }
#endif

  template <class D, class V, class VF>
  static HWY_INLINE VF Choose(D, V sum, VF positive, VF negative) {
    const hn::Rebind<float, D> df;
    return hn::IfThenElse(hn::RebindMask(df, hn::Lt(sum, hn::Zero(D()))), negative, positive);
  }

#if TESSERA_X86_VECTORS
  // Within each 128 bits the bytes of a, then those of b, saturated.
  template <class V8, class V16>
  static HWY_INLINE V8 PackUnsigned(V16 a, V16 b) {
    if constexpr (sizeof(a) == 16) {
      return V8{_mm_packus_epi16(a.raw, b.raw)};
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    } else if constexpr (sizeof(a) == 32) {
      return V8{_mm256_packus_epi16(a.raw, b.raw)};
#endif
#if HWY_TARGET == HWY_AVX3
    } else {
      return V8{_mm512_packus_epi16(a.raw, b.raw)};
#endif
    }
  }
#endif

  float limit_, clip_low_, clip_high_;
  bool is_hard_swish_, has_addend_;
  float inverse_y_scale_;
  std::int32_t addend_zero_point_;
  float addend_scale_;
  std::int32_t zero_point_, lowest_;
};

// One vector of bytes as int32, lane by lane.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V LoadBytes(D d, const std::uint8_t* in) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, *in);
#else
  return hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint8_t, D>(), in));
#endif
}

// 4 * lanes bytes as four vectors of int32 in quad order.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void LoadQuad(D d, const std::uint8_t* in, V& v0, V& v1, V& v2, V& v3) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (lanes <= 4) {
    v0 = LoadBytes(d, in);
    v1 = LoadBytes(d, in + lanes);
    v2 = LoadBytes(d, in + 2 * lanes);
    v3 = LoadBytes(d, in + 3 * lanes);
    return;
  }
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint8_t, D> d8;
  const hn::Repartition<std::uint16_t, D> d16;
  const auto zero8 = hn::Zero(d8);
  const auto zero16 = hn::Zero(d16);
  const auto bytes = hn::LoadU(d8, in);
  const auto low = hn::BitCast(d16, hn::InterleaveLower(d8, bytes, zero8));
  const auto high = hn::BitCast(d16, hn::InterleaveUpper(d8, bytes, zero8));
  v0 = hn::BitCast(d, hn::InterleaveLower(d16, low, zero16));
  v1 = hn::BitCast(d, hn::InterleaveUpper(d16, low, zero16));
  v2 = hn::BitCast(d, hn::InterleaveLower(d16, high, zero16));
  v3 = hn::BitCast(d, hn::InterleaveUpper(d16, high, zero16));
#endif
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#undef TESSERA_X86_VECTORS

#endif
