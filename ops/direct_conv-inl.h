// Direct convolution on blocked channels. Included once per target.
//
// One multiply-add of the micro-kernel takes one input value, broadcast, and one vector of
// weights, the same input channel's for `lanes` output channels. A micro-tile of kPixels pixels of
// a row times kVectors blocks of output channels stays in registers while the loop passes over all
// taps and input channels: each broadcast serves kVectors products, each weight vector kPixels.
//
// Trackers have layers of 24, 40 or 72 channels, whose last block of 16 is half empty. Cores that
// compute 512 bits in two steps (Zen 4) are spared the second one there.

#if defined(TESSERA_OPS_DIRECT_CONV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_DIRECT_CONV_INL_H_
#undef TESSERA_OPS_DIRECT_CONV_INL_H_
#else
#define TESSERA_OPS_DIRECT_CONV_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/direct_conv.h"
#include "ops/epilogue-inl.h"
#include "ops/reorder-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Registers: accumulators, the weight vectors, one broadcast.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON  // 32 (better targets have lower numbers)
inline constexpr std::array<int, 3> kMaxPixels = {28, 14, 9};
#else
inline constexpr std::array<int, 3> kMaxPixels = {12, 6, 4};
#endif
// Weights that are used together; they share the L1 cache with the input.
inline constexpr std::int64_t kWeightFloats = 24 * 1024 / sizeof(float);

struct MicroTile {
  const float* in;             // the first pixel's first channel at tap (0, 0)
  const std::ptrdiff_t* taps;  // from there to each tap
  std::size_t num_taps;
  std::size_t channels;
  std::size_t block_stride;
  const float* weights;
  const float* bias;  // [kVectors * lanes], or null to start from what `out` holds
  float* out;         // pixel p of vector v goes to out + v * out_stride + p * lanes
  std::size_t out_stride;
  bool prefetch;             // the pixels that follow, for the next micro-tile
  const Epilogue* epilogue;  // null: the sums are stored as they are
  const float* slope;        // [kVectors * lanes]
  const float* addend;       // laid out like `out`, or null
};

// Epilogues of so few instructions that they are done while the sums are in registers; those with
// an addend only where no sums are stored before, for the output may lie in its memory.
inline bool FinishesInRegisters(const Epilogue& epilogue, bool one_tap) {
  const bool plain = epilogue.combine == Combine::kNone;
  if (!plain && !(epilogue.combine == Combine::kAdd && one_tap)) return false;
  switch (epilogue.activation) {
    case Activation::kNone:
    case Activation::kLeakyRelu:
    case Activation::kPRelu:
      return true;
    case Activation::kRelu:
    case Activation::kClip:
    case Activation::kHardSwish:
      return plain;
    default:
      return false;
  }
}

template <int kPixels, int kVectors, class D, class V, class Finish>
HWY_INLINE void StoreMicroTile(D d, const MicroTile& t, const V (&sums)[kPixels][kVectors],
                               const Finish& finish) {
#pragma GCC unroll 32
  for (int v = 0; v < kVectors; ++v) {
    const V slope = hn::Load(d, t.slope + v * hn::MaxLanes(d));
#pragma GCC unroll 32
    for (int p = 0; p < kPixels; ++p) {
      const std::size_t i = v * t.out_stride + p * hn::MaxLanes(d);
      const float* addend = t.addend == nullptr ? nullptr : t.addend + i;
      hn::Store(finish(d, sums[p][v], slope, addend), d, t.out + i);
    }
  }
}

#if HWY_TARGET == HWY_SCALAR  // has no half
template <class D, class V>
HWY_INLINE V ZeroExtend(D, V half) {
  return half;
}
#else
template <class D, class V>
HWY_INLINE hn::Vec<D> ZeroExtend(D d, V half) {
  return hn::ZeroExtendVector(d, half);
}
#endif

