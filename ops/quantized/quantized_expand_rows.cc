// The vector code of quantized_expand.h.
#include <algorithm>
#include <cstring>

#include "ops/quantized/quantized_expand.h"
#include "simd/amx.h"
#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_expand_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantized/quantized_depthwise-inl.h"

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
  std::int32_t* sums;            // [2][width], of the pointwise convolution
  std::int32_t* depthwise_sums;  // [output width]
  bool tiles;                    // AMX is there
};

// Sums of `pixels` neighbouring pixels for the block's channels.
template <bool kVnni>
HWY_NOINLINE void SumPixels(const ExpandBlock& b, const std::uint8_t* in, std::int64_t pixels,
                            std::int32_t* sums) {
  const hn::ScalableTag<std::int32_t> d;
  using V = hn::Vec<decltype(d)>;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const std::int64_t depth = b.plan.depth, stride = b.plan.input.pixel_stride;
  const V bias = hn::Load(d, b.operands);
  const auto* weights = reinterpret_cast<const std::int32_t*>(b.weights);
  const auto tile = [&](auto count) HWY_ATTR {
    constexpr int kPixels = decltype(count)::value;
    V sum[kPixels];
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) sum[i] = bias;
    for (std::int64_t k = 0; k < depth; ++k) {
      const V w = hn::Load(d, weights + k * kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < kPixels; ++i) {
        std::int32_t four;
        std::memcpy(&four, in + i * stride + 4 * k, sizeof(four));
        sum[i] = DotBytes<kVnni>(d, sum[i], hn::Set(d, four), w);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kPixels; ++i) hn::Store(sum[i], d, sums + i * kLanes);
    in += kPixels * stride;
    sums += kPixels * kLanes;
  };
  std::int64_t x = 0;
  for (; x + 8 <= pixels; x += 8) tile(std::integral_constant<int, 8>());
  for (; x < pixels; ++x) tile(std::integral_constant<int, 1>());
}

#if HWY_TARGET == HWY_AVX3
// The same by tiles of 16 pixels. Those read beyond their pixels, into the next ones, for which
// weights are zero; in the last row of the image there may be none. Returns how many were done.
HWY_NOINLINE std::int64_t SumPixelsByTiles(const ExpandBlock& b, std::int64_t y,
                                           std::int32_t* sums) {
  constexpr std::int64_t kRows = 16, kTile = 1024;
  const ChannelsLastLayout& input = b.plan.input;
  const std::int64_t stride = input.pixel_stride, segments = b.plan.weight_rows / kRows;
  const std::uint8_t* in = b.step.in + y * input.row_stride;
  // First pixel that a tile may begin at.
  const std::int64_t readable = input.image_stride - y * input.row_stride;
  const std::int64_t last = (readable - segments * 64) / stride - kRows + 1;
  const std::int64_t pixels = std::min(input.width, last + kRows) / kRows * kRows;
  std::int64_t x = 0;
  for (; x + 2 * kRows <= pixels; x += 2 * kRows) {
    LoadTile<0>(b.operands, 0);
    LoadTile<1>(b.operands, 0);
    for (std::int64_t s = 0; s < segments; ++s) {
      const std::uint8_t* from = in + x * stride + s * 64;
      LoadTile<6>(b.weights + s * kTile, 64);
      LoadTile<4>(from, stride);
      MultiplyTiles<0, 4, 6>();
      LoadTile<5>(from + kRows * stride, stride);
      MultiplyTiles<1, 5, 6>();
    }
    StoreTile<0>(sums + x * kRows, 64);
    StoreTile<1>(sums + (x + kRows) * kRows, 64);
  }
  for (; x < pixels; x += kRows) {
    LoadTile<0>(b.operands, 0);
    for (std::int64_t s = 0; s < segments; ++s) {
      LoadTile<6>(b.weights + s * kTile, 64);
      LoadTile<4>(in + x * stride + s * 64, stride);
      MultiplyTiles<0, 4, 6>();
    }
    StoreTile<0>(sums + x * kRows, 64);
  }
  return std::max<std::int64_t>(0, pixels);
}
#endif

