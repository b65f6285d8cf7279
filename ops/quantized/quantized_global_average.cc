#include "ops/quantized/quantized_global_average.h"

#include <algorithm>

#include "ops/quantized/quantized_conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_global_average.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Adds to the sums of d's lanes of channels, of which `channels` are wanted.
template <class D>
void AddPixels(D d, const std::uint8_t* pixels, std::int64_t pixel_stride, std::int64_t count,
               std::int64_t channels, std::int64_t* sums) {
  const hn::Rebind<std::uint8_t, D> d8;
  auto sum = hn::Zero(d);
  for (std::int64_t x = 0; x < count; ++x) {
    sum = hn::Add(sum, hn::PromoteTo(d, hn::LoadU(d8, pixels + x * pixel_stride)));
  }
  HWY_ALIGN std::int32_t lanes[hn::MaxLanes(d)];
  hn::Store(sum, d, lanes);
  for (std::int64_t c = 0; c < channels; ++c) sums[c] += lanes[c];
}

// Pixels whose sums fit into 31 bits.
constexpr std::int64_t kPart = std::int64_t{1} << 22;

// The same for d's lanes of bytes, one of them each channel.
template <class D8>
void AddBytePixels([[maybe_unused]] D8 d8, const std::uint8_t* pixels, std::int64_t pixel_stride,
                   std::int64_t count, std::int64_t channels, std::int64_t* sums) {
#if HWY_TARGET != HWY_SCALAR
  const hn::Repartition<std::uint16_t, D8> d16;
  constexpr std::int64_t kFit = 257;  // pixels whose sums fit into 16 bits
  HWY_ALIGN std::uint16_t lanes[2][hn::MaxLanes(d16)];
  for (std::int64_t x = 0; x < count; x += kFit) {
    auto even = hn::Zero(d16), odd = hn::Zero(d16);
    const std::int64_t end = std::min(count, x + kFit);
    for (std::int64_t i = x; i < end; ++i) {
      const auto pair = hn::BitCast(d16, hn::LoadU(d8, pixels + i * pixel_stride));
      even = hn::Add(even, hn::And(pair, hn::Set(d16, 0xFF)));
      odd = hn::Add(odd, hn::ShiftRight<8>(pair));
    }
    hn::Store(even, d16, lanes[0]);
    hn::Store(odd, d16, lanes[1]);
    for (std::int64_t c = 0; c < channels; ++c) sums[c] += lanes[c % 2][c / 2];
  }
#else
  static_cast<void>(pixels), static_cast<void>(pixel_stride), static_cast<void>(count);
  static_cast<void>(channels), static_cast<void>(sums);
#endif
}

void SumOfTarget(const std::uint8_t* pixels, std::int64_t pixel_stride, std::int64_t count,
                 std::int64_t channels, std::int64_t* sums) {
  std::fill_n(sums, channels, 0);
  if (HWY_TARGET == HWY_SCALAR || pixel_stride == 4) {
    const hn::CappedTag<std::int32_t, 4> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (std::int64_t x = 0; x < count; x += kPart) {
      for (std::int64_t c = 0; c < channels; c += lanes) {
        AddPixels(d, pixels + x * pixel_stride + c, pixel_stride, std::min(kPart, count - x),
                  std::min(lanes, channels - c), sums + c);
      }
    }
    return;
  }
  // Pixels are multiples of 16 bytes. Of small ones a vector takes several.
  constexpr std::int64_t kVector = hn::MaxLanes(hn::ScalableTag<std::uint8_t>());
  if (pixel_stride < kVector && kVector % pixel_stride == 0) {
    std::int64_t lanes[kVector] = {};
    const std::int64_t vectors = count * pixel_stride / kVector;
    AddBytePixels(hn::ScalableTag<std::uint8_t>(), pixels, kVector, vectors, kVector, lanes);
    for (std::int64_t i = 0; i < kVector; ++i) {
      if (i % pixel_stride < channels) sums[i % pixel_stride] += lanes[i];
    }
    pixels += vectors * kVector;
    count -= vectors * kVector / pixel_stride;
  }
  std::int64_t c = 0;
  const auto add = [&](auto d8) HWY_ATTR {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d8));
    for (; c + lanes <= channels || (lanes <= 16 && c < channels); c += lanes) {
      AddBytePixels(d8, pixels + c, pixel_stride, count, std::min(lanes, channels - c), sums + c);
    }
  };
  add(hn::ScalableTag<std::uint8_t>());
  add(hn::CappedTag<std::uint8_t, 32>());
  add(hn::CappedTag<std::uint8_t, 16>());
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(SumOfTarget);

