// Convolution as dot products: a vector holds the channels of one input pixel, as they lie in the
// blocked tensor, and each output is the sum over the lanes of one accumulator. It wastes nothing
// on the few output channels of a last layer, and copies nothing. Included once per target.

#if defined(TESSERA_OPS_DOT_CONV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_DOT_CONV_INL_H_
#undef TESSERA_OPS_DOT_CONV_INL_H_
#else
#define TESSERA_OPS_DOT_CONV_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/dot_conv.h"
#include "ops/epilogue-inl.h"
#include "ops/reorder-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Accumulators for three channels, their weights and one input fit into the registers.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int kDotPixels = 8;
#else
inline constexpr int kDotPixels = 4;
#endif
// On AVX-512, a masked load costs no more than another, and keeps compilers from loading an input
// anew for each of its products.
inline constexpr bool kMasksAreFree = HWY_TARGET <= HWY_AVX3;

// Strides are in floats.
struct DotTile {
  const float* in;  // the first pixel's first block at the first tap
  std::size_t pixel_stride, tap_col_stride, tap_row_stride, block_stride;
  std::size_t blocks, tap_rows, tap_cols;
  std::size_t last_channels;  // of the last block
  const float* weights;       // of the first tap
  std::size_t weight_row_stride, weight_block_stride;
  const float* bias;  // [kChannels]
  float* out;         // pixel p of channel c goes to out[c * out_stride + p]
  std::size_t out_stride;
};

// Adds the products of one block. Channels beyond the mask may hold anything.
template <bool kMasked, int kPixels, int kChannels, class D, class V = hn::Vec<D>>
HWY_INLINE void AddBlock(D d, const DotTile& t, std::size_t block, hn::Mask<D> mask,
                         V (&sums)[kChannels][kPixels]) {
  // The row that the output row below takes in addition comes from far away.
  const float* below = t.in + block * t.block_stride + t.tap_rows * t.tap_row_stride;
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) hwy::Prefetch(below + p * t.pixel_stride);
  for (std::size_t row = 0; row < t.tap_rows; ++row) {
    const float* in = t.in + block * t.block_stride + row * t.tap_row_stride;
    const float* w = t.weights + block * t.weight_block_stride + row * t.weight_row_stride;
    for (std::size_t col = 0; col < t.tap_cols; ++col) {
      V weights[kChannels];
#pragma GCC unroll 8
      for (int c = 0; c < kChannels; ++c) weights[c] = hn::Load(d, w + c * hn::MaxLanes(d));
      w += kChannels * hn::MaxLanes(d);
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) {
        const float* x = in + p * t.pixel_stride;
        const V input = kMasked ? hn::MaskedLoad(mask, d, x) : hn::Load(d, x);
#pragma GCC unroll 8
        for (int c = 0; c < kChannels; ++c) sums[c][p] = hn::MulAdd(input, weights[c], sums[c][p]);
      }
      in += t.tap_col_stride;
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// The sum of the 128-bit groups of `v`.
template <class D>
HWY_INLINE auto SumOfGroups(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return SumOfGroups(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif

// out[p] = bias + the sum over the lanes of sums[p].
template <int kPixels, class D, class V = hn::Vec<D>>
HWY_INLINE void StoreSums(D d, V (&sums)[kPixels], float bias, float* out) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (kPixels % 4 == 0) {
    const hn::Simd<float, 4, 0> d4;
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; p += 4) {
      Transpose4x4InGroups(d, sums[p], sums[p + 1], sums[p + 2], sums[p + 3]);
      const V sum = hn::Add(hn::Add(sums[p], sums[p + 1]), hn::Add(sums[p + 2], sums[p + 3]));
      hn::StoreU(hn::Add(SumOfGroups(d, sum), hn::Set(d4, bias)), d4, out + p);
    }
    return;
  }
#endif
  for (int p = 0; p < kPixels; ++p) out[p] = bias + hn::GetLane(hn::SumOfLanes(d, sums[p]));
}

template <int kPixels, int kChannels>
void RunDotTile(const DotTile& t) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  V sums[kChannels][kPixels];
#pragma GCC unroll 8
  for (int c = 0; c < kChannels; ++c) {
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) sums[c][p] = hn::Zero(d);
  }
  for (std::size_t b = 0; b < t.blocks; ++b) {
    const std::size_t channels = b + 1 < t.blocks ? hn::MaxLanes(d) : t.last_channels;
    if (!kMasksAreFree && channels == hn::MaxLanes(d)) {
      AddBlock<false>(d, t, b, hn::FirstN(d, channels), sums);
    } else {
      AddBlock<true>(d, t, b, hn::FirstN(d, channels), sums);
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < kChannels; ++c) StoreSums(d, sums[c], t.bias[c], t.out + c * t.out_stride);
}

using DotTileFn = void (*)(const DotTile&);