// Quads of row `row` of the grid, from the sums of its two rows of pixels.
template <QuantizedForm kForm>
HWY_NOINLINE void QuadsFromSums(const ExpandBlock& b, std::int64_t row, std::int32_t* quads) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  using V = hn::Vec<decltype(d)>;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const ConvParams& p = b.plan.depthwise.params;
  const QuantizedOutput<kForm> output(b.plan.epilogue);
  const auto* reals = reinterpret_cast<const float*>(b.operands);
  const auto positive = hn::Load(df, reals + kLanes), negative = hn::Load(df, reals + 2 * kLanes);
  const V zero = hn::Zero(d);
  const auto round = [&](const std::int32_t* sums) HWY_ATTR {
    return output.Round(d, hn::Load(d, sums), positive, negative, zero);
  };
  const auto four = [&](const std::int32_t* p0, const std::int32_t* p1, const std::int32_t* p2,
                        const std::int32_t* p3) HWY_ATTR {
    return output.ToQuads(d, round(p0), round(p1), round(p2), round(p3));
  };
  const std::int64_t y = 2 * row - p.pad_top, left = -p.pad_left, count = b.quads_in_row;
  const auto has_row = [&](std::int64_t r) { return r >= 0 && r < p.in_height; };
  const std::int32_t *r0 = b.sums, *r1 = b.sums + p.in_width * kLanes;
  // Quads that reach beyond the image: what is outside is replaced.
  const std::uint32_t rows_inside = (has_row(y) ? 0xFFFFu : 0) | (has_row(y + 1) ? 0xFFFF0000u : 0);
  const V zero_point = hn::Set(d, b.plan.depthwise.x_zero_point * 0x01010101);
  const auto at_border = [&](std::int64_t i) HWY_ATTR {
    const std::int64_t x = left + 2 * i;
    const auto has_column = [&](std::int64_t c) { return c >= 0 && c < p.in_width; };
    const std::uint32_t inside =
        rows_inside & ((has_column(x) ? 0x00FF00FFu : 0) | (has_column(x + 1) ? 0xFF00FF00u : 0));
    V v = zero_point;
    if (inside != 0) {
      const std::int64_t x0 = std::clamp<std::int64_t>(x, 0, p.in_width - 1) * kLanes;
      const std::int64_t x1 = std::clamp<std::int64_t>(x + 1, 0, p.in_width - 1) * kLanes;
      v = four(r0 + x0, r0 + x1, r1 + x0, r1 + x1);
      const V mask = hn::Set(d, static_cast<std::int32_t>(inside));
      v = hn::Or(hn::And(mask, v), hn::AndNot(mask, zero_point));
    }
    hn::Store(v, d, quads + i * kLanes);
  };
  std::int64_t begin = count, end = count;
  if (rows_inside == 0xFFFFFFFFu) {
    begin = std::clamp<std::int64_t>((1 - left) / 2, 0, count);
    end = std::clamp<std::int64_t>((p.in_width - left) / 2, begin, count);
  }
  for (std::int64_t i = 0; i < begin; ++i) at_border(i);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t at = (left + 2 * i) * kLanes;
    hn::Store(four(r0 + at, r0 + at + kLanes, r1 + at, r1 + at + kLanes), d, quads + i * kLanes);
  }
  for (std::int64_t i = end; i < count; ++i) at_border(i);
}

// The depthwise sums of output row y to bytes.
template <QuantizedForm kForm>
HWY_NOINLINE void FinishVectors(const ExpandBlock& b, std::int64_t y) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const QuantizedDepthwisePlan& plan = b.plan.depthwise;
  const QuantizedOutput<kForm> output(plan.epilogue);
  const auto* reals = reinterpret_cast<const float*>(b.depthwise_operands);
  const auto positive = hn::Load(df, reals + kLanes), negative = hn::Load(df, reals + 2 * kLanes);
  const std::int64_t stride = plan.output.pixel_stride, width = plan.output.width;
  const std::int64_t at = (y - b.step.rows.begin) * plan.output.row_stride + b.channel;
  std::uint8_t* const out = b.step.out + at;
  const std::uint8_t* const addend =
      kForm == QuantizedForm::kGeneral && b.step.addend != nullptr ? b.step.addend + at : nullptr;
  const auto round = [&](std::int64_t x) HWY_ATTR {
    const auto a = addend == nullptr ? hn::Zero(d) : LoadBytes(d, addend + x * stride);
    return output.Round(d, hn::Load(d, b.depthwise_sums + x * kLanes), positive, negative, a);
  };
  std::int64_t x = 0;
  for (; x + 4 <= width; x += 4) {
    output.StoreFour(d, round(x), round(x + 1), round(x + 2), round(x + 3), out + x * stride,
                     stride);
  }
  for (; x < width; ++x) output.Store(d, round(x), out + x * stride);
}

template <typename Use>
void WithForm(const QuantizedEpilogue& e, const Use& use) {
  if (!e.is_linear) return use(std::integral_constant<QuantizedForm, QuantizedForm::kGeneral>());
  if (e.has_slope) return use(std::integral_constant<QuantizedForm, QuantizedForm::kSlope>());
  use(std::integral_constant<QuantizedForm, QuantizedForm::kLinear>());
}

// The next row of the grid.
template <bool kVnni>
void MakeQuads(const ExpandBlock& b, std::int64_t row, std::int32_t* quads) {
  constexpr std::int64_t kLanes = FloatLanesOf();
  const ConvParams& p = b.plan.depthwise.params;
  const ChannelsLastLayout& input = b.plan.input;
  for (std::int64_t i = 0; i < 2; ++i) {
    const std::int64_t y = 2 * row + i - p.pad_top;
    if (y < 0 || y >= p.in_height) continue;
    std::int32_t* const sums = b.sums + i * p.in_width * kLanes;
    std::int64_t x = 0;
#if HWY_TARGET == HWY_AVX3
    if (b.tiles) x = SumPixelsByTiles(b, y, sums);
#endif
    SumPixels<kVnni>(b, b.step.in + y * input.row_stride + x * input.pixel_stride, p.in_width - x,
                     sums + x * kLanes);
  }
  WithForm(b.plan.epilogue,
           [&](auto form) { QuadsFromSums<decltype(form)::value>(b, row, quads); });
}

