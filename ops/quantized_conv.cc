// ConvInteger, whose result is the sums, and QLinearConv, which scales them back to 8 bits.
// https://onnx.ai/onnx/operators/onnx__ConvInteger.html
// https://onnx.ai/onnx/operators/onnx__QLinearConv.html
#include <cstring>

#include "ops/conv.h"
#include "ops/integer_conv.h"
#include "ops/quantize.h"

namespace tessera {
namespace {

// Inputs of the two operators. ConvInteger has zero points alone.
namespace conv_integer {
enum Input : std::size_t { kX, kW, kXZeroPoint, kWZeroPoint };
}
namespace qlinear {
enum Input : std::size_t {
  kX,
  kXScale,
  kXZeroPoint,
  kW,
  kWScale,
  kWZeroPoint,
  kYScale,
  kYZeroPoint,
  kBias
};
}

void InferConvInteger(const InferContext& context) {
  using namespace conv_integer;
  const Shape& x = context.Input(kX).shape;
  const Shape& w = context.Input(kW).shape;
  RequireBytes(context, kX, kXZeroPoint);
  RequireBytes(context, kW, kWZeroPoint);
  const Shape out = ReadConv(context.node, x, w).OutputShape();
  if (context.HasInput(kXZeroPoint)) RequirePerTensor(context, kXZeroPoint, "x_zero_point");
  if (context.HasInput(kWZeroPoint)) {
    RequirePerChannel(context, kWZeroPoint, "w_zero_point", w[0]);
  }
  context.SetOutput(0, DType::kInt32, out);
}

void InferQLinearConv(const InferContext& context) {
  using namespace qlinear;
  const Shape& x = context.Input(kX).shape;
  const Shape& w = context.Input(kW).shape;
  RequireBytes(context, kX, kXZeroPoint);
  RequireBytes(context, kW, kWZeroPoint);
  const DType type = context.Input(kYZeroPoint).dtype;
  RequireType(type, ByteTypes());
  for (const std::size_t scale : {kXScale, kWScale, kYScale}) {
    Require(context.Input(scale).dtype == DType::kFloat32, "a scale of type ",
            context.Input(scale).dtype);
  }
  const Shape out = ReadConv(context.node, x, w).OutputShape();
  RequirePerTensor(context, kXScale, "x_scale");
  RequirePerTensor(context, kXZeroPoint, "x_zero_point");
  RequirePerChannel(context, kWScale, "w_scale", w[0]);
  RequirePerChannel(context, kWZeroPoint, "w_zero_point", w[0]);
  RequirePerTensor(context, kYScale, "y_scale");
  RequirePerTensor(context, kYZeroPoint, "y_zero_point");
  if (context.HasInput(kBias)) {
    const TensorInfo& bias = context.Input(kBias);
    Require(bias.dtype == DType::kInt32 && bias.shape == Shape{w[0]}, "bias of type ", bias.dtype,
            " and shape ", bias.shape, " for ", w[0], " output channels");
  }
  context.SetOutput(0, type, out);
}

// The kernel of sums behind both; w and its zero point are inputs of those numbers.
struct SumsKernel {
  SumsKernel(const PrepareContext& context, std::size_t w, std::size_t w_zero_point)
      : params(
            ReadIntegerConvParams(context.node, context.inputs[0].shape, context.inputs[w].shape)) {
    const bool has_zero_point = context.HasInput(w_zero_point);
    const auto zero_point = has_zero_point ? context.inputs[w_zero_point].constant : nullptr;
    const bool can_pack = context.inputs[w].constant && (!has_zero_point || zero_point);
    conv = can_pack && !context.reference
               ? MakeIntegerConv(params, context.inputs[w].constant, zero_point, context.packs)
               : MakeReferenceIntegerConv(params);
  }

