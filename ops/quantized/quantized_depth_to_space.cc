#include "ops/quantized/quantized_depth_to_space.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/depth_to_space.h"
#include "ops/quantized/quantized_conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_depth_to_space.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void DequantizeAndAddOfTarget(const std::uint8_t* bytes, std::int32_t zero_point, float scale,
                              const float* add, float* out, std::int64_t n) {
  ForVectors(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> di;
    const hn::Rebind<std::uint8_t, decltype(d)> d8;
    const auto q = hn::Sub(hn::PromoteTo(di, hn::LoadU(d8, bytes + i)), hn::Set(di, zero_point));
    auto value = hn::Mul(hn::ConvertTo(d, q), hn::Set(d, scale));
    if (add != nullptr) value = hn::Add(value, hn::LoadU(d, add + i));
    hn::StoreU(value, d, out + i);
  });
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(DequantizeAndAddOfTarget);

constexpr std::size_t kImage = 1;

void InferQuantizedDepthToSpace(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  Require(x.dtype == DType::kUint8, "X of type ", x.dtype);
  const Shape out = DepthToSpaceShape(context.node, x.shape);
  if (context.HasInput(kImage)) {
    const TensorInfo& image = context.Input(kImage);
    const Shape wanted{x.shape[0], out[1], x.shape[2], x.shape[3]};
    Require(image.dtype == DType::kFloat32 && image.shape == wanted, "image of type ", image.dtype,
            " and shape ", image.shape, " for X of shape ", x.shape);
  }
  context.SetOutput(0, DType::kFloat32, out);
}

LayoutChoice QuantizedDepthToSpaceLayouts(const LayoutContext& context) {
  return {{context.inputs[0].layout, Layout::kRowMajor}, {Layout::kRowMajor}};
}

class ReferenceQuantizedDepthToSpace final : public Kernel {
 public:
  explicit ReferenceQuantizedDepthToSpace(const PrepareContext& context)
      : x_(ReadQuantization(context.node, "x")),
        out_(context.outputs[0].shape),
        order_(context.node, out_[1]),
        add_(context.HasInput(kImage)) {}

  std::string_view name() const override { return "quantized_depth_to_space_reference"; }
  void Run(const RunContext& context) const override {
    const auto* in = context.inputs[0].data<const std::uint8_t>();
    float* out = context.outputs[0].data<float>();
    const std::int64_t b = order_.block, height = out_[2] / b, width = out_[3] / b;
    context.parallel.For(out_[0] * out_[1], [&](std::int64_t plane, int) {
      const std::int64_t n = plane / out_[1], c = plane % out_[1];
      for (std::int64_t y = 0; y < out_[2]; ++y) {
        for (std::int64_t x = 0; x < out_[3]; ++x) {
          const std::int64_t channel = n * out_[1] * b * b + order_.Source(c, y % b, x % b);
          const std::int32_t q = in[(channel * height + y / b) * width + x / b];
          float value = static_cast<float>(q - x_.zero_point) * x_.scale;
          if (add_) {
            value += context.inputs[kImage].data<float>()[(plane * height + y / b) * width + x / b];
          }
          out[(plane * out_[2] + y) * out_[3] + x] = value;
        }
      }
    });
  }

 private:
  Quantization x_;
  Shape out_;
  ChannelOrder order_;
  bool add_;
};

// out[x * n + i] = in[x] for i < n; kBlock 0: any n.
template <int kBlock>
void RepeatPixels(const float* in, std::int64_t width, std::int64_t block, float* out) {
  const std::int64_t n = kBlock == 0 ? block : kBlock;
  for (std::int64_t x = 0; x < width; ++x) {
    for (std::int64_t i = 0; i < n; ++i) out[x * n + i] = in[x];
  }
}

// One row of input pixels, both layouts: its bytes are put in the order of an output row, which is
// then converted.
class QuantizedDepthToSpaceKernel final : public Kernel {
 public:
  explicit QuantizedDepthToSpaceKernel(const PrepareContext& context)
      : x_(ReadQuantization(context.node, "x")),
        pixels_(context.inputs[0].shape),
        out_channels_(context.outputs[0].shape[1]),
        order_(context.node, out_channels_),
        is_pixels_(context.inputs[0].layout == Layout::kChannelsLast),
        add_(context.HasInput(kImage)) {}