// The input is in blocks of kBlock channels: those of the tensor, or planes (1). kHalf: only the
// lower half of the last vector has channels; the upper one becomes what a sum of 0 does.
template <int kPixels, int kVectors, std::size_t kBlock, bool kHalf>
void RunMicroTile(const MicroTile& t) {
  const hn::ScalableTag<float> d;
  const hn::Half<decltype(d)> half;
  using V = hn::Vec<decltype(d)>;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  constexpr int kWhole = kHalf ? kVectors - 1 : kVectors;
  static_assert(kWhole > 0);
  float* out = t.out;
  const std::size_t out_stride = t.out_stride;
  V sums[kPixels][kVectors];
  [[maybe_unused]] hn::Vec<decltype(half)> last[kPixels];
#pragma GCC unroll 32
  for (int v = 0; v < kVectors; ++v) {
    // A step of 0 takes the bias for every pixel.
    const float* start = t.bias != nullptr ? t.bias + v * kLanes : out + v * out_stride;
    const std::size_t step = t.bias != nullptr ? 0 : kLanes;
#pragma GCC unroll 32
    for (int p = 0; p < kPixels; ++p) {
      if constexpr (kHalf) {
        if (v == kWhole) {
          last[p] = hn::Load(half, start + p * step);
          continue;
        }
      }
      sums[p][v] = hn::Load(d, start + p * step);
    }
  }
  const float* w = t.weights;
  for (std::size_t tap = 0; tap < t.num_taps; ++tap) {
    const float* block = t.in + t.taps[tap];
    // Only real channels: those that pad a block may hold anything.
    for (std::size_t left = t.channels; left > 0; block += t.block_stride) {
      const std::size_t n = std::min(left, kBlock);
      left -= n;
      if (t.prefetch) {
#pragma GCC unroll 32
        for (int p = 0; p < kPixels; ++p) hwy::Prefetch(block + (kPixels + p) * kBlock);
      }
      for (const float* x = block; x != block + n; ++x) {
        V weights[kWhole];
#pragma GCC unroll 32
        for (int v = 0; v < kWhole; ++v) weights[v] = hn::Load(d, w + v * kLanes);
        [[maybe_unused]] hn::Vec<decltype(half)> last_weights;
        if constexpr (kHalf) last_weights = hn::Load(half, w + kWhole * kLanes);
        if constexpr (kVectors > 1) {  // one vector has no load to spare
#pragma GCC unroll 32
          for (int v = 0; v < kVectors; ++v) hwy::Prefetch(w + (8 * kVectors + v) * kLanes);
        }
        w += kVectors * kLanes;
#pragma GCC unroll 32
        for (int p = 0; p < kPixels; ++p) {
          const V input = hn::Set(d, x[p * kBlock]);
#pragma GCC unroll 32
          for (int v = 0; v < kWhole; ++v) sums[p][v] = hn::MulAdd(input, weights[v], sums[p][v]);
          if constexpr (kHalf)
            last[p] = hn::MulAdd(hn::LowerHalf(half, input), last_weights, last[p]);
        }
      }
    }
  }
  if constexpr (kHalf) {
#pragma GCC unroll 32
    for (int p = 0; p < kPixels; ++p) sums[p][kWhole] = ZeroExtend(d, last[p]);
  }
  if (t.addend != nullptr) {
    StoreMicroTile(d, t, sums, FixedFinisher<Activation::kPRelu, Combine::kAdd>(*t.epilogue));
    return;
  }
  switch (t.epilogue == nullptr ? Activation::kNone : t.epilogue->activation) {
    case Activation::kNone:
      StoreMicroTile(d, t, sums, [](auto, V x, V, const float*) HWY_ATTR { return x; });
      break;
    case Activation::kRelu:
      StoreMicroTile(d, t, sums, FixedFinisher<Activation::kRelu, Combine::kNone>(*t.epilogue));
      break;
    case Activation::kClip:
      StoreMicroTile(d, t, sums, FixedFinisher<Activation::kClip, Combine::kNone>(*t.epilogue));
      break;
    case Activation::kHardSwish:
      StoreMicroTile(d, t, sums,
                     FixedFinisher<Activation::kHardSwish, Combine::kNone>(*t.epilogue));
      break;
    default:
      StoreMicroTile(d, t, sums, FixedFinisher<Activation::kPRelu, Combine::kNone>(*t.epilogue));
  }
}

using MicroTileFn = void (*)(const MicroTile&);

template <std::size_t kBlock, int kVectors, bool kHalf, int... kPixels>
MicroTileFn MicroTileOf(int pixels, std::integer_sequence<int, kPixels...>) {
  static constexpr MicroTileFn kTable[] = {&RunMicroTile<kPixels + 1, kVectors, kBlock, kHalf>...};
  return kTable[pixels - 1];
}

template <std::size_t kBlock, int kVectors, bool kHalf = false>
MicroTileFn MicroTileOf(int pixels) {
  using Pixels = std::make_integer_sequence<int, kMaxPixels[kVectors - 1]>;
  return MicroTileOf<kBlock, kVectors, kHalf>(pixels, Pixels());
}

