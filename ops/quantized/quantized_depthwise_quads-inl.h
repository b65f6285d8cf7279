// Of a depthwise convolution of bytes (quantized_depthwise.h): quads of pixels, interleaved for dot
// products. A strip of a row at a time, so that all of it stays in the L1 cache. Included once per
// target.
#if defined(TESSERA_OPS_QUANTIZED_DEPTHWISE_QUADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_DEPTHWISE_QUADS_INL_H_
#undef TESSERA_OPS_QUANTIZED_DEPTHWISE_QUADS_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_DEPTHWISE_QUADS_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/quantized/quantized_depthwise.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR  // without vectors there is nothing to interleave for

// The strip of one block of channels that is being computed.
struct DepthwiseStrip {
  const QuantizedDepthwisePlan& plan;
  const QuantizedDepthwiseBand& band;
  std::int64_t channel, channels;  // of the block
  std::int64_t x, pixels;          // output columns
  std::int64_t tiles;
  const std::uint8_t* weights;   // of the block
  const std::int32_t* operands;  // of the block
  std::uint8_t* zero_point;      // a pixel outside of the image
  std::uint8_t* quads;           // [slot][4 planes]
  std::int32_t* sums;            // [tile][4][4 vectors]

  std::int64_t quad_bytes() const { return channels; }  // in each plane
};

// Bytes of a plane.
template <class D>
constexpr std::int64_t PlaneBytes(D) {
  return kDepthwisePlaneVectors * static_cast<std::int64_t>(hn::MaxLanes(D()) * sizeof(int32_t));
}

// The bytes of four vectors, byte by byte, to the four planes.
template <class D8, class V8 = hn::Vec<D8> >
HWY_INLINE void StoreQuads(D8 d8, V8 v0, V8 v1, V8 v2, V8 v3, std::uint8_t* to) {
  const hn::Repartition<std::uint16_t, D8> d16;
  constexpr std::int64_t kPlane = PlaneBytes(hn::ScalableTag<std::int32_t>());
  const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, v0, v1));
  const auto high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, v0, v1));
  const auto low23 = hn::BitCast(d16, hn::InterleaveLower(d8, v2, v3));
  const auto high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, v2, v3));
  hn::StoreU(hn::BitCast(d8, hn::InterleaveLower(d16, low01, low23)), d8, to);
  hn::StoreU(hn::BitCast(d8, hn::InterleaveUpper(d16, low01, low23)), d8, to + kPlane);
  hn::StoreU(hn::BitCast(d8, hn::InterleaveLower(d16, high01, high23)), d8, to + 2 * kPlane);
  hn::StoreU(hn::BitCast(d8, hn::InterleaveUpper(d16, high01, high23)), d8, to + 3 * kPlane);
}

// Four pixels of a block's channels.
template <class D8>
HWY_INLINE void StoreQuadOfPixels(D8 d8, const std::uint8_t* p0, const std::uint8_t* p1,
                                  const std::uint8_t* p2, const std::uint8_t* p3,
                                  std::uint8_t* to) {
  StoreQuads(d8, hn::LoadU(d8, p0), hn::LoadU(d8, p1), hn::LoadU(d8, p2), hn::LoadU(d8, p3), to);
}

#if HWY_TARGET == HWY_AVX3

// Quads of two rows whose pixels have 16 or 32 channels and nothing else, several at a time.
// Returns how many were made: up to 3 fewer than `count`.
template <std::int64_t kChannels>
HWY_INLINE std::int64_t StoreNarrowQuads(const std::uint8_t* a, const std::uint8_t* b,
                                         std::int64_t count, std::uint8_t* to) {
  const hn::ScalableTag<std::uint8_t> d8;
  using V8 = hn::Vec<decltype(d8)>;
  constexpr std::int64_t kQuads = 64 / kChannels;  // in a vector of each plane
  constexpr int kEven = kChannels == 16 ? 0x88 : 0x44, kOdd = kChannels == 16 ? 0xDD : 0xEE;
  std::int64_t i = 0;
  for (; i + kQuads <= count; i += kQuads, a += 128, b += 128) {
    const __m512i a0 = hn::LoadU(d8, a).raw, a1 = hn::LoadU(d8, a + 64).raw;
    const __m512i b0 = hn::LoadU(d8, b).raw, b1 = hn::LoadU(d8, b + 64).raw;
    StoreQuads(d8, V8{_mm512_shuffle_i32x4(a0, a1, kEven)}, V8{_mm512_shuffle_i32x4(a0, a1, kOdd)},
               V8{_mm512_shuffle_i32x4(b0, b1, kEven)}, V8{_mm512_shuffle_i32x4(b0, b1, kOdd)},
               to + i * kChannels);
  }
  return i;
}

