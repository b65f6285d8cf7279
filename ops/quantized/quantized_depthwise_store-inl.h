// Of a depthwise convolution of bytes (quantized_depthwise.h): what becomes of the sums of a strip.
// Included once per target.
#if defined(TESSERA_OPS_QUANTIZED_DEPTHWISE_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_DEPTHWISE_STORE_INL_H_
#undef TESSERA_OPS_QUANTIZED_DEPTHWISE_STORE_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_DEPTHWISE_STORE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/quantized/quantized_depthwise_quads-inl.h"
#include "ops/quantized/quantized_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR  // without vectors there is nothing to interleave for

// Four vectors of floats in quad order, the first one's pixel in the strip's column `first`, to the
// blocked result.
template <class VF>
HWY_INLINE void StoreReals(const DepthwiseStrip& s, std::int64_t y, std::int64_t first,
                           const VF (&v)[4]) {
  const hn::ScalableTag<float> df;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(df));
  const BlockedLayout& real = s.plan.real_output;
  float* const row = s.band.real_out + y * real.row_stride + s.x * kLanes;
  const std::int64_t phases = s.plan.col_phases;
#if HWY_TARGET == HWY_AVX3
  // Transposed by 128 bits, each vector holds 16 channels: a block.
  const __m512 a = _mm512_shuffle_f32x4(v[0].raw, v[1].raw, 0x44);
  const __m512 b = _mm512_shuffle_f32x4(v[0].raw, v[1].raw, 0xEE);
  const __m512 c = _mm512_shuffle_f32x4(v[2].raw, v[3].raw, 0x44);
  const __m512 d = _mm512_shuffle_f32x4(v[2].raw, v[3].raw, 0xEE);
  const VF blocks[4] = {VF{_mm512_shuffle_f32x4(a, c, 0x88)}, VF{_mm512_shuffle_f32x4(a, c, 0xDD)},
                        VF{_mm512_shuffle_f32x4(b, d, 0x88)}, VF{_mm512_shuffle_f32x4(b, d, 0xDD)}};
  for (int i = 0; i < 4; ++i) {
    const std::int64_t block = (s.channel + kLanes * i % s.channels) / kLanes;
    const std::int64_t x = first + kLanes * i / s.channels * phases;
    if (x < s.pixels) hn::StoreU(blocks[i], df, row + block * real.plane_stride + x * kLanes);
  }
#else
  // Four channels at a time, which lie side by side in both orders.
  HWY_ALIGN float values[4 * kLanes];
  for (int j = 0; j < 4; ++j) hn::Store(v[j], df, values + j * kLanes);
  const std::int64_t channels = real.blocks * kLanes;
  for (std::int64_t i = 0; i < kLanes; ++i) {
    const std::int64_t plane = i % 4, part = i / 4, at = 16 * part + 4 * plane;
    const std::int64_t c = s.channel + at % s.channels, x = first + at / s.channels * phases;
    if (c >= channels || x >= s.pixels) continue;
    std::memcpy(row + c / kLanes * real.plane_stride + x * kLanes + c % kLanes,
                values + plane * kLanes + part * 4, 4 * sizeof(float));
  }
#endif
}

#if HWY_TARGET == HWY_AVX3
// Of two vectors of pixels of 16 or 32 channels the first one of each, then the second one of each,
// and so on.
HWY_INLINE void StoreAlternately(const std::uint8_t* pair, std::int64_t channels,
                                 std::uint8_t* out) {
  const __m512i a = _mm512_load_si512(pair), b = _mm512_load_si512(pair + 64);
  __m512i low = _mm512_shuffle_i32x4(a, b, 0x44), high = _mm512_shuffle_i32x4(a, b, 0xEE);
  if (channels == 16) {
    low = _mm512_shuffle_i32x4(low, low, 0xD8);
    high = _mm512_shuffle_i32x4(high, high, 0xD8);
  }
  _mm512_storeu_si512(out, low);
  _mm512_storeu_si512(out + 64, high);
}
#endif