template <std::size_t kBlock>
MicroTileFn MicroTileOf(int pixels, int vectors, bool half) {
  if constexpr (hn::MaxLanes(hn::ScalableTag<float>()) == 16) {
    if (half)
      return vectors == 2 ? MicroTileOf<kBlock, 2, true>(pixels)
                          : MicroTileOf<kBlock, 3, true>(pixels);
  }
  switch (vectors) {
    case 1:
      return MicroTileOf<kBlock, 1>(pixels);
    case 2:
      return MicroTileOf<kBlock, 2>(pixels);
    default:
      return MicroTileOf<kBlock, 3>(pixels);
  }
}

inline MicroTileFn FindMicroTile(bool blocked, int pixels, const DirectGroup& group) {
  constexpr std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<float>());
  return blocked ? MicroTileOf<kLanes>(pixels, group.vectors, group.half)
                 : MicroTileOf<1>(pixels, group.vectors, group.half);
}

// One tile of one image, with some of the output groups.
class DirectTask {
 public:
  DirectTask(const DirectPlan& plan, const RunContext& run, std::int64_t task, int thread)
      : plan_(plan), p_(plan.params), run_(run), scratch_(run.Scratch<float>(thread)) {
    const ConvTiling& t = plan.tiling;
    split_ = task % plan.splits;
    task /= plan.splits;
    x0_ = task % t.col_tiles * t.cols;
    task /= t.col_tiles;
    y0_ = task % t.row_tiles * t.rows;
    image_ = task / t.row_tiles;
    finish_in_registers_ =
        plan.output_blocked && FinishesInRegisters(p_.epilogue, p_.kernel_h * p_.kernel_w == 1);
    // Not where an addend may lie.
    sum_in_output_ =
        plan.output_blocked && (finish_in_registers_ || p_.epilogue.combine == Combine::kNone);
    rows_ = std::min(t.rows, p_.out_height - y0_);
    cols_ = std::min(t.cols, p_.out_width - x0_);
  }

  void Run() {
    const auto count = static_cast<std::int64_t>(plan_.groups.size());
    const std::int64_t begin = split_ * count / plan_.splits;
    const std::int64_t end = (split_ + 1) * count / plan_.splits;
    if (begin == end || rows_ <= 0 || cols_ <= 0) return;
    if (plan_.in_place) {
      input_ = run_.inputs[0].data<float>() + image_ * plan_.input.image_stride + x0_ * kLanes;
    } else {
      const std::int64_t blocks = (plan_.group_channels + plan_.in_lanes - 1) / plan_.in_lanes;
      if (!plan_.input_given) {
        CopyInput(plan_.groups[begin].first_input_block,
                  plan_.groups[end - 1].first_input_block + blocks);
      }
      input_ = scratch_;
      input_y_ = y0_ * p_.stride_h - p_.pad_top;
    }
    for (std::int64_t g = begin; g < end; ++g) RunGroup(plan_.groups[g]);
  }

 private:
  static constexpr hn::ScalableTag<float> kTag{};
  static constexpr std::int64_t kLanes = hn::MaxLanes(kTag);

  // Copies blocks [first, last) of the tile's input; see conv_tiling.h.
  void CopyInput(std::int64_t first, std::int64_t last) {
    const std::int64_t top = y0_ * p_.stride_h - p_.pad_top;
    const std::int64_t count = plan_.tiling.phase_cols, lanes = plan_.in_lanes;
    if (!plan_.input_blocked && p_.stride_w == 2) {
      for (std::int64_t b = first; b < last; ++b) {
        for (std::int64_t r = 0; r < plan_.tiling.in_rows; ++r) {
          const std::int64_t y = top + r;
          if (y < 0 || y >= p_.in_height || !RowIsRead(p_, r, rows_)) continue;
          CopyPairs(b, y, scratch_ + b * plan_.block_stride + r * plan_.row_stride);
        }
      }
      return;
    }
    for (std::int64_t phase = 0; phase < p_.stride_w; ++phase) {
      if (!PhaseIsRead(p_, phase)) continue;
      const PhaseColumns columns = ColumnsOfPhase(p_, x0_, phase, count);
      const Range inside = columns.inside;
      for (std::int64_t r = 0; r < plan_.tiling.in_rows; ++r) {
        const std::int64_t y = top + r;
        // Taps outside of the image are left out by ValidTaps.
        if (y < 0 || y >= p_.in_height || !RowIsRead(p_, r, rows_)) continue;
        for (std::int64_t b = first; b < last; ++b) {
          float* to =
              scratch_ + b * plan_.block_stride + r * plan_.row_stride + phase * count * lanes;
          std::memset(to, 0, inside.begin * lanes * sizeof(float));
          CopyColumns(b, y, columns, to + inside.begin * lanes);
          std::memset(to + inside.end * lanes, 0, (count - inside.end) * lanes * sizeof(float));
        }
      }
    }
  }

