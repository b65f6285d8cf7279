// QuantizedAdd and QuantizedScale: parameters, shapes, layouts, kernels.
#include "ops/quantized/quantized_binary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/quantize.h"
#include "ops/quantized/quantized_conv.h"

namespace tessera {
namespace {

constexpr std::int64_t kGrain = 16384;  // bytes that are worth a task

// Operands and result alike: channels-last if an operand comes so.
LayoutChoice FollowEither(const LayoutContext& context) {
  const auto is_last = [](const TensorInfo& x) { return x.layout == Layout::kChannelsLast; };
  if (!is_last(context.inputs[0]) && !is_last(context.inputs[1])) return {};
  return {{Layout::kChannelsLast, Layout::kChannelsLast}, {Layout::kChannelsLast}};
}

// The first operand alone: G is row-major.
LayoutChoice FollowFirst(const LayoutContext& context) {
  const Layout layout = context.inputs[0].layout;
  return {{layout, Layout::kRowMajor}, {layout}};
}

void InferQuantizedAdd(const InferContext& context) {
  const TensorInfo &a = context.Input(0), &b = context.Input(1);
  Require(a.dtype == DType::kUint8 && b.dtype == DType::kUint8, "operands of types ", a.dtype,
          " and ", b.dtype);
  Require(a.shape == b.shape, "operands of shapes ", a.shape, " and ", b.shape);
  context.SetOutput(0, DType::kUint8, a.shape);
}

QuantizedAddParams ReadQuantizedAdd(const OpNode& node) {
  const Quantization a = ReadQuantization(node, "a"), b = ReadQuantization(node, "b");
  const Quantization y = ReadQuantization(node, "y");
  QuantizedAddParams p{.a_zero_point = a.zero_point,
                       .b_zero_point = b.zero_point,
                       .y_zero_point = y.zero_point,
                       .a_factor = a.scale / y.scale,
                       .b_factor = b.scale / y.scale,
                       .y_min = static_cast<std::int32_t>(node.attributes.Int("y_min", 0)),
                       .y_max = static_cast<std::int32_t>(node.attributes.Int("y_max", 255))};
  Require(0 <= p.y_min && p.y_min <= p.y_max && p.y_max <= 255, "bounds ", p.y_min, " and ",
          p.y_max);
  return p;
}

class QuantizedAddKernel final : public Kernel {
 public:
  explicit QuantizedAddKernel(const PrepareContext& context)
      : p_(ReadQuantizedAdd(context.node)), reference_(context.reference) {}

  std::string_view name() const override {
    return reference_ ? "quantized_add_reference" : "quantized_add";
  }
  bool CanOverwriteInput(std::size_t) const override { return true; }

  // All bytes, those that pad pixels too.
  void Run(const RunContext& context) const override {
    const TensorView& x = context.inputs[0];
    const auto* a = x.data<const std::uint8_t>();
    const auto* b = context.inputs[1].data<const std::uint8_t>();
    auto* out = context.outputs[0].data<std::uint8_t>();
    const auto n = static_cast<std::int64_t>(StorageBytes(x.dtype, x.shape, x.layout));
    context.parallel.For((n + kGrain - 1) / kGrain, [&](std::int64_t task, int) {
      const std::int64_t first = task * kGrain, end = std::min(n, first + kGrain);
      if (!reference_) return AddByteRow(p_, a + first, b + first, out + first, end - first);
      for (std::int64_t i = first; i < end; ++i) out[i] = AddBytes(p_, a[i], b[i]);
    });
  }

 private:
  QuantizedAddParams p_;
  bool reference_;
};

void InferQuantizedScale(const InferContext& context) {
  const TensorInfo &x = context.Input(0), &g = context.Input(1);
  Require(x.dtype == DType::kUint8 && x.shape.rank() == 4, "X of type ", x.dtype, " and shape ",
          x.shape);
  Require(g.dtype == DType::kFloat32 && g.shape == Shape{x.shape[0], x.shape[1], 1, 1},
          "G of type ", g.dtype, " and shape ", g.shape, " for X of shape ", x.shape);
  context.SetOutput(0, DType::kUint8, x.shape);
}

QuantizedScaleParams ReadQuantizedScale(const OpNode& node) {
  const Quantization x = ReadQuantization(node, "x"), y = ReadQuantization(node, "y");
  return {x.zero_point, y.zero_point, x.scale / y.scale};
}

// Row-major; also the reference.
class PlanarQuantizedScale final : public Kernel {
 public:
  explicit PlanarQuantizedScale(const PrepareContext& context)
      : p_(ReadQuantizedScale(context.node)),
        shape_(context.inputs[0].shape),
        reference_(context.reference) {}

  std::string_view name() const override {
    return reference_ ? "quantized_scale_reference" : "quantized_scale";
  }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }

