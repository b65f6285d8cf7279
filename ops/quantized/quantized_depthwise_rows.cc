// Depthwise convolution of bytes, row by row; see quantized_depthwise.h.
#include <algorithm>
#include <cstring>

#include "ops/quantized/quantized_depthwise.h"
#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_depthwise_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantized/quantized_depthwise_quads-inl.h"
#include "ops/quantized/quantized_depthwise_store-inl.h"
#include "ops/quantized/quantized_depthwise_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// Without vectors there is nothing to interleave for.
inline void RunDepthwiseBandPlainly(const QuantizedDepthwisePlan& plan,
                                    const QuantizedDepthwiseBand& band) {
  const ConvParams& p = plan.params;
  const QuantizedEpilogue& e = plan.epilogue;
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  for (std::int64_t y = band.rows.begin; y < band.rows.end; ++y) {
    for (std::int64_t x = 0; x < p.out_width; ++x) {
      const std::int64_t at = (y - band.rows.begin) * plan.output.row_stride +  //
                              x * plan.output.pixel_stride;
      for (std::int64_t c = 0; c < p.out_channels; ++c) {
        const auto* w = plan.weights->data<const std::int8_t>() + c * taps;
        std::int32_t sum = e.Bias()[c];
        for (std::int64_t ky = 0; ky < p.kernel_h; ++ky) {
          const std::int64_t iy = y * p.stride_h - p.pad_top + ky * p.dilation_h;
          for (std::int64_t kx = 0; kx < p.kernel_w; ++kx, ++w) {
            const std::int64_t ix = x * p.stride_w - p.pad_left + kx * p.dilation_w;
            const bool inside = iy >= 0 && iy < p.in_height && ix >= 0 && ix < p.in_width;
            sum += *w *
                   (inside ? band.in[iy * plan.input.row_stride + ix * plan.input.pixel_stride + c]
                           : plan.x_zero_point);
          }
        }
        const std::uint8_t addend = band.addend == nullptr ? std::uint8_t{0} : band.addend[at + c];
        if (e.to_float) {
          const BlockedLayout& real = plan.real_output;  // of one lane
          band.real_out[c * real.plane_stride + y * real.row_stride + x] =
              e.ToFloat(sum, c, addend);
        } else {
          band.out[at + c] = e.ToByte(sum, c, addend);
        }
      }
    }
  }
}

#else  // HWY_TARGET

// The band's rows of one strip.
template <class D8>
void RunDepthwiseStrip(D8 d8, const DepthwiseStrip& s, DepthwiseSumRow sum_row,
                       void (*finish_row)(const DepthwiseStrip&, std::int64_t)) {
  constexpr std::int64_t kPlane = PlaneBytes(hn::ScalableTag<std::int32_t>());
  const QuantizedDepthwisePlan& plan = s.plan;
  QuadWindows windows = {.quads = s.quads,
                         .slot_bytes = 4 * kPlane,
                         .plane_bytes = kPlane,
                         .quad_bytes = s.quad_bytes(),
                         .first_slot = 0,
                         .rows = plan.rows,
                         .cols = plan.cols,
                         .planes = 4,
                         .tiles = s.tiles,
                         .weights = s.weights,
                         .bias = s.operands,
                         .sums = s.sums};
  if (!plan.grid) {
    for (std::int64_t y = s.band.rows.begin; y < s.band.rows.end; ++y) {
      InterleaveTaps(d8, s, y);
      sum_row(windows);
      finish_row(s, y);
    }
    return;
  }
  std::int64_t next = s.band.rows.begin * plan.params.stride_h / 2;  // row of the grid
  for (std::int64_t y = s.band.rows.begin; y < s.band.rows.end; ++y) {
    const std::int64_t first = y * plan.params.stride_h / 2;
    for (next = std::max(next, first); next < first + plan.rows; ++next) {
      InterleaveGridRow(d8, s, next, s.quads + next % plan.rows * 4 * kPlane);
    }
    const std::int64_t phase = y * plan.params.stride_h % 2;
    windows.weights = s.weights + phase * plan.PhaseWeightBytes();
    windows.first_slot = first % plan.rows;
    sum_row(windows);
    finish_row(s, y);
  }
}

template <bool kVnni>
void RunDepthwiseStrips(const QuantizedDepthwisePlan& plan, const QuantizedDepthwiseBand& band) {
  const hn::ScalableTag<std::uint8_t> d8;
  constexpr auto kBytes = static_cast<std::int64_t>(hn::MaxLanes(d8));
  const DepthwiseSumRow sum_row = ChooseSumRow<kVnni>(plan);
  const auto finish_row = ChooseFinishRow(plan.epilogue);

  auto* scratch = reinterpret_cast<std::uint8_t*>(band.scratch);
  std::uint8_t* const zero_point = scratch;
  std::memset(zero_point, plan.x_zero_point, kBytes);
  scratch += kAlignment;
  auto* const sums = reinterpret_cast<std::int32_t*>(scratch);
  scratch += plan.strip_tiles * kDepthwiseTile * 4 * kBytes;

  const std::int64_t width = plan.params.out_width;
  for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
    const auto [channel, channels] = plan.blocks[b];
    const std::int64_t tile = kDepthwiseTile * kBytes / channels;  // pixels
    for (std::int64_t x = 0; x < width; x += plan.strip_tiles * tile) {
      const std::int64_t pixels = std::min(width - x, plan.strip_tiles * tile);
      const auto block = static_cast<std::int64_t>(b);
      const DepthwiseStrip strip = {
          .plan = plan,
          .band = band,
          .channel = channel,
          .channels = channels,
          .x = x,
          .pixels = pixels,
          .tiles = (pixels + tile - 1) / tile,
          .weights = plan.packed_weights->As<const std::uint8_t>() +
                     block * plan.row_phases * plan.PhaseWeightBytes(),
          .operands = plan.operands.As<const std::int32_t>() + block * 3 * kBytes,
          .zero_point = zero_point,
          .quads = scratch,
          .sums = sums};
      if (channels == kBytes) {
        RunDepthwiseStrip(d8, strip, sum_row, finish_row);
      } else if (channels == 32) {
        RunDepthwiseStrip(hn::CappedTag<std::uint8_t, 32>(), strip, sum_row, finish_row);
      } else {
        RunDepthwiseStrip(hn::CappedTag<std::uint8_t, 16>(), strip, sum_row, finish_row);
      }
    }
  }
}

#endif  // HWY_TARGET

void RunQuantizedDepthwiseBandOfTarget(const QuantizedDepthwisePlan& plan,
                                       const QuantizedDepthwiseBand& band) {
#if HWY_TARGET == HWY_SCALAR
  RunDepthwiseBandPlainly(plan, band);
#else
  if constexpr (kTargetHasVnni) {
    if (HasVnni()) return RunDepthwiseStrips<true>(plan, band);
  }
  RunDepthwiseStrips<false>(plan, band);
#endif
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {
HWY_EXPORT(RunQuantizedDepthwiseBandOfTarget);
}  // namespace

void RunQuantizedDepthwiseBand(const QuantizedDepthwisePlan& plan,
                               const QuantizedDepthwiseBand& band) {
  HWY_DYNAMIC_DISPATCH(RunQuantizedDepthwiseBandOfTarget)(plan, band);
}

}  // namespace tessera
#endif  // HWY_ONCE