void InferQuantizedGlobalAverage(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  Require(x.dtype == DType::kUint8 && x.shape.rank() == 4 && x.shape.NumElements() > 0,
          "X of type ", x.dtype, " and shape ", x.shape);
  context.SetOutput(0, DType::kFloat32, Shape{x.shape[0], x.shape[1], 1, 1});
}

LayoutChoice QuantizedGlobalAverageLayouts(const LayoutContext& context) {
  return {{context.inputs[0].layout}, {Layout::kRowMajor}};
}

// Row-major without vectors, which is the reference; or channels-last.
class QuantizedGlobalAverageKernel final : public Kernel {
 public:
  explicit QuantizedGlobalAverageKernel(const PrepareContext& context)
      : x_(ReadQuantization(context.node, "x")),
        pixels_(context.inputs[0].shape),
        is_pixels_(context.inputs[0].layout == Layout::kChannelsLast) {}

  std::string_view name() const override {
    return is_pixels_ ? "quantized_global_average_pixels" : "quantized_global_average";
  }

  void Run(const RunContext& context) const override {
    const std::int64_t group = is_pixels_ ? kChannels : 1;
    const std::int64_t groups = (pixels_.channels + group - 1) / group;
    const std::int64_t count = pixels_.height * pixels_.width;
    context.parallel.For(pixels_.images * groups, [&](std::int64_t task, int) {
      const std::int64_t image = task / groups, first = task % groups * group;
      const std::int64_t channels = std::min(group, pixels_.channels - first);
      const auto* in = context.inputs[0].data<const std::uint8_t>();
      float* out = context.outputs[0].data<float>() + image * pixels_.channels + first;
      std::int64_t sums[kChannels] = {};
      if (is_pixels_) {
        SumPixels(in + image * pixels_.image_stride + first, pixels_.pixel_stride, count, channels,
                  sums);
      } else {
        const auto* plane = in + (image * pixels_.channels + first) * count;
        for (std::int64_t i = 0; i < count; ++i) sums[0] += plane[i];
      }
      for (std::int64_t c = 0; c < channels; ++c) {
        out[c] = static_cast<float>(sums[c] - count * x_.zero_point) *
                 (x_.scale / static_cast<float>(count));
      }
    });
  }

 private:
  static constexpr std::int64_t kChannels = 64;

  Quantization x_;
  ChannelsLastLayout pixels_;
  bool is_pixels_;
};

}  // namespace

void SumPixels(const std::uint8_t* pixels, std::int64_t pixel_stride, std::int64_t count,
               std::int64_t channels, std::int64_t* sums) {
  HWY_DYNAMIC_DISPATCH(SumOfTarget)(pixels, pixel_stride, count, channels, sums);
}

extern const OpDef kQuantizedGlobalAverageOp;
const OpDef kQuantizedGlobalAverageOp = {.type = "QuantizedGlobalAverage",
                                         .min_inputs = 1,
                                         .max_inputs = 1,
                                         .infer = InferQuantizedGlobalAverage,
                                         .prepare = PrepareKernel<QuantizedGlobalAverageKernel>,
                                         .layouts = QuantizedGlobalAverageLayouts,
                                         .internal = true};

}  // namespace tessera
#endif  // HWY_ONCE