  void Run(const RunContext& context) const override {
    const std::int64_t n = shape_.NumElements(2, 4);
    context.parallel.For(shape_.NumElements(0, 2), [&](std::int64_t plane, int) {
      const auto* in = context.inputs[0].data<const std::uint8_t>() + plane * n;
      auto* out = context.outputs[0].data<std::uint8_t>() + plane * n;
      const float factor = context.inputs[1].data<const float>()[plane] * p_.factor;
      if (!reference_) return ScaleByteRow(p_, in, &factor, 1, out, n);
      for (std::int64_t i = 0; i < n; ++i) {
        const float v = static_cast<float>(in[i] - p_.x_zero_point) * factor;
        out[i] = RoundAndSaturate<std::uint8_t>(v, p_.y_zero_point);
      }
    });
  }

 private:
  QuantizedScaleParams p_;
  Shape shape_;
  bool reference_;
};

// Channels-last: pixels are rows of bytes whose factors repeat.
class PixelQuantizedScale final : public Kernel {
 public:
  explicit PixelQuantizedScale(const PrepareContext& context)
      : p_(ReadQuantizedScale(context.node)), pixels_(context.inputs[0].shape) {}

  std::string_view name() const override { return "quantized_scale_pixels"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>(Period()) * sizeof(float);
  }

  void Run(const RunContext& context) const override {
    const std::int64_t period = Period(), stride = pixels_.pixel_stride;
    // Of a task; each makes the factors again.
    const std::int64_t bytes = std::max<std::int64_t>(1, 4 * kGrain / period) * period;
    const std::int64_t tasks = (pixels_.image_stride + bytes - 1) / bytes;
    context.parallel.For(pixels_.images * tasks, [&](std::int64_t task, int thread) {
      const std::int64_t image = task / tasks, first = task % tasks * bytes;
      const float* g = context.inputs[1].data<const float>() + image * pixels_.channels;
      auto* factors = context.Scratch<float>(thread);
      for (std::int64_t c = 0; c < stride; ++c) {
        factors[c] = c < pixels_.channels ? g[c] * p_.factor : 0;
      }
      for (std::int64_t i = stride; i < period; i += stride) {
        std::copy_n(factors, stride, factors + i);
      }
      const std::int64_t at = image * pixels_.image_stride + first;
      ScaleByteRow(p_, context.inputs[0].data<const std::uint8_t>() + at, factors, period,
                   context.outputs[0].data<std::uint8_t>() + at,
                   std::min(bytes, pixels_.image_stride - first));
    });
  }

 private:
  // Of the factors: several pixels, so that no vector is cut and rows are worth a call.
  std::int64_t Period() const {
    const std::int64_t least = std::lcm<std::int64_t>(64, pixels_.pixel_stride);
    return (kLeastPeriod + least - 1) / least * least;
  }

  static constexpr std::int64_t kLeastPeriod = 512;

  QuantizedScaleParams p_;
  ChannelsLastLayout pixels_;
};

std::unique_ptr<Kernel> PrepareQuantizedScale(const PrepareContext& context) {
  if (context.inputs[0].layout == Layout::kChannelsLast) {
    return std::make_unique<PixelQuantizedScale>(context);
  }
  return std::make_unique<PlanarQuantizedScale>(context);
}

std::optional<SpatialField> QuantizedScaleField(const FieldContext&, std::size_t i) {
  if (i != 0) return std::nullopt;
  return SpatialField{};
}

}  // namespace

std::uint8_t AddBytes(const QuantizedAddParams& p, std::uint8_t a, std::uint8_t b) {
  const float va = static_cast<float>(a - p.a_zero_point) * p.a_factor;
  const float vb = static_cast<float>(b - p.b_zero_point) * p.b_factor;
  const std::int32_t y = RoundAndSaturate<std::uint8_t>(va + vb, p.y_zero_point);
  return static_cast<std::uint8_t>(std::clamp(y, p.y_min, p.y_max));
}

extern const OpDef kQuantizedAddOp, kQuantizedScaleOp;
const OpDef kQuantizedAddOp = {.type = "QuantizedAdd",
                               .min_inputs = 2,
                               .max_inputs = 2,
                               .infer = InferQuantizedAdd,
                               .prepare = PrepareKernel<QuantizedAddKernel>,
                               .layouts = FollowEither,
                               .field = PointwiseField,
                               .internal = true};
const OpDef kQuantizedScaleOp = {.type = "QuantizedScale",
                                 .min_inputs = 2,
                                 .max_inputs = 2,
                                 .infer = InferQuantizedScale,
                                 .prepare = PrepareQuantizedScale,
                                 .layouts = FollowFirst,
                                 .field = QuantizedScaleField,
                                 .internal = true};

}  // namespace tessera