template <bool kVnni>
void RunExpandStep(const QuantizedExpandPlan& plan, const QuantizedExpandStep& step) {
  constexpr std::int64_t kLanes = FloatLanesOf(), kBytes = 4 * kLanes;
  const QuantizedDepthwisePlan& depthwise = plan.depthwise;
  const ConvParams& p = depthwise.params;
  const DepthwiseSumRow sum_row = ChooseSumRow<kVnni>(depthwise);
  const std::int64_t quads_in_row = plan.Quads();
  auto* const sums = reinterpret_cast<std::int32_t*>(step.scratch);
  std::int32_t* const depthwise_sums = sums + 2 * p.in_width * kLanes;
  const std::int64_t tiles = (p.out_width + kDepthwiseTile - 1) / kDepthwiseTile;
  auto* const quads =
      reinterpret_cast<std::uint8_t*>(depthwise_sums + tiles * kDepthwiseTile * kLanes);
  const std::int64_t slot_bytes = quads_in_row * kBytes;

#if HWY_TARGET == HWY_AVX3
  const bool has_amx = kVnni && HasAmx();
  if (has_amx) BeginAmx();
#else
  constexpr bool has_amx = false;
#endif
  for (std::size_t i = 0; i < depthwise.blocks.size(); ++i) {
    const auto block = static_cast<std::int64_t>(i);
    const ExpandBlock b = {
        .plan = plan,
        .step = step,
        .channel = depthwise.blocks[i].channel,
        .weights = plan.weights->As<const std::uint8_t>() + block * plan.weight_rows * kBytes,
        .operands = plan.operands.As<const std::int32_t>() + block * 3 * kLanes,
        .depthwise_weights = depthwise.packed_weights->As<const std::uint8_t>() +
                             block * depthwise.row_phases * depthwise.PhaseWeightBytes(),
        .depthwise_operands = depthwise.operands.As<const std::int32_t>() + block * 3 * kLanes,
        .quads = quads + block * depthwise.rows * slot_bytes,
        .quads_in_row = quads_in_row,
        .sums = sums,
        .depthwise_sums = depthwise_sums,
        .tiles = has_amx};
    QuadWindows windows = {.quads = b.quads,
                           .slot_bytes = slot_bytes,
                           .plane_bytes = 0,
                           .quad_bytes = kBytes,
                           .first_slot = 0,
                           .rows = depthwise.rows,
                           .cols = depthwise.cols,
                           .planes = 1,
                           .tiles = tiles,
                           .weights = nullptr,
                           .bias = b.depthwise_operands,
                           .sums = depthwise_sums};
    const auto first_row = [&](std::int64_t y) { return y * p.stride_h / 2; };
    // Row of the grid that is not there yet: what the step before needed is.
    std::int64_t next = first_row(step.rows.begin);
    if (!step.first) next = std::max(next, first_row(step.rows.begin - 1) + depthwise.rows);
    for (std::int64_t y = step.rows.begin; y < step.rows.end; ++y) {
      const std::int64_t first = first_row(y);
      for (next = std::max(next, first); next < first + depthwise.rows; ++next) {
        MakeQuads<kVnni>(
            b, next, reinterpret_cast<std::int32_t*>(b.quads + next % depthwise.rows * slot_bytes));
      }
      const std::int64_t phase = y * p.stride_h % 2;
      windows.weights = b.depthwise_weights + phase * depthwise.PhaseWeightBytes();
      windows.first_slot = first % depthwise.rows;
      sum_row(windows);
      WithForm(depthwise.epilogue, [&](auto form) { FinishVectors<decltype(form)::value>(b, y); });
    }
  }
#if HWY_TARGET == HWY_AVX3
  if (has_amx) EndAmx();
#endif
}

#endif  // HWY_TARGET

void RunExpandStepOfTarget(const QuantizedExpandPlan& plan, const QuantizedExpandStep& step) {
#if HWY_TARGET == HWY_SCALAR  // IsQuantizedExpand says so
  static_cast<void>(plan);
  static_cast<void>(step);
#else
  if constexpr (kTargetHasVnni) {
    if (HasVnni()) return RunExpandStep<true>(plan, step);
  }
  RunExpandStep<false>(plan, step);
#endif
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {
HWY_EXPORT(RunExpandStepOfTarget);
}  // namespace

void RunQuantizedExpandStep(const QuantizedExpandPlan& plan, const QuantizedExpandStep& step) {
  HWY_DYNAMIC_DISPATCH(RunExpandStepOfTarget)(plan, step);
}

}  // namespace tessera
#endif  // HWY_ONCE
