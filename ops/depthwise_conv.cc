// Depthwise convolution on blocked channels: a vector holds the channels of one pixel, and each
// tap is one multiply-add of it. Nothing is copied: taps outside of the image are left out.
#include "ops/depthwise_conv.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/depthwise_conv.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

// Output pixels of a tile, whose sums are in registers at once, beside one row of weights: enough
// to hide the latency of multiply-adds. Twice as many share the loads of wide kernels' weights
// where there are 32 registers.
template <int kKernel>
inline constexpr int kDepthwisePixels =
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
    kKernel > 3 ? 16 : 8;
#else
    8;
#endif

// One row of one block.
struct DepthwiseRow {
  const ConvParams& p;
  const float* in;         // first pixel of the input row of the first tap
  std::int64_t in_stride;  // from there to the row of the next tap
  std::int64_t tap_rows;
  const float* weights;  // of the first tap
  float* out;
  const float* addend;  // or null
};

// Adds the products of the tile that begins at pixel x. kKernel and kStride: width of the kernel
// and stride of columns that are next to each other, or 0 if they are known at run time only.
// kBorder: taps may lie outside of the image.
template <int kKernel, int kStride, bool kBorder, class V>
HWY_INLINE void AddProducts(const DepthwiseRow& row, std::int64_t x,
                            V (&sums)[kDepthwisePixels<kKernel>]) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  constexpr int kPixels = kDepthwisePixels<kKernel>;
  const ConvParams& p = row.p;
  const std::int64_t first = x * p.stride_w - p.pad_left;
  const auto outside = [&](std::int64_t column) {
    return kBorder && static_cast<std::uint64_t>(column) >= static_cast<std::uint64_t>(p.in_width);
  };
  const float* in = row.in;
  const float* w = row.weights;
  for (std::int64_t kh = 0; kh < row.tap_rows; ++kh, in += row.in_stride) {
    if constexpr (kKernel != 0) {
      V weights[kKernel];
#pragma GCC unroll 16
      for (int k = 0; k < kKernel; ++k, w += kLanes) weights[k] = hn::Load(d, w);
        // Each column of the input is loaded once, for all of the sums that it is part of.
#pragma GCC unroll 64
      for (int j = 0; j < (kPixels - 1) * kStride + kKernel; ++j) {
        if (outside(first + j)) continue;
        const V column = hn::Load(d, in + (first + j) * kLanes);
#pragma GCC unroll 16
        for (int k = 0; k < kKernel; ++k) {
          const int i = (j - k) / kStride;
          if (j < k || (j - k) % kStride != 0 || i >= kPixels) continue;
          sums[i] = hn::MulAdd(column, weights[k], sums[i]);
        }
      }
    } else {
      for (std::int64_t k = 0; k < p.kernel_w; ++k, w += kLanes) {
        const V weight = hn::Load(d, w);
#pragma GCC unroll 16
        for (int i = 0; i < kPixels; ++i) {
          const std::int64_t column = first + k * p.dilation_w + i * p.stride_w;
          if (outside(column)) continue;
          sums[i] = hn::MulAdd(hn::Load(d, in + column * kLanes), weight, sums[i]);
        }
      }
    }
  }
}

// The tile that begins at pixel x; `count` of its pixels belong to the row.
template <int kKernel, int kStride, bool kBorder, class Finish, class V>
HWY_INLINE void RunDepthwiseTile(const DepthwiseRow& row, std::int64_t x, std::int64_t count,
                                 V bias, V slope, const Finish& finish) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  constexpr int kPixels = kDepthwisePixels<kKernel>;
  V sums[kPixels];
#pragma GCC unroll 16
  for (int i = 0; i < kPixels; ++i) sums[i] = bias;
  AddProducts<kKernel, kStride, kBorder>(row, x, sums);
  const auto finish_pixel = [&](std::int64_t i, V sum) HWY_ATTR {
    const std::int64_t at = (x + i) * kLanes;
    const float* addend = row.addend == nullptr ? nullptr : row.addend + at;
    hn::Store(finish(d, sum, slope, addend), d, row.out + at);
  };
  if constexpr (std::is_same_v<Finish, AnyFinisher>) {
    // Its code is long: better once in a loop than for each of the registers.
    HWY_ALIGN float stored[kPixels * kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) hn::Store(sums[i], d, stored + i * kLanes);
    for (std::int64_t i = 0; i < kPixels && i < count; ++i) {
      finish_pixel(i, hn::Load(d, stored + i * kLanes));
    }
  } else {
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
      if (kBorder && i >= count) break;
      finish_pixel(i, sums[i]);
    }
  }
}

// Pixels of `inner` have all their taps inside of the image.
template <int kKernel, int kStride, class Finish, class V>
HWY_INLINE void RunDepthwiseRow(const DepthwiseRow& row, Range inner, V bias, V slope,
                                const Finish& finish) {
  constexpr std::int64_t kPixels = kDepthwisePixels<kKernel>;
  const std::int64_t width = row.p.out_width;
  for (std::int64_t x = 0; x < width; x += kPixels) {
    if (x >= inner.begin && x + kPixels <= inner.end) {
      RunDepthwiseTile<kKernel, kStride, false>(row, x, kPixels, bias, slope, finish);
    } else {
      RunDepthwiseTile<kKernel, kStride, true>(row, x, width - x, bias, slope, finish);
    }
  }
}

