// Depthwise convolution on blocked channels: a vector holds the channels of one pixel, and each
// tap is one multiply-add of it. Nothing is copied: taps outside of the image are left out.
#include "ops/depthwise_conv.h"

#include <algorithm>
#include <string>

#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/depthwise_conv.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/epilogue-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

// Output pixels of a tile, whose sums are in registers at once beside one row of weights: enough to
// hide the latency of multiply-adds.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON  // 32 registers
inline constexpr int kDepthwisePixels = 16;
#else
inline constexpr int kDepthwisePixels = 8;
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

// Multiply-adds of x86 take operands from memory, and compilers like to load a value again for each
// use. But what is loaded twice costs as much as two values.
template <class V>
HWY_INLINE void KeepInRegister([[maybe_unused]] V& v) {
#if HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG) && HWY_TARGET <= HWY_AVX3
  __asm__("" : "+v"(v.raw));
#elif HWY_ARCH_X86 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG) && HWY_TARGET <= HWY_SSE2
  __asm__("" : "+x"(v.raw));
#endif
}

// Adds the products of the tile that begins at pixel x. kKernel and kStride: width of the kernel
// and stride of columns that are next to each other, or 0 if they are known at run time only.
// kBorder: taps may lie outside of the image.
template <int kKernel, int kStride, bool kBorder, class V>
HWY_INLINE void AddProducts(const DepthwiseRow& row, std::int64_t x, V (&sums)[kDepthwisePixels]) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  constexpr int kPixels = kDepthwisePixels;
  const ConvParams& p = row.p;
  const std::int64_t first = x * p.stride_w - p.pad_left;
  const auto outside = [&](std::int64_t column) {
    return kBorder && static_cast<std::uint64_t>(column) >= static_cast<std::uint64_t>(p.in_width);
  };
  const float* in = row.in + first * kLanes;
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
        V column = hn::Load(d, in + j * kLanes);
        KeepInRegister(column);
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
          const std::int64_t column = k * p.dilation_w + i * p.stride_w;
          if (outside(first + column)) continue;
          sums[i] = hn::MulAdd(hn::Load(d, in + column * kLanes), weight, sums[i]);
        }
      }
    }
  }
}

// The tile that begins at pixel x; `count` of its pixels belong to the row.
template <int kKernel, int kStride, bool kBorder, class V>
HWY_NOINLINE void RunDepthwiseTile(const DepthwiseRow& row, std::int64_t x, std::int64_t count,
                                   V bias, V slope) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  constexpr int kPixels = kDepthwisePixels;
  V sums[kPixels];
#pragma GCC unroll 16
  for (int i = 0; i < kPixels; ++i) sums[i] = bias;
  AddProducts<kKernel, kStride, kBorder>(row, x, sums);
  float* out = row.out + x * kLanes;
  const float* addend = row.addend == nullptr ? nullptr : row.addend + x * kLanes;
  const Epilogue& epilogue = row.p.epilogue;
  const auto store = [&](const auto& finish) HWY_ATTR {
#pragma GCC unroll 16
    for (int i = 0; i < kPixels; ++i) {
      if (kBorder && i >= count) break;
      hn::Store(finish(d, sums[i], slope, nullptr), d, out + i * kLanes);
    }
  };
  switch (epilogue.combine == Combine::kNone ? epilogue.activation : Activation::kSilu) {
    case Activation::kNone:
    case Activation::kLeakyRelu:
    case Activation::kPRelu:
      return store(FixedFinisher<Activation::kPRelu, Combine::kNone>(epilogue));
    case Activation::kRelu:
      return store(FixedFinisher<Activation::kRelu, Combine::kNone>(epilogue));
    default: {  // whose code is long
      HWY_ALIGN float stored[kPixels * kLanes];
#pragma GCC unroll 16
      for (int i = 0; i < kPixels; ++i) hn::Store(sums[i], d, stored + i * kLanes);
      const std::int64_t pixels = std::min<std::int64_t>(kPixels, count);
      FinishRow(d, epilogue, slope, stored, addend, out, static_cast<std::size_t>(pixels * kLanes));
    }
  }
}