  IntegerConvParams params;
  std::unique_ptr<IntegerConv> conv;
};

class ConvIntegerKernel final : public Kernel {
 public:
  explicit ConvIntegerKernel(const PrepareContext& context)
      : sums_(context, conv_integer::kW, conv_integer::kWZeroPoint),
        pixels_(sums_.params.out_pixels()) {}
  std::string_view name() const override { return sums_.conv->name(); }
  std::size_t ScratchBytesPerThread() const override { return sums_.conv->ScratchBytesPerThread(); }
  double Flops() const override { return sums_.params.Flops(); }
  void Run(const RunContext& context) const override {
    using namespace conv_integer;
    auto* y = context.outputs[0].data<std::int32_t>();
    const IntegerConvOperands operands{context.inputs[kX], context.inputs[kW],
                                       InputOrAbsent(context, kXZeroPoint),
                                       InputOrAbsent(context, kWZeroPoint)};
    sums_.conv->Run(operands, context,
                    [&](std::int64_t plane, std::int64_t, std::int64_t pixel,
                        const std::int32_t* sums, std::int64_t n) {
                      std::memcpy(y + plane * pixels_ + pixel, sums,
                                  static_cast<std::size_t>(n) * sizeof(std::int32_t));
                    });
  }

 private:
  SumsKernel sums_;
  std::int64_t pixels_;
};

class QLinearConvKernel final : public Kernel {
 public:
  explicit QLinearConvKernel(const PrepareContext& context)
      : sums_(context, qlinear::kW, qlinear::kWZeroPoint),
        pixels_(sums_.params.out_pixels()),
        requantize_(context.reference ? RequantizeRowPlainly : RequantizeRow) {}
  std::string_view name() const override { return sums_.conv->name(); }
  std::size_t ScratchBytesPerThread() const override { return sums_.conv->ScratchBytesPerThread(); }
  double Flops() const override { return sums_.params.Flops(); }
  void Run(const RunContext& context) const override {
    using namespace qlinear;
    const TensorView& y = context.outputs[0];
    const IntegerConvOperands operands{context.inputs[kX], context.inputs[kW],
                                       context.inputs[kXZeroPoint], context.inputs[kWZeroPoint]};
    const float x_scale = ScaleAt(context.inputs[kXScale], 0);
    const float y_scale = ScaleAt(context.inputs[kYScale], 0);
    const std::int32_t y_zero = ZeroPointAt(context.inputs[kYZeroPoint], 0);
    const auto* bias = InputOrAbsent(context, kBias).data<const std::int32_t>();
    sums_.conv->Run(
        operands, context,
        [&](std::int64_t plane, std::int64_t channel, std::int64_t pixel, const std::int32_t* sums,
            std::int64_t n) {
          const float multiplier =
              RequantizeMultiplier(x_scale, ScaleAt(context.inputs[kWScale], channel), y_scale);
          requantize_(sums, bias == nullptr ? 0 : bias[channel], {&multiplier, RowOperand::kScalar},
                      y_zero, y.dtype, y.data<std::byte>() + plane * pixels_ + pixel, n);
        });
  }

 private:
  SumsKernel sums_;
  std::int64_t pixels_;
  decltype(&RequantizeRow) requantize_;
};

template <std::size_t w>
std::optional<SpatialField> Field(const FieldContext& context, std::size_t i) {
  const Shape& x = context.inputs[0].shape;
  if (i != 0 || x.rank() != 4) return std::nullopt;
  return WindowField(context.node, ReadConv(context.node, x, context.inputs[w].shape).axes);
}

}  // namespace

extern const OpDef kConvIntegerOp, kQLinearConvOp;
const OpDef kConvIntegerOp = {
    .type = "ConvInteger",
    .min_inputs = 2,
    .max_inputs = 4,
    .infer = InferConvInteger,
    .prepare = PrepareKernel<ConvIntegerKernel>,
    .field = Field<conv_integer::kW>,
    .first_opset = 10,
};
const OpDef kQLinearConvOp = {
    .type = "QLinearConv",
    .min_inputs = 8,
    .max_inputs = 9,
    .infer = InferQLinearConv,
    .prepare = PrepareKernel<QLinearConvKernel>,
    .field = Field<qlinear::kW>,
    .first_opset = 10,
};

}  // namespace tessera
