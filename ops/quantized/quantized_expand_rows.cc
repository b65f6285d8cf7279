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
  std::int32_t* sums;  // [kTilesKept][2 rows][16 pixels][16]
};

// The tiles of a block: how many were begun, stored and made quads of, and where the next one is.
struct ExpandTiles {
  std::int64_t row, end_row;  // of the grid
  std::int64_t x = 0;
  std::int64_t begun = 0, stored = 0, used = 0;
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

// Row `row` of the grid.
template <bool kVnni, QuantizedForm kForm>
HWY_NOINLINE void MakeQuads(const ExpandBlock& b, ExpandTiles&, std::int64_t row,
                            std::int32_t* quads) {
  DotQuads<kVnni, kForm>(b, row, quads).Make(0, b.quads_in_row);
}

#if HWY_TARGET == HWY_AVX3

// Tile kSum becomes the sums of 16 pixels; the first segment's weights are in tile 7.
template <int kSum>
HWY_INLINE void SumTile(const ExpandBlock& b, const std::uint8_t* in) {
  constexpr int kPixels = kSum % 2 + 4;
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

// Whether the sums of row `row` of the grid are computed by tiles, of 16 pixels of both of its
// rows. Those of the last tile may reach beyond the row, but not beyond the image. Their weights
// are zero where they reach beyond a pixel.
inline bool IsTiled(const ExpandBlock& b, std::int64_t row) {
  const ChannelsLastLayout& input = b.plan.input;
  const std::int64_t y = 2 * row - b.plan.depthwise.params.pad_top;
  const std::int64_t pixels = (input.width + 15) / 16 * 16;
  const std::int64_t pixel_bytes = b.plan.weight_rows * 4 - 64 + ExpandTileBytes(b.plan);
  return y >= 0 && y + 1 < input.height &&
         (y + 1) * input.row_stride + (pixels - 1) * input.pixel_stride + pixel_bytes <=
             input.image_stride;
}

// While the sums of one tile are computed, those of the one before are stored.
HWY_INLINE void NextTile(const ExpandBlock& b, ExpandTiles& tiles) {
  const auto place = [&](int i) {
    return b.sums + (tiles.stored % kTilesKept * 2 + i) * kTileSums;
  };
  if (tiles.stored < tiles.begun) {
    if (tiles.stored % 2 == 0) {
      StoreTile<0>(place(0), 64);
      StoreTile<1>(place(1), 64);
    } else {
      StoreTile<2>(place(0), 64);
      StoreTile<3>(place(1), 64);
    }
    ++tiles.stored;
  }
  if (tiles.x == 0) {
    while (tiles.row < tiles.end_row && !IsTiled(b, tiles.row)) ++tiles.row;
  }
  if (tiles.row == tiles.end_row) return;
  const ChannelsLastLayout& input = b.plan.input;
  const std::uint8_t* const in =
      b.step.in + (2 * tiles.row - b.plan.depthwise.params.pad_top) * input.row_stride +
      tiles.x * input.pixel_stride;
  if (tiles.begun % 2 == 0) {
    SumTile<0>(b, in);
    SumTile<1>(b, in + input.row_stride);
  } else {
    SumTile<2>(b, in);
    SumTile<3>(b, in + input.row_stride);
  }
  ++tiles.begun;
  tiles.x += 16;
  if (tiles.x >= input.width) {
    tiles.x = 0;
    ++tiles.row;
  }
}

// From the sums of a tile the quads of pixels [x - kBefore, x - kBefore + 16), x being the tile's
// first pixel; where x is 0, but the one with the pixel before.
template <QuantizedForm kForm, int kBefore>
HWY_INLINE void MakeTileQuads(const ExpandBlock& b, std::int64_t tile, std::int64_t x,
                              std::int32_t* quads) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  constexpr std::int64_t kLanes = FloatLanesOf();
  const QuantizedOutput<kForm> output(b.plan.epilogue);
  const auto* const reals = reinterpret_cast<const float*>(b.operands);
  const auto positive = hn::Load(df, reals + kLanes), negative = hn::Load(df, reals + 2 * kLanes);
  const auto round = [&](const std::int32_t* sums) HWY_ATTR {
    return output.Round(d, hn::Load(d, sums), positive, negative, hn::Zero(d));
  };
  // The pixel before is the last one of the tile before.
  const std::int32_t* const p = b.sums + tile % kTilesKept * 2 * kTileSums - kBefore * kLanes;
  const std::int32_t* const q = p + kTileSums;
  const std::int32_t* const p0 =
      kBefore == 0 ? p
                   : b.sums + (tile + kTilesKept - 1) % kTilesKept * 2 * kTileSums + 15 * kLanes;
  const std::int32_t* const q0 = p0 + kTileSums;
  std::int32_t* const to = quads + (x - kBefore + b.plan.depthwise.params.pad_left) / 2 * kLanes;
  if (kBefore == 0 || x > 0) {
    hn::Store(output.ToQuads(d, round(p0), round(p + kLanes), round(q0), round(q + kLanes)), d, to);
  }
#pragma GCC unroll 7
  for (int i = 1; i < 8; ++i) {
    hn::Store(output.ToQuads(d, round(p + 2 * i * kLanes), round(p + (2 * i + 1) * kLanes),
                             round(q + 2 * i * kLanes), round(q + (2 * i + 1) * kLanes)),
              d, to + i * kLanes);
  }
}

// Row `row` of the grid. Tiles are two ahead of the quads, and go on in the next row: so they are
// computed while vectors are.
template <QuantizedForm kForm>
HWY_NOINLINE void MakeQuadsByTiles(const ExpandBlock& b, ExpandTiles& tiles, std::int64_t row,
                                   std::int32_t* quads) {
  const DotQuads<true, kForm> others(b, row, quads);
  if (!IsTiled(b, row)) return others.Make(0, b.quads_in_row);
  if (tiles.begun == 0) {
    LoadTile<7>(b.weights, 64);
    NextTile(b, tiles);
    NextTile(b, tiles);
  }
  const std::int64_t width = b.plan.input.width, left = b.plan.depthwise.params.pad_left;
  for (std::int64_t x = 0; x < width; x += 16, ++tiles.used) {
    NextTile(b, tiles);
    if (left % 2 == 0) {
      MakeTileQuads<kForm, 0>(b, tiles.used, x, quads);
    } else {
      MakeTileQuads<kForm, 1>(b, tiles.used, x, quads);
    }
  }
  others.Make(0, (1 + left) / 2);
  others.Make((width + left) / 2, b.quads_in_row);
}

#endif

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