// Pixels of `inner` have all their taps inside of the image.
template <int kKernel, int kStride, class V>
HWY_INLINE void RunDepthwiseRow(const DepthwiseRow& row, Range inner, V bias, V slope) {
  constexpr std::int64_t kPixels = kDepthwisePixels;
  const std::int64_t width = row.p.out_width;
  for (std::int64_t x = 0; x < width; x += kPixels) {
    if (x >= inner.begin && x + kPixels <= inner.end) {
      RunDepthwiseTile<kKernel, kStride, false>(row, x, kPixels, bias, slope);
    } else {
      RunDepthwiseTile<kKernel, kStride, true>(row, x, width - x, bias, slope);
    }
  }
}

void RunDepthwiseBandOfTarget(const DepthwisePlan& plan, const DepthwiseBand& band) {
  const hn::ScalableTag<float> d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const ConvParams& p = plan.params;
  const auto bias = hn::Load(d, plan.operands.Bias() + band.block * kLanes);
  const auto slope = hn::Load(d, plan.operands.Slope() + band.block * kLanes);

  // Pixels [inner.begin, inner.end) have all their taps inside of the image.
  const std::int64_t reach = (p.kernel_w - 1) * p.dilation_w - p.pad_left;
  Range inner;
  inner.begin = std::min(p.out_width, (p.pad_left + p.stride_w - 1) / p.stride_w);
  inner.end = p.in_width <= reach
                  ? inner.begin
                  : std::clamp((p.in_width - 1 - reach) / p.stride_w + 1, inner.begin, p.out_width);

  const std::int64_t kernel = p.dilation_w == 1 ? p.kernel_w : 0, stride = p.stride_w;
  for (std::int64_t y = band.rows.begin; y < band.rows.end; ++y) {
    const Range taps = ValidTaps(y, p.stride_h, p.pad_top, p.dilation_h, p.kernel_h, p.in_height);
    const std::int64_t in_y =
        taps.size() == 0 ? 0
                         : y * p.stride_h - p.pad_top + taps.begin * p.dilation_h - band.in_first;
    const std::int64_t out_row = (y - band.rows.begin) * band.out_stride;
    const DepthwiseRow row = {.p = p,
                              .in = band.in + in_y * band.in_stride,
                              .in_stride = p.dilation_h * band.in_stride,
                              .tap_rows = taps.size(),
                              .weights = band.weights + taps.begin * p.kernel_w * kLanes,
                              .out = band.out + out_row,
                              .addend = band.addend == nullptr ? nullptr : band.addend + out_row};
    if (kernel == 3 && stride == 1) {
      RunDepthwiseRow<3, 1>(row, inner, bias, slope);
    } else if (kernel == 3 && stride == 2) {
      RunDepthwiseRow<3, 2>(row, inner, bias, slope);
    } else if (kernel == 5 && stride == 1) {
      RunDepthwiseRow<5, 1>(row, inner, bias, slope);
    } else if (kernel == 5 && stride == 2) {
      RunDepthwiseRow<5, 2>(row, inner, bias, slope);
    } else {
      RunDepthwiseRow<0, 0>(row, inner, bias, slope);
    }
  }
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunDepthwiseBandOfTarget);

std::int64_t Taps(const ConvParams& p) { return p.kernel_h * p.kernel_w; }

// The weights of one block, [tap][lanes], from those of all channels, [M, 1, KH, KW].
void PackBlock(const ConvParams& p, std::int64_t block, const float* weights, float* out) {
  const std::int64_t lanes = FloatLanes(), taps = Taps(p);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::int64_t c = block * lanes; c < (block + 1) * lanes; ++c) {
      *out++ = c < p.out_channels ? weights[c * taps + tap] : 0;
    }
  }
}

