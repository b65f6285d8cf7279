// Of quantized_expand.h: quads of pixels by dot products in registers. Included once per target.
#if defined(TESSERA_OPS_QUANTIZED_EXPAND_QUADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_EXPAND_QUADS_INL_H_
#undef TESSERA_OPS_QUANTIZED_EXPAND_QUADS_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_EXPAND_QUADS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/quantized/quantized_epilogue-inl.h"
#include "ops/quantized/quantized_expand.h"
#include "simd/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t FloatLanesOf() {
  return static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<float>()));
}

// The part of a step that computes one block of channels.
struct ExpandBlock {
  const QuantizedExpandPlan& plan;
  const QuantizedExpandStep& step;
  std::int64_t channel;
  const std::uint8_t* weights;   // of the pointwise convolution
  const std::int32_t* operands;  // of the same
  const std::uint8_t* depthwise_weights;
  const std::int32_t* depthwise_operands;
  std::uint8_t* quads;  // [slot][quad], of this block
  std::int64_t quads_in_row;
  std::int32_t* sums;  // [kTilesKept][2 rows][16 pixels][16]
};

// The quads of one row of the grid, each by dot products of its four pixels.
template <bool kVnni, QuantizedForm kForm>
class DotQuads {
  using D = hn::ScalableTag<std::int32_t>;
  using V = hn::Vec<D>;
  using VF = hn::Vec<hn::Rebind<float, D>>;
  static constexpr std::int64_t kLanes = FloatLanesOf();

 public:
  DotQuads(const ExpandBlock& b, std::int64_t row, std::int32_t* quads)
      : b_(b),
        quads_(quads),
        output_(b.plan.epilogue),
        width_(b.plan.input.width),
        left_(b.plan.depthwise.params.pad_left),
        stride_(b.plan.input.pixel_stride) {
    const std::int64_t y = 2 * row - b.plan.depthwise.params.pad_top;
    const std::int64_t last = b.plan.input.height - 1;
    for (int i = 0; i < 2; ++i) {
      has_row_[i] = y + i >= 0 && y + i <= last;
      in_[i] = b.step.in + std::clamp<std::int64_t>(y + i, 0, last) * b.plan.input.row_stride;
    }
    if (has_row_[0] && has_row_[1]) inner_ = {(1 + left_) / 2, (width_ + left_) / 2};
  }

  // Quads [begin, end).
  HWY_NOINLINE void Make(std::int64_t begin, std::int64_t end) const {
    std::int64_t i = begin;
    for (; i < std::min(end, inner_.begin); ++i) MakeAtBorder(i);
    constexpr int kQuads = kVnni && kLanes == 16 ? 2 : 1;
    const std::int64_t inner_end = std::min(end, inner_.end);
    for (; i + kQuads <= inner_end; i += kQuads) {
      V bytes[kQuads];
      Compute<kQuads>(in_[0] + (2 * i - left_) * stride_, in_[1] + (2 * i - left_) * stride_,
                      stride_, bytes);
      for (int q = 0; q < kQuads; ++q) hn::Store(bytes[q], D(), quads_ + (i + q) * kLanes);
    }
    for (; i < end; ++i) MakeAtBorder(i);
  }

 private:
  // Quads of neighbouring pixels, from two rows; pixels lie `stride` bytes apart.
  template <int kQuads>
  HWY_INLINE void Compute(const std::uint8_t* row0, const std::uint8_t* row1, std::int64_t stride,
                          V (&bytes)[kQuads]) const {
    const D d;
    const hn::Rebind<float, D> df;
    const V bias = hn::Load(d, b_.operands);
    const auto* const reals = reinterpret_cast<const float*>(b_.operands);
    const VF positive = hn::Load(df, reals + kLanes), negative = hn::Load(df, reals + 2 * kLanes);
    V sum[kQuads][4];
#pragma GCC unroll 2
    for (int q = 0; q < kQuads; ++q) sum[q][0] = sum[q][1] = sum[q][2] = sum[q][3] = bias;
    const auto* weights = reinterpret_cast<const std::int32_t*>(b_.weights);
    const auto add = [&](V& to, const std::uint8_t* from, V w) HWY_ATTR {
      std::int32_t four;
      std::memcpy(&four, from, sizeof(four));
      to = DotBytes<kVnni>(d, to, hn::Set(d, four), w);
    };
    for (std::int64_t k = b_.plan.depth; k > 0; --k, weights += kLanes, row0 += 4, row1 += 4) {
      const V w = hn::Load(d, weights);
#pragma GCC unroll 2
      for (int q = 0; q < kQuads; ++q) {
        add(sum[q][0], row0 + 2 * q * stride, w);
        add(sum[q][1], row0 + (2 * q + 1) * stride, w);
        add(sum[q][2], row1 + 2 * q * stride, w);
        add(sum[q][3], row1 + (2 * q + 1) * stride, w);
      }
    }
    const auto round = [&](V v) HWY_ATTR {
      return output_.Round(d, v, positive, negative, hn::Zero(d));
    };
#pragma GCC unroll 2
    for (int q = 0; q < kQuads; ++q) {
      bytes[q] = output_.ToQuads(d, round(sum[q][0]), round(sum[q][1]), round(sum[q][2]),
                                 round(sum[q][3]));
    }
  }

  // One quad, of which pixels may be outside of the image: the zero point.
  HWY_NOINLINE void MakeAtBorder(std::int64_t i) const {
    const D d;
    const std::int64_t x = 2 * i - left_;
    std::uint32_t inside = 0;
    for (int k = 0; k < 4; ++k) {
      const std::int64_t column = x + k % 2;
      if (has_row_[k / 2] && column >= 0 && column < width_) inside |= 0xFFu << (8 * k);
    }
    const auto byte = static_cast<std::uint32_t>(b_.plan.depthwise.x_zero_point);
    V outside = hn::Set(d, static_cast<std::int32_t>(byte * 0x01010101u));
    if (inside != 0) {
      // Pixels in place of those outside, which are not looked at.
      const bool both = x >= 0 && x + 1 < width_;
      const std::int64_t first = std::clamp<std::int64_t>(x < 0 ? x + 1 : x, 0, width_ - 1);
      V bytes[1];
      Compute<1>(in_[0] + first * stride_, in_[1] + first * stride_, both ? stride_ : 0, bytes);
      const V mask = hn::Set(d, static_cast<std::int32_t>(inside));
      outside = hn::Or(hn::And(mask, bytes[0]), hn::AndNot(mask, outside));
    }
    hn::Store(outside, d, quads_ + i * kLanes);
  }

  const ExpandBlock& b_;
  std::int32_t* quads_;
  QuantizedOutput<kForm> output_;
  std::int64_t width_, left_, stride_;
  bool has_row_[2];
  const std::uint8_t* in_[2];  // some row where there is none
  Range inner_ = {0, 0};       // quads all inside of the image
};

#endif  // HWY_TARGET

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