#endif

// Columns of an input row, for one block: column x is at data + x * step.
struct DepthwiseInputRow {
  const std::uint8_t* data;
  std::int64_t step;
};

inline DepthwiseInputRow InputRow(const DepthwiseStrip& s, std::int64_t y) {
  if (y < 0 || y >= s.plan.params.in_height) return {s.zero_point, 0};
  return {s.band.in + y * s.plan.input.row_stride + s.channel, s.plan.input.pixel_stride};
}

inline const std::uint8_t* InputPixel(const DepthwiseStrip& s, const DepthwiseInputRow& row,
                                      std::int64_t x) {
  return x < 0 || x >= s.plan.params.in_width ? s.zero_point : row.data + x * row.step;
}

// Row `row` of the grid of quads, from the strip's first column on.
template <class D8>
HWY_NOINLINE void InterleaveGridRow(D8 d8, const DepthwiseStrip& s, std::int64_t row,
                                    std::uint8_t* to) {
  const ConvParams& p = s.plan.params;
  const auto vectors = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<std::uint8_t>())) /
                       s.quad_bytes();  // quads in one
  const std::int64_t quads =
      s.tiles * kDepthwiseTile / s.plan.col_phases * vectors + s.plan.cols - 1;
  const std::int64_t y = 2 * row - p.pad_top, x = s.x * p.stride_w - p.pad_left;
  const DepthwiseInputRow r0 = InputRow(s, y), r1 = InputRow(s, y + 1);
  // Both columns of quads [begin, end) are inside of the image.
  const std::int64_t begin = std::clamp<std::int64_t>((1 - x) / 2, 0, quads);
  const std::int64_t end = std::clamp<std::int64_t>((p.in_width - x) / 2, begin, quads);
  const std::int64_t quad_bytes = s.quad_bytes();
  const auto at_border = [&](std::int64_t i) HWY_ATTR {
    const std::int64_t left = x + 2 * i;
    StoreQuadOfPixels(d8, InputPixel(s, r0, left), InputPixel(s, r0, left + 1),
                      InputPixel(s, r1, left), InputPixel(s, r1, left + 1), to + i * quad_bytes);
  };
  for (std::int64_t i = 0; i < begin; ++i) at_border(i);
  const std::uint8_t* a = r0.data + (x + 2 * begin) * r0.step;
  const std::uint8_t* b = r1.data + (x + 2 * begin) * r1.step;
  std::uint8_t* out = to + begin * quad_bytes;
  std::int64_t done = begin;
#if HWY_TARGET == HWY_AVX3
  if (r0.step == s.channels && r1.step == s.channels && s.channels < 64) {
    const std::int64_t made = s.channels == 16 ? StoreNarrowQuads<16>(a, b, end - begin, out)
                                               : StoreNarrowQuads<32>(a, b, end - begin, out);
    done += made;
    a += 2 * made * r0.step;
    b += 2 * made * r1.step;
    out += made * quad_bytes;
  }
#endif
  for (std::int64_t i = done; i < end; ++i) {
    StoreQuadOfPixels(d8, a, a + r0.step, b, b + r1.step, out);
    a += 2 * r0.step;
    b += 2 * r1.step;
    out += quad_bytes;
  }
  for (std::int64_t i = end; i < quads; ++i) at_border(i);
}

// All quads of output row y, one slot for each four taps.
template <class D8>
HWY_NOINLINE void InterleaveTaps(D8 d8, const DepthwiseStrip& s, std::int64_t y) {
  const ConvParams& p = s.plan.params;
  constexpr std::int64_t kPlane = PlaneBytes(hn::ScalableTag<std::int32_t>());
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  for (std::int64_t slot = 0; slot < s.plan.rows; ++slot) {
    for (std::int64_t i = 0; i < s.pixels; ++i) {
      const std::uint8_t* pixels[4];
      for (std::int64_t k = 0; k < 4; ++k) {
        const std::int64_t tap = std::min(4 * slot + k, taps - 1);  // others have zero weights
        const std::int64_t iy = y * p.stride_h - p.pad_top + tap / p.kernel_w * p.dilation_h;
        const std::int64_t ix =
            (s.x + i) * p.stride_w - p.pad_left + tap % p.kernel_w * p.dilation_w;
        pixels[k] = InputPixel(s, InputRow(s, iy), ix);
      }
      StoreQuadOfPixels(d8, pixels[0], pixels[1], pixels[2], pixels[3],
                        s.quads + slot * 4 * kPlane + i * s.quad_bytes());
    }
  }
}

#endif  // HWY_TARGET

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