AlignedBuffer PackDepthwiseWeights(const ConvParams& p, const float* weights) {
  const std::int64_t lanes = FloatLanes(), blocks = (p.out_channels + lanes - 1) / lanes;
  AlignedBuffer packed(static_cast<std::size_t>(blocks * Taps(p) * lanes) * sizeof(float));
  for (std::int64_t b = 0; b < blocks; ++b)
    PackBlock(p, b, weights, packed.As<float>() + b * Taps(p) * lanes);
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
  // For weights that are computed, as where one picture's features are looked for in another's.
  std::size_t ScratchBytesPerThread() const override {
    if (plan_.weights != nullptr) return 0;
    return static_cast<std::size_t>(Taps(plan_.params) * FloatLanes()) * sizeof(float);
  }

  void Run(const RunContext& run) const override {
    const BlockedLayout &in = plan_.input, &out = plan_.output;
    const std::int64_t tasks = plan_.params.batch * out.blocks * plan_.bands;
    run.parallel.For(tasks, [&](std::int64_t task, int thread) {
      const std::int64_t y = task % plan_.bands * plan_.band_rows;
      const std::int64_t block = task / plan_.bands % out.blocks;
      const std::int64_t image = task / (plan_.bands * out.blocks);
      const std::int64_t to =
          image * out.image_stride + block * out.plane_stride + y * out.row_stride;
      const float* weights;
      if (plan_.weights != nullptr) {
        weights = DepthwiseWeights(plan_, block);
      } else {
        auto* const packed = run.Scratch<float>(thread);
        PackBlock(plan_.params, block, run.inputs[1].data<float>(), packed);
        weights = packed;
      }
      RunDepthwiseBand(plan_, {.block = block,
                               .weights = weights,
                               .rows = {y, std::min(out.height, y + plan_.band_rows)},
                               .in = run.inputs[0].data<float>() + image * in.image_stride +
                                     block * in.plane_stride,
                               .in_stride = in.row_stride,
                               .out = run.outputs[0].data<float>() + to,
                               .out_stride = out.row_stride,
                               .addend = plan_.params.epilogue.combine == Combine::kNone
                                             ? nullptr
                                             : run.inputs[kConvAddend].data<float>() + to});
    });
  }

 private:
  DepthwisePlan plan_;
  std::string name_;
};

}  // namespace

void RunDepthwiseBand(const DepthwisePlan& plan, const DepthwiseBand& band) {
  HWY_DYNAMIC_DISPATCH(RunDepthwiseBandOfTarget)(plan, band);
}

const float* DepthwiseWeights(const DepthwisePlan& plan, std::int64_t block) {
  return plan.weights->As<float>() + block * Taps(plan.params) * FloatLanes();
}

DepthwisePlan MakeDepthwisePlan(const ConvParams& params, const ConvConstants& constants,
                                PackCache& packs) {
  const std::int64_t lanes = FloatLanes();
  const ConvParams& p = params;
  // A task large enough to be worth a hand-over.
  constexpr std::int64_t kPixelsPerTask = 1024;
  const std::int64_t rows =
      std::max<std::int64_t>(1, kPixelsPerTask / std::max<std::int64_t>(1, p.out_width));
  return {.params = p,
          .input = BlockedLayout({p.batch, p.in_channels, p.in_height, p.in_width}),
          .output = BlockedLayout({p.batch, p.out_channels, p.out_height, p.out_width}),
          .weights =
              constants.weights == nullptr
                  ? nullptr
                  : packs.Get<AlignedBuffer>(
                        constants.weights, StrCat("depthwise_conv ", lanes, " lanes"),
                        [&] { return PackDepthwiseWeights(p, constants.weights->data<float>()); }),
          .operands = PackEpilogue(p.epilogue, constants.bias.get(), constants.slope.get(),
                                   p.out_channels, (p.out_channels + lanes - 1) / lanes * lanes),
          .band_rows = rows,
          .bands = (p.out_height + rows - 1) / rows};
}

std::unique_ptr<Kernel> MakeDepthwiseConv(const ConvParams& params, const ConvConstants& constants,
                                          PackCache& packs) {
  return std::make_unique<DepthwiseConv>(MakeDepthwisePlan(params, constants, packs));
}

}  // namespace tessera
#endif  // HWY_ONCE