template <int kPixels>
DotTileFn FindDotTile(int channels) {
  static_assert(kDotChannels == 3);
  switch (channels) {
    case 1:
      return &RunDotTile<kPixels, 1>;
    case 2:
      return &RunDotTile<kPixels, 2>;
    default:
      return &RunDotTile<kPixels, 3>;
  }
}

// One tile of one image.
class DotTask {
 public:
  DotTask(const DotPlan& plan, const RunContext& run, std::int64_t task, int thread)
      : plan_(plan), p_(plan.params), run_(run), sums_(run.Scratch<float>(thread)) {
    const ConvTiling& t = plan.tiling;
    x0_ = task % t.col_tiles * t.cols;
    task /= t.col_tiles;
    y0_ = task % t.row_tiles * t.rows;
    image_ = task / t.row_tiles;
    rows_ = std::min(t.rows, p_.out_height - y0_);
    cols_ = std::min(t.cols, p_.out_width - x0_);
  }

  void Run() {
    if (cols_ <= 0) return;
    for (std::int64_t y = y0_; y < y0_ + rows_; ++y) {
      for (const DotGroup& group : plan_.groups) RunRow(group, y);
    }
  }

 private:
  static constexpr hn::ScalableTag<float> kTag{};
  static constexpr std::int64_t kLanes = hn::MaxLanes(kTag);

  void RunRow(const DotGroup& group, std::int64_t y) {
    const BlockedLayout& in = plan_.input;
    const Range rows =
        ValidTaps(y, p_.stride_h, p_.pad_top, p_.dilation_h, p_.kernel_h, p_.in_height);
    const std::int64_t in_y = y * p_.stride_h - p_.pad_top + rows.begin * p_.dilation_h;
    DotTile tile;
    tile.pixel_stride = p_.stride_w * kLanes;
    tile.tap_col_stride = p_.dilation_w * kLanes;
    tile.tap_row_stride = p_.dilation_h * in.row_stride;
    tile.block_stride = in.plane_stride;
    tile.blocks = in.blocks;
    tile.tap_rows = rows.size();
    tile.last_channels = in.channels - (in.blocks - 1) * kLanes;
    tile.weight_row_stride = p_.kernel_w * group.channels * kLanes;
    tile.weight_block_stride = p_.kernel_h * tile.weight_row_stride;
    tile.bias = plan_.operands.Bias() + group.first;
    tile.out_stride = plan_.sums_stride;
    const float* row = run_.inputs[0].data<float>() + image_ * in.image_stride;
    if (rows.size() > 0) row += in_y * in.row_stride;
    const float* weights =
        plan_.weights->As<float>() + group.weights + rows.begin * tile.weight_row_stride;

    const auto run = [&](DotTileFn fn, std::int64_t x, const Range& cols) {
      const std::int64_t in_x = x * p_.stride_w - p_.pad_left + cols.begin * p_.dilation_w;
      tile.tap_cols = cols.size();
      tile.in = cols.size() > 0 ? row + in_x * kLanes : row;
      tile.weights = weights + cols.begin * group.channels * kLanes;
      tile.out = sums_ + (x - x0_);
      fn(tile);
    };
    const auto taps = [&](std::int64_t x) {
      return ValidTaps(x, p_.stride_w, p_.pad_left, p_.dilation_w, p_.kernel_w, p_.in_width);
    };
    // Pixels whose taps are all inside of the image go together, some of them twice rather than one
    // by one.
    const std::int64_t end = x0_ + cols_;
    std::int64_t inner = x0_, inner_end = end;
    while (inner < end && taps(inner).size() < p_.kernel_w) ++inner;
    while (inner_end > inner && taps(inner_end - 1).size() < p_.kernel_w) --inner_end;
    if (inner_end - inner < kDotPixels) inner_end = inner;
    for (std::int64_t x = inner; x < inner_end; x += kDotPixels) {
      run(FindDotTile<kDotPixels>(group.channels), std::min(x, inner_end - kDotPixels),
          {0, p_.kernel_w});
    }
    for (std::int64_t x = x0_; x < end; ++x) {
      if (x == inner) x = inner_end;
      if (x < end) run(FindDotTile<1>(group.channels), x, taps(x));
    }

    const bool add = p_.epilogue.combine != Combine::kNone;
    for (int c = 0; c < group.channels; ++c) {
      const std::int64_t channel = group.first + c;
      const std::int64_t offset =
          ((image_ * p_.out_channels + channel) * p_.out_height + y) * p_.out_width + x0_;
      FinishRow(kTag, p_.epilogue, hn::Set(kTag, plan_.operands.Slope()[channel]),
                sums_ + c * plan_.sums_stride,
                add ? run_.inputs[kConvAddend].data<float>() + offset : nullptr,
                run_.outputs[0].data<float>() + offset, cols_);
    }
  }

  const DotPlan& plan_;
  const ConvParams& p_;
  const RunContext& run_;
  float* sums_;
  std::int64_t x0_, y0_, image_, rows_, cols_;
};

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