  // Both phases of row `y` of a plane at stride 2, in one pass over it: first layers of trackers
  // would spend a fifth of their time on two.
  void CopyPairs(std::int64_t channel, std::int64_t y, float* even) {
    const std::int64_t count = plan_.tiling.phase_cols;
    float* odd = even + count;
    const float* row = run_.inputs[0].data<float>() +
                       ((image_ * p_.in_channels + channel) * p_.in_height + y) * p_.in_width;
    const std::int64_t x0 = 2 * x0_ - p_.pad_left;
    // Pairs that are inside of the image.
    const std::int64_t begin = std::clamp<std::int64_t>((1 - x0) / 2, 0, count);
    const std::int64_t end = std::clamp<std::int64_t>((p_.in_width - x0) / 2, begin, count);
    const auto copy_one = [&](std::int64_t i) {
      const std::int64_t x = x0 + 2 * i;
      even[i] = x >= 0 && x < p_.in_width ? row[x] : 0;
      odd[i] = x + 1 >= 0 && x + 1 < p_.in_width ? row[x + 1] : 0;
    };
    for (std::int64_t i = 0; i < begin; ++i) copy_one(i);
    if (begin < end) SplitPairs(kTag, row + x0 + 2 * begin, end - begin, even + begin, odd + begin);
    for (std::int64_t i = end; i < count; ++i) copy_one(i);
  }

  void CopyColumns(std::int64_t block, std::int64_t y, const PhaseColumns& columns, float* to) {
    const std::int64_t count = columns.inside.size();
    const std::int64_t x = columns.first + columns.inside.begin * p_.stride_w;
    if (!plan_.input_blocked) {
      const float* from = run_.inputs[0].data<float>() +
                          ((image_ * p_.in_channels + block) * p_.in_height + y) * p_.in_width + x;
      CopyStrided(kTag, from, p_.stride_w, count, to);
      return;
    }
    const BlockedLayout& in = plan_.input;
    const float* from = run_.inputs[0].data<float>() + image_ * in.image_stride +
                        block * in.plane_stride + y * in.row_stride + x * kLanes;
    if (p_.stride_w == 1) {
      std::memcpy(to, from, count * kLanes * sizeof(float));
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      hn::Store(hn::LoadU(kTag, from + i * p_.stride_w * kLanes), kTag, to + i * kLanes);
    }
  }

  // All micro-tiles of the tile take some taps, whose weights stay in the L1 cache, then the next.
  // Where sums pass through scratch memory, a row does so before the next.
  void RunGroup(const DirectGroup& group) {
    const std::int64_t tap_floats = plan_.group_channels * group.vectors * kLanes;
    const std::int64_t step = std::max<std::int64_t>(1, kWeightFloats / tap_floats);
    const std::int64_t num_taps = p_.kernel_h * p_.kernel_w;
    const std::int64_t band = sum_in_output_ ? rows_ : 1;
    for (std::int64_t top = y0_; top < y0_ + rows_; top += band) {
      for (std::int64_t tap = 0; tap < num_taps; tap += step) {
        for (std::int64_t y = top; y < top + band; ++y) SumRow(group, y, {tap, tap + step});
      }
      for (std::int64_t y = top; y < top + band && !finish_in_registers_; ++y) {
        for (int v = 0; v < group.vectors; ++v) FinishBlock(group, v, y);
      }
    }
  }

  // Of the first output block of the group, in the tile's row `y`.
  std::int64_t OutputOffset(const DirectGroup& group, std::int64_t y) const {
    const BlockedLayout& out = plan_.output;
    return image_ * out.image_stride + group.first_block * out.plane_stride + y * out.row_stride +
           x0_ * kLanes;
  }

  // Where pixel p of block v has its sums: at Sums() + v * SumsStride() + p * lanes.
  float* Sums(const DirectGroup& group, std::int64_t y) const {
    return sum_in_output_ ? run_.outputs[0].data<float>() + OutputOffset(group, y)
                          : scratch_ + plan_.input_floats;
  }
  std::int64_t SumsStride() const {
    return sum_in_output_ ? plan_.output.plane_stride : cols_ * kLanes;
  }