  std::string_view name() const override {
    return is_pixels_ ? "quantized_depth_to_space_pixels" : "quantized_depth_to_space";
  }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>(RowSize()) * (sizeof(float) + 1);
  }

  void Run(const RunContext& context) const override {
    context.parallel.For(pixels_.images * pixels_.height, [&](std::int64_t row, int thread) {
      const std::int64_t image = row / pixels_.height, y = row % pixels_.height;
      switch (order_.block) {
        case 2:
          return RunRow<2>(context, image, y, thread);
        case 3:
          return RunRow<3>(context, image, y, thread);
        case 4:
          return RunRow<4>(context, image, y, thread);
        default:
          return RunRow<0>(context, image, y, thread);
      }
    });
  }

 private:
  std::int64_t RowSize() const { return pixels_.width * order_.block; }  // of the output

  template <int kBlock>
  void RunRow(const RunContext& context, std::int64_t image, std::int64_t y, int thread) const {
    const std::int64_t b = order_.block, n = RowSize();
    auto* repeated = context.Scratch<float>(thread);
    auto* bytes = reinterpret_cast<std::uint8_t*>(repeated + n);
    const auto* in = context.inputs[0].data<const std::uint8_t>();
    in += is_pixels_ ? image * pixels_.image_stride + y * pixels_.row_stride
                     : (image * pixels_.channels * pixels_.height + y) * pixels_.width;
    for (std::int64_t c = 0; c < out_channels_; ++c) {
      const std::int64_t first = ((image * out_channels_ + c) * pixels_.height + y) * pixels_.width;
      if (add_) {
        RepeatPixels<kBlock>(context.inputs[kImage].data<const float>() + first, pixels_.width, b,
                             repeated);
      }
      for (std::int64_t dy = 0; dy < b; ++dy) {
        OrderRow<kBlock>(in, c, dy, bytes);
        DequantizeAndAdd(bytes, x_.zero_point, x_.scale, add_ ? repeated : nullptr,
                         context.outputs[0].data<float>() + first * b * b + dy * n, n);
      }
    }
  }

  // The bytes of row dy of the blocks of output channel c.
  template <int kBlock>
  void OrderRow(const std::uint8_t* in, std::int64_t c, std::int64_t dy, std::uint8_t* out) const {
    const std::int64_t b = kBlock == 0 ? order_.block : kBlock;
    const std::int64_t channel_stride = is_pixels_ ? 1 : pixels_.height * pixels_.width;
    const std::int64_t pixel_stride = is_pixels_ ? pixels_.pixel_stride : 1;
    const std::int64_t step = order_.per_column * channel_stride;
    in += order_.Source(c, dy, 0) * channel_stride;
    if (kBlock > 0 && step == 1) {  // the whole row of a block lies side by side
      for (std::int64_t x = 0; x < pixels_.width; ++x) {
        std::memcpy(out + x * kBlock, in + x * pixel_stride, kBlock);
      }
      return;
    }
    for (std::int64_t x = 0; x < pixels_.width; ++x) {
      for (std::int64_t i = 0; i < b; ++i) out[x * b + i] = in[x * pixel_stride + i * step];
    }
  }

  Quantization x_;
  ChannelsLastLayout pixels_;
  std::int64_t out_channels_;
  ChannelOrder order_;
  bool is_pixels_, add_;
};

std::unique_ptr<Kernel> PrepareQuantizedDepthToSpace(const PrepareContext& context) {
  if (context.reference) return std::make_unique<ReferenceQuantizedDepthToSpace>(context);
  return std::make_unique<QuantizedDepthToSpaceKernel>(context);
}

}  // namespace

void DequantizeAndAdd(const std::uint8_t* bytes, std::int32_t zero_point, float scale,
                      const float* add, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(DequantizeAndAddOfTarget)(bytes, zero_point, scale, add, out, n);
}

extern const OpDef kQuantizedDepthToSpaceOp;
const OpDef kQuantizedDepthToSpaceOp = {.type = "QuantizedDepthToSpace",
                                        .min_inputs = 1,
                                        .max_inputs = 2,
                                        .infer = InferQuantizedDepthToSpace,
                                        .prepare = PrepareQuantizedDepthToSpace,
                                        .layouts = QuantizedDepthToSpaceLayouts,
                                        .field = DepthToSpaceField,
                                        .internal = true};

}  // namespace tessera
#endif  // HWY_ONCE
