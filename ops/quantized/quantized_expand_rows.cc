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
#include "ops/quantized/quantized_depthwise_sums-inl.h"
#include "ops/quantized/quantized_epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

constexpr std::int64_t FloatLanesOf() {
  return static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<float>()));
}

// Bytes of a pixel in a tile.
inline std::int64_t ExpandTileBytes(const QuantizedExpandPlan& plan) {
  return std::min<std::int64_t>(64, plan.input.pixel_stride);
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

// Makes quads of one row of the grid from the sums of its two rows of pixels.
template <QuantizedForm kForm>
class QuadRow {
  using D = hn::ScalableTag<std::int32_t>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kLanes = FloatLanesOf();

 public:
  QuadRow(const ExpandBlock& b, std::int64_t row, std::int32_t* quads)
      : b_(b), quads_(quads), output_(b.plan.epilogue) {
    const ConvParams& p = b.plan.depthwise.params;
    const std::int64_t y = 2 * row - p.pad_top;
    has_row_[0] = y >= 0 && y < p.in_height;
    has_row_[1] = y + 1 >= 0 && y + 1 < p.in_height;
    if (has_row_[0] && has_row_[1]) {
      inner_.begin = (1 + p.pad_left) / 2;
      inner_.end = (p.in_width + p.pad_left) / 2;
    }
  }

  bool has_row(int i) const { return has_row_[i]; }

  // Quads [begin, end).
  HWY_INLINE void Make(std::int64_t begin, std::int64_t end) const {
    const std::int64_t inner_begin = std::clamp(inner_.begin, begin, end);
    const std::int64_t inner_end = std::clamp(inner_.end, inner_begin, end);
    for (std::int64_t i = begin; i < inner_begin; ++i) MakeAtBorder(i);
    const D d;
    const hn::Rebind<float, D> df;
    const auto positive = hn::Load(df, Reals() + kLanes),
               negative = hn::Load(df, Reals() + 2 * kLanes);
    const std::int64_t width = b_.plan.input.width, left = -b_.plan.depthwise.params.pad_left;
    for (std::int64_t i = inner_begin; i < inner_end; ++i) {
      const std::int32_t* const p = b_.sums + (left + 2 * i) * kLanes;
      const std::int32_t* const q = p + width * kLanes;
      hn::Store(
          output_.ToQuads(d, Round(p, positive, negative), Round(p + kLanes, positive, negative),
                          Round(q, positive, negative), Round(q + kLanes, positive, negative)),
          d, quads_ + i * kLanes);
    }
    for (std::int64_t i = inner_end; i < end; ++i) MakeAtBorder(i);
  }

 private:
  const float* Reals() const { return reinterpret_cast<const float*>(b_.operands); }

  template <class VF>
  HWY_INLINE V Round(const std::int32_t* sums, VF positive, VF negative) const {
    const D d;
    return output_.Round(d, hn::Load(d, sums), positive, negative, hn::Zero(d));
  }

  // What is outside of the image is the zero point.
  HWY_NOINLINE void MakeAtBorder(std::int64_t i) const {
    const D d;
    const hn::Rebind<float, D> df;
    const ConvParams& p = b_.plan.depthwise.params;
    const std::int64_t x[2] = {2 * i - p.pad_left, 2 * i + 1 - p.pad_left};
    const auto byte = static_cast<std::uint32_t>(b_.plan.depthwise.x_zero_point);
    const V zero_point = hn::Set(d, static_cast<std::int32_t>(byte * 0x01010101u));
    const auto positive = hn::Load(df, Reals() + kLanes),
               negative = hn::Load(df, Reals() + 2 * kLanes);
    std::uint32_t inside = 0;
    V v[4] = {zero_point, zero_point, zero_point, zero_point};
    for (int k = 0; k < 4; ++k) {
      const std::int64_t column = x[k % 2];
      if (!has_row_[k / 2] || column < 0 || column >= p.in_width) continue;
      inside |= 0xFFu << (8 * k);
      v[k] = Round(b_.sums + (k / 2 * p.in_width + column) * kLanes, positive, negative);
    }
    const V mask = hn::Set(d, static_cast<std::int32_t>(inside));
    hn::Store(hn::Or(hn::And(mask, output_.ToQuads(d, v[0], v[1], v[2], v[3])),
                     hn::AndNot(mask, zero_point)),
              d, quads_ + i * kLanes);
  }

  const ExpandBlock& b_;
  std::int32_t* quads_;
  QuantizedOutput<kForm> output_;
  bool has_row_[2];
  Range inner_ = {0, 0};  // quads all inside of the image
};

// Row `row` of the grid.
template <bool kVnni, QuantizedForm kForm>
HWY_NOINLINE void MakeQuads(const ExpandBlock& b, std::int64_t row, std::int32_t* quads) {
  const ConvParams& p = b.plan.depthwise.params;
  const QuadRow<kForm> quad_row(b, row, quads);
  for (int i = 0; i < 2; ++i) {
    if (!quad_row.has_row(i)) continue;
    const std::int64_t y = 2 * row + i - p.pad_top;
    SumPixels<kVnni>(b, b.step.in + y * b.plan.input.row_stride, p.in_width,
                     b.sums + i * p.in_width * FloatLanesOf());
  }
  quad_row.Make(0, b.quads_in_row);
}

#if HWY_TARGET == HWY_AVX3

// Adds to tile kSum the products of 16 pixels; the first segment's weights are in tile 7.
template <int kSum>
HWY_INLINE void SumTile(const ExpandBlock& b, const std::uint8_t* in) {
  constexpr int kPixels = kSum + 4;
  const std::int64_t stride = b.plan.input.pixel_stride;
  LoadTile<kSum>(b.operands, 0);  // bias
  LoadTile<kPixels>(in, stride);
  MultiplyTiles<kSum, kPixels, 7>();
  for (std::int64_t s = 1; s < b.plan.weight_rows / 16; ++s) {
    LoadTile<6>(b.weights + s * 1024, 64);
    LoadTile<kPixels>(in + s * 64, stride);
    MultiplyTiles<kSum, kPixels, 6>();
  }
}

// Row `row` of the grid. Sums are those of tiles of 16 pixels; while they are on their way, the
// quads of the tiles before are made.
template <QuantizedForm kForm>
HWY_NOINLINE void MakeQuadsByTiles(const ExpandBlock& b, std::int64_t row, std::int32_t* quads) {
  const ConvParams& p = b.plan.depthwise.params;
  const ChannelsLastLayout& input = b.plan.input;
  const QuadRow<kForm> quad_row(b, row, quads);
  const std::int64_t y = 2 * row - p.pad_top;
  const std::uint8_t* const in = b.step.in + y * input.row_stride;
  std::int32_t* const sums[2] = {b.sums, b.sums + p.in_width * 16};
  // The last pixel that a tile may begin at: a tile may reach beyond its pixels, where weights are
  // zero, but not beyond the image.
  const std::int64_t readable =
      input.image_stride - (quad_row.has_row(1) ? y + 1 : y) * input.row_stride;
  const std::int64_t pixel_bytes = b.plan.weight_rows * 4 - 64 + ExpandTileBytes(b.plan);
  const std::int64_t last = (readable - pixel_bytes) / input.pixel_stride - 15;
  const std::int64_t end = std::min(p.in_width, last + 16) / 16 * 16;
  LoadTile<7>(b.weights, 64);
  std::int64_t x = 0, quads_done = 0;
  for (; x + 16 <= end; x += 16) {
    if (quad_row.has_row(0)) SumTile<0>(b, in + x * input.pixel_stride);
    if (quad_row.has_row(1)) SumTile<1>(b, in + input.row_stride + x * input.pixel_stride);
    const std::int64_t ready = std::min((x + p.pad_left) / 2, b.quads_in_row);
    quad_row.Make(quads_done, ready);
    quads_done = ready;
    if (quad_row.has_row(0)) StoreTile<0>(sums[0] + x * 16, 64);
    if (quad_row.has_row(1)) StoreTile<1>(sums[1] + x * 16, 64);
  }
  for (int i = 0; i < 2; ++i) {
    if (!quad_row.has_row(i)) continue;
    SumPixels<true>(b, in + i * input.row_stride + x * input.pixel_stride, p.in_width - x,
                    sums[i] + x * 16);
  }
  quad_row.Make(quads_done, b.quads_in_row);
}

#endif

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

template <bool kVnni, bool kTiles>
auto ChooseMakeQuads(const QuantizedEpilogue& epilogue) {
  void (*make_quads)(const ExpandBlock&, std::int64_t, std::int32_t*) = nullptr;
  WithForm(epilogue, [&](auto form) {
    constexpr QuantizedForm kForm = decltype(form)::value;
#if HWY_TARGET == HWY_AVX3
    if constexpr (kTiles) {
      make_quads = MakeQuadsByTiles<kForm>;
      return;
    }
#endif
    make_quads = MakeQuads<kVnni, kForm>;
  });
  return make_quads;
}

template <bool kVnni, bool kTiles>
void RunExpandStep(const QuantizedExpandPlan& plan, const QuantizedExpandStep& step) {
  constexpr std::int64_t kLanes = FloatLanesOf(), kBytes = 4 * kLanes;
  const QuantizedDepthwisePlan& depthwise = plan.depthwise;
  const ConvParams& p = depthwise.params;
  const DepthwiseSumRow sum_row = ChooseSumRow<kVnni>(depthwise);
  const auto make_quads = ChooseMakeQuads<kVnni, kTiles>(plan.epilogue);
  const std::int64_t quads_in_row = plan.Quads();
  auto* const sums = reinterpret_cast<std::int32_t*>(step.scratch);
  std::int32_t* const depthwise_sums = sums + 2 * p.in_width * kLanes;
  const std::int64_t tiles = (p.out_width + kDepthwiseTile - 1) / kDepthwiseTile;
  auto* const quads =
      reinterpret_cast<std::uint8_t*>(depthwise_sums + tiles * kDepthwiseTile * kLanes);
  const std::int64_t slot_bytes = quads_in_row * kBytes;

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
        .depthwise_sums = depthwise_sums};
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
        make_quads(b, next,
                   reinterpret_cast<std::int32_t*>(b.quads + next % depthwise.rows * slot_bytes));
      }
      const std::int64_t phase = y * p.stride_h % 2;
      windows.weights = b.depthwise_weights + phase * depthwise.PhaseWeightBytes();
      windows.first_slot = first % depthwise.rows;
      sum_row(windows);
      WithForm(depthwise.epilogue, [&](auto form) { FinishVectors<decltype(form)::value>(b, y); });
    }
  }
}

#endif  // HWY_TARGET

void RunExpandStepOfTarget(const QuantizedExpandPlan& plan, const QuantizedExpandStep& step) {
#if HWY_TARGET == HWY_SCALAR  // IsQuantizedExpand says so
  static_cast<void>(plan);
  static_cast<void>(step);
#else
#if HWY_TARGET == HWY_AVX3
  if (HasAmx()) {
    BeginAmx(ExpandTileBytes(plan));
    RunExpandStep<true, true>(plan, step);
    return EndAmx();
  }
#endif
  if constexpr (kTargetHasVnni) {
    if (HasVnni()) return RunExpandStep<true, false>(plan, step);
  }
  RunExpandStep<false, false>(plan, step);
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