// The sums of output row y, to bytes or to floats.
template <QuantizedForm kForm>
HWY_NOINLINE void FinishRow(const DepthwiseStrip& s, std::int64_t y) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  using V = hn::Vec<decltype(d)>;
  using VF = hn::Vec<decltype(df)>;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const QuantizedDepthwisePlan& plan = s.plan;
  const QuantizedOutput<kForm> output(plan.epilogue);
  const std::int64_t phases = plan.col_phases;
  const std::int64_t pixels = kLanes > 4 ? 4 * kLanes / s.channels : 1;  // in one vector
  const std::int64_t at =
      (y - s.band.rows.begin) * plan.output.row_stride + s.x * plan.output.pixel_stride + s.channel;
  const auto* reals = reinterpret_cast<const float*>(s.operands);
  VF positive[4], negative[4];
  for (int j = 0; j < 4; ++j) {
    positive[j] = hn::Load(df, reals + (4 + j) * kLanes);
    negative[j] = hn::Load(df, reals + (8 + j) * kLanes);
  }
  // Copies the pixels of one vector from or to their places. `first` is the first one's column,
  // from the strip's.
  const auto each_pixel = [&](std::int64_t first, const auto& body) {
    for (std::int64_t u = 0; u < pixels; ++u) {
      const std::int64_t x = first + u * phases;
      if (x < s.pixels) body(x, u * s.channels);
    }
  };
  const auto copy = [&](const std::uint8_t* from, std::uint8_t* to) {
    if constexpr (kLanes > 8) {
      if (s.channels == 32) {
        std::memcpy(to, from, 32);
        return;
      }
    }
    std::memcpy(to, from, 16);
  };
#if HWY_TARGET == HWY_AVX3
  HWY_ALIGN std::uint8_t pair[8 * kLanes];
#endif
  const std::int64_t count = s.tiles * kDepthwiseTile;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = i / phases * pixels * phases + i % phases;
    if (first >= s.pixels) continue;
    const std::int64_t place = at + first * plan.output.pixel_stride;
    HWY_ALIGN std::uint8_t bytes[4 * kLanes];
    V addend[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    if (kForm == QuantizedForm::kGeneral && s.band.addend != nullptr) {
      const std::uint8_t* from = s.band.addend + place;
      if (pixels > 1) {
        each_pixel(first, [&](std::int64_t x, std::int64_t j) {
          copy(s.band.addend + at + x * plan.output.pixel_stride, bytes + j);
        });
        from = bytes;
      }
      LoadQuad(d, from, addend[0], addend[1], addend[2], addend[3]);
    }
    const std::int32_t* sums = s.sums + i * 4 * kLanes;
    if (kForm == QuantizedForm::kGeneral && plan.epilogue.to_float) {
      VF real[4];
      for (int j = 0; j < 4; ++j) {
        real[j] =
            output.Real(d, hn::Load(d, sums + j * kLanes), positive[j], negative[j], addend[j]);
      }
      StoreReals(s, y, first, real);
      continue;
    }
    V v[4];
    for (int j = 0; j < 4; ++j) {
      v[j] = output.Round(d, hn::Load(d, sums + j * kLanes), positive[j], negative[j], addend[j]);
    }
    // Where pixels lie side by side: this vector's, or those of the two phases.
    const bool joined = s.channels == plan.output.pixel_stride;
    if (pixels == 1 || (joined && phases == 1 && first + pixels <= s.pixels)) {
      output.StoreQuad(d, v[0], v[1], v[2], v[3], s.band.out + place);
      continue;
    }
#if HWY_TARGET == HWY_AVX3
    const std::int64_t phase = i % 2, even = first - phase;
    if (joined && phases == 2 && even + 2 * pixels <= s.pixels) {
      output.StoreQuad(d, v[0], v[1], v[2], v[3], pair + phase * 64);
      if (phase == 1) {
        StoreAlternately(pair, s.channels, s.band.out + at + even * plan.output.pixel_stride);
      }
      continue;
    }
#endif
    output.StoreQuad(d, v[0], v[1], v[2], v[3], bytes);
    each_pixel(first, [&](std::int64_t x, std::int64_t j) {
      copy(bytes + j, s.band.out + at + x * plan.output.pixel_stride);
    });
  }
}

inline void (*ChooseFinishRow(const QuantizedEpilogue& e))(const DepthwiseStrip&, std::int64_t) {
  return WithForm(e, [](auto form) { return &FinishRow<decltype(form)::value>; });
}

#endif  // HWY_TARGET

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
