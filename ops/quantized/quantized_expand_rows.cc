// The vector code of quantized_expand.h.
#include <algorithm>

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
#include "ops/quantized/quantized_expand_quads-inl.h"
#include "ops/quantized/quantized_expand_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Row `row` of the grid.
template <bool kVnni, QuantizedForm kForm>
HWY_NOINLINE void MakeQuads(const ExpandBlock& b, ExpandTiles&, std::int64_t row,
                            std::int32_t* quads) {
  DotQuads<kVnni, kForm>(b, row, quads).Make(0, b.quads_in_row);
}

// Output row y.
template <bool kVnni, int kRows, int kCols, int kPhases, QuantizedForm kForm>
HWY_NOINLINE void FinishRow(const ExpandBlock& b, const QuadWindows& windows, std::int64_t y) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kLanes = FloatLanesOf();
  const QuantizedDepthwisePlan& plan = b.plan.depthwise;
  const QuantizedOutput<kForm> output(plan.epilogue);
  const auto* reals = reinterpret_cast<const float*>(b.depthwise_operands);
  const auto positive = hn::Load(df, reals + kLanes), negative = hn::Load(df, reals + 2 * kLanes);
  const std::int64_t stride = plan.output.pixel_stride, width = plan.output.width;
  const std::int64_t at = (y - b.step.rows.begin) * plan.output.row_stride + b.channel;
  std::uint8_t* const out = b.step.out + at;
  const std::uint8_t* const addend =
      kForm == QuantizedForm::kGeneral && b.step.addend != nullptr ? b.step.addend + at : nullptr;
  const auto round = [&](std::int64_t x, V sum) HWY_ATTR {
    const auto a = addend == nullptr ? hn::Zero(d) : LoadBytes(d, addend + x * stride);
    return output.Round(d, sum, positive, negative, a);
  };
  SumTiles<kVnni, kRows, kCols, kPhases>(
      windows, [&](std::int64_t tile, std::int64_t, const auto& sum) HWY_ATTR {
        const auto of = [&](int i) HWY_ATTR { return sum[i / kPhases][i % kPhases]; };
        const std::int64_t x = tile * kDepthwiseTile;
        std::uint8_t* const to = out + x * stride;
        if (x + kDepthwiseTile <= width) {
          output.StoreFour(d, round(x, of(0)), round(x + 1, of(1)), round(x + 2, of(2)),
                           round(x + 3, of(3)), to, stride);
          return;
        }
        output.Store(d, round(x, of(0)), to);
        if (x + 1 < width) output.Store(d, round(x + 1, of(1)), to + stride);
        if (x + 2 < width) output.Store(d, round(x + 2, of(2)), to + 2 * stride);
      });
}

template <bool kVnni>
auto ChooseFinishRow(const QuantizedDepthwisePlan& plan) {
  using FinishRowFn = void (*)(const ExpandBlock&, const QuadWindows&, std::int64_t);
  return WithWindow(plan, [&](auto rows, auto cols, auto phases) {
    return WithForm(plan.epilogue, [&](auto form) -> FinishRowFn {
      return FinishRow<kVnni, decltype(rows)::value, decltype(cols)::value, decltype(phases)::value,
                       decltype(form)::value>;
    });
  });
}

template <bool kVnni, bool kTiles>
auto ChooseMakeQuads(const QuantizedEpilogue& epilogue) {
  void (*make_quads)(const ExpandBlock&, ExpandTiles&, std::int64_t, std::int32_t*) = nullptr;
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
  const auto finish_row = ChooseFinishRow<kVnni>(depthwise);
  const auto make_quads = ChooseMakeQuads<kVnni, kTiles>(plan.epilogue);
  const std::int64_t quads_in_row = plan.Quads();
  auto* const sums = reinterpret_cast<std::int32_t*>(step.scratch);
  auto* const quads = reinterpret_cast<std::uint8_t*>(sums + 2 * kTilesKept * kTileSums);
  const std::int64_t tiles = (p.out_width + kDepthwiseTile - 1) / kDepthwiseTile;
  const std::int64_t slot_bytes = plan.SlotQuads() * kBytes;

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
        .sums = sums};
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
                           .sums = nullptr};
    const auto first_row = [&](std::int64_t y) { return y * p.stride_h / 2; };
    // Row of the grid that is not there yet: what the step before needed is.
    std::int64_t next = first_row(step.rows.begin);
    if (!step.first) next = std::max(next, first_row(step.rows.begin - 1) + depthwise.rows);
    ExpandTiles expand_tiles = {.row = next,
                                .end_row = first_row(step.rows.end - 1) + depthwise.rows};
    for (std::int64_t y = step.rows.begin; y < step.rows.end; ++y) {
      const std::int64_t first = first_row(y);
      for (next = std::max(next, first); next < first + depthwise.rows; ++next) {
        make_quads(b, expand_tiles, next,
                   reinterpret_cast<std::int32_t*>(b.quads + next % depthwise.rows * slot_bytes));
      }
      const std::int64_t phase = y * p.stride_h % 2;
      windows.weights = b.depthwise_weights + phase * depthwise.PhaseWeightBytes();
      windows.first_slot = first % depthwise.rows;
      finish_row(b, windows, y);
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