void RunDepthwiseTask(const DepthwisePlan& plan, const RunContext& run, std::int64_t task) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const ConvParams& p = plan.params;
  const std::int64_t band = task % plan.bands, block = task / plan.bands % plan.output.blocks;
  const std::int64_t image = task / (plan.bands * plan.output.blocks);
  const float* in = run.inputs[0].data<float>() + image * plan.input.image_stride +
                    block * plan.input.plane_stride;
  const std::int64_t out = image * plan.output.image_stride + block * plan.output.plane_stride;
  const float* weights = plan.weights->As<float>() + block * p.kernel_h * p.kernel_w * kLanes;
  const auto bias = hn::Load(d, plan.operands.Bias() + block * kLanes);
  const auto slope = hn::Load(d, plan.operands.Slope() + block * kLanes);

  // Pixels [inner.begin, inner.end) have all their taps inside of the image.
  const std::int64_t reach = (p.kernel_w - 1) * p.dilation_w - p.pad_left;
  Range inner;
  inner.begin = std::min(p.out_width, (p.pad_left + p.stride_w - 1) / p.stride_w);
  inner.end = p.in_width <= reach
                  ? inner.begin
                  : std::clamp((p.in_width - 1 - reach) / p.stride_w + 1, inner.begin, p.out_width);

  const std::int64_t kernel = p.dilation_w == 1 ? p.kernel_w : 0, stride = p.stride_w;
  WithFinisher(p.epilogue, [&](const auto& finish) HWY_ATTR {
    const std::int64_t end = std::min(p.out_height, (band + 1) * plan.band_rows);
    for (std::int64_t y = band * plan.band_rows; y < end; ++y) {
      const Range taps = ValidTaps(y, p.stride_h, p.pad_top, p.dilation_h, p.kernel_h, p.in_height);
      const std::int64_t in_y =
          taps.size() == 0 ? 0 : y * p.stride_h - p.pad_top + taps.begin * p.dilation_h;
      const std::int64_t out_row = out + y * plan.output.row_stride;
      const DepthwiseRow row = {.p = p,
                                .in = in + in_y * plan.input.row_stride,
                                .in_stride = p.dilation_h * plan.input.row_stride,
                                .tap_rows = taps.size(),
                                .weights = weights + taps.begin * p.kernel_w * kLanes,
                                .out = run.outputs[0].data<float>() + out_row,
                                .addend = p.epilogue.combine == Combine::kNone
                                              ? nullptr
                                              : run.inputs[kConvAddend].data<float>() + out_row};
      if (kernel == 3 && stride == 1) {
        RunDepthwiseRow<3, 1>(row, inner, bias, slope, finish);
      } else if (kernel == 3 && stride == 2) {
        RunDepthwiseRow<3, 2>(row, inner, bias, slope, finish);
      } else if (kernel == 5 && stride == 1) {
        RunDepthwiseRow<5, 1>(row, inner, bias, slope, finish);
      } else if (kernel == 5 && stride == 2) {
        RunDepthwiseRow<5, 2>(row, inner, bias, slope, finish);
      } else {
        RunDepthwiseRow<0, 0>(row, inner, bias, slope, finish);
      }
    }
  });
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunDepthwiseTask);

AlignedBuffer PackDepthwiseWeights(const ConvParams& p, std::int64_t lanes, const float* w) {
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  const std::int64_t blocks = (p.out_channels + lanes - 1) / lanes;
  AlignedBuffer packed(static_cast<std::size_t>(blocks * taps * lanes) * sizeof(float));
  float* out = packed.As<float>();
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t c = b * lanes; c < (b + 1) * lanes; ++c) {
        *out++ = c < p.out_channels ? w[c * taps + tap] : 0;
      }
    }
  }
  return packed;
}

class DepthwiseConv final : public Kernel {
 public:
  explicit DepthwiseConv(DepthwisePlan plan) : plan_(std::move(plan)) {
    const ConvParams& p = plan_.params;
    name_ = StrCat("conv", p.kernel_h, "x", p.kernel_w, "_depthwise");
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return plan_.params.Flops(); }
  bool CanOverwriteInput(std::size_t i) const override { return i == kConvAddend; }

  void Run(const RunContext& run) const override {
    const std::int64_t tasks = plan_.params.batch * plan_.output.blocks * plan_.bands;
    run.parallel.For(tasks, [&](std::int64_t task, int) {
      HWY_DYNAMIC_DISPATCH(RunDepthwiseTask)(plan_, run, task);
    });
  }

 private:
  DepthwisePlan plan_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Kernel> MakeDepthwiseConv(const ConvParams& params, const ConvConstants& constants,
                                          PackCache& packs) {
  const std::int64_t lanes = FloatLanes();
  const ConvParams& p = params;
  // A task large enough to be worth a hand-over.
  constexpr std::int64_t kPixelsPerTask = 1024;
  const std::int64_t rows =
      std::max<std::int64_t>(1, kPixelsPerTask / std::max<std::int64_t>(1, p.out_width));
  return std::make_unique<DepthwiseConv>(DepthwisePlan{
      .params = p,
      .input = BlockedLayout({p.batch, p.in_channels, p.in_height, p.in_width}),
      .output = BlockedLayout({p.batch, p.out_channels, p.out_height, p.out_width}),
      .weights = packs.Get<AlignedBuffer>(
          constants.weights, StrCat("depthwise_conv ", lanes, " lanes"),
          [&] { return PackDepthwiseWeights(p, lanes, constants.weights->data<float>()); }),
      .operands = PackEpilogue(p.epilogue, constants.bias.get(), constants.slope.get(),
                               p.out_channels, (p.out_channels + lanes - 1) / lanes * lanes),
      .band_rows = rows,
      .bands = (p.out_height + rows - 1) / rows});
}

}  // namespace tessera
#endif  // HWY_ONCE