  // Adds the products of those of `chunk`'s taps that fall into the image, in row `y`; the row's
  // first taps start from the bias.
  void SumRow(const DirectGroup& group, std::int64_t y, const Range& chunk) {
    const Range rows =
        ValidTaps(y, p_.stride_h, p_.pad_top, p_.dilation_h, p_.kernel_h, p_.in_height);
    const Range taps = {rows.begin * p_.kernel_w, rows.end * p_.kernel_w};
    const std::int64_t first = std::max(chunk.begin, taps.begin);
    const std::int64_t last = std::min(chunk.end, taps.end);
    // Rows without taps are all bias.
    const bool starts = taps.size() > 0 ? first == taps.begin : chunk.begin == 0;
    const bool ends = taps.size() > 0 ? last == taps.end : starts;
    if (first >= last && !starts) return;

    MicroTile tile;
    tile.in = input_ + group.first_input_block * plan_.block_stride;
    if (first < last) {
      const std::int64_t in_y = y * p_.stride_h - p_.pad_top + rows.begin * p_.dilation_h;
      tile.in += (in_y - input_y_) * plan_.row_stride;
    }
    tile.taps = plan_.taps.data() + (first - taps.begin);
    tile.num_taps = std::max<std::int64_t>(0, last - first);
    tile.channels = plan_.group_channels;
    tile.block_stride = plan_.block_stride;
    tile.weights = plan_.weights->As<float>() + group.weights +
                   first * plan_.group_channels * group.vectors * kLanes;
    tile.bias = starts ? plan_.operands.Bias() + group.first_block * kLanes : nullptr;
    tile.out = Sums(group, y);
    tile.out_stride = SumsStride();
    tile.prefetch = plan_.in_place && taps.size() == 1;
    tile.epilogue = finish_in_registers_ && ends ? &p_.epilogue : nullptr;
    tile.slope = plan_.operands.Slope() + group.first_block * kLanes;
    tile.addend =
        finish_in_registers_ && Addend() != nullptr ? Addend() + OutputOffset(group, y) : nullptr;

    const std::int64_t most = kMaxPixels[group.vectors - 1];
    const std::int64_t parts = (cols_ + most - 1) / most;
    const std::int64_t part = cols_ / parts, wider_parts = cols_ % parts;
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t pixels = part + (i < wider_parts ? 1 : 0);
      FindMicroTile(plan_.input_blocked, static_cast<int>(pixels), group)(tile);
      tile.in += pixels * plan_.in_lanes;
      tile.out += pixels * kLanes;
      if (tile.addend != nullptr) tile.addend += pixels * kLanes;
    }
  }

  void FinishBlock(const DirectGroup& group, int v, std::int64_t y) {
    const std::int64_t block = group.first_block + v;
    const float* sums = Sums(group, y) + v * SumsStride();
    if (plan_.output_blocked) {
      FinishBlocked(block, sums, OutputOffset(group, y) + v * plan_.output.plane_stride);
    } else {
      FinishRowMajor(block, y, sums);
    }
  }

  const float* Addend() const {
    return p_.epilogue.combine == Combine::kNone ? nullptr : run_.inputs[kConvAddend].data<float>();
  }

  void FinishBlocked(std::int64_t block, const float* sums, std::int64_t offset) {
    FinishRow(kTag, p_.epilogue, hn::Load(kTag, plan_.operands.Slope() + block * kLanes), sums,
              Addend() == nullptr ? nullptr : Addend() + offset,
              run_.outputs[0].data<float>() + offset, cols_ * kLanes);
  }

  void FinishRowMajor(std::int64_t block, std::int64_t y, const float* sums) {
    float* planes = scratch_ + plan_.input_floats + plan_.sums_floats;
    const std::int64_t first = block * kLanes;
    const std::int64_t channels = std::min(kLanes, p_.out_channels - first);
    PixelsToPlanes(kTag, sums, channels, cols_, planes, cols_);
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t offset =
          ((image_ * p_.out_channels + first + c) * p_.out_height + y) * p_.out_width + x0_;
      FinishRow(kTag, p_.epilogue, hn::Set(kTag, plan_.operands.Slope()[first + c]),
                planes + c * cols_, Addend() == nullptr ? nullptr : Addend() + offset,
                run_.outputs[0].data<float>() + offset, cols_);
    }
  }

  const DirectPlan& plan_;
  const ConvParams& p_;
  const RunContext& run_;
  float* scratch_;
  std::int64_t split_, x0_, y0_, image_, rows_, cols_;
  const float* input_ = nullptr;
  bool sum_in_output_, finish_in_registers_;
  std::int64_t input_y_ = 0;  // input row that lies at input_
};

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
