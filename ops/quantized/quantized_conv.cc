// QuantizedConv: parameters, shapes, layouts, and the choice of the kernel.
#include "ops/quantized/quantized_conv.h"

#include <vector>

#include "ops/conv_tiling.h"
#include "ops/elements.h"
#include "ops/quantized/quantized_depthwise.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

bool Present(std::span<const TensorInfo> inputs, std::size_t i) {
  return i < inputs.size() && inputs[i].present;
}

QuantizedConvParams ReadParams(const OpNode& node, std::span<const TensorInfo> inputs) {
  QuantizedConvParams p = ReadQuantizedConv(node, inputs[0].shape, inputs[kQuantizedWeights].shape,
                                            Present(inputs, kQuantizedAddend));
  p.from_float = inputs[0].dtype == DType::kFloat32;
  return p;
}

void RequireVector(const InferContext& context, std::size_t i, DType type, const char* name,
                   std::int64_t channels, bool or_one) {
  const TensorInfo& info = context.Input(i);
  const std::int64_t n = info.shape.NumElements();
  Require(info.dtype == type && (n == channels || (or_one && n == 1)), name, " of type ",
          info.dtype, " and shape ", info.shape, " for ", channels, " output channels");
}

void InferQuantizedConv(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  Require((x.dtype == DType::kUint8 || x.dtype == DType::kFloat32) && x.shape.rank() == 4,
          "X of type ", x.dtype, " and shape ", x.shape);
  Require(context.Input(kQuantizedWeights).dtype == DType::kInt8, "weights of type ",
          context.Input(kQuantizedWeights).dtype);
  const QuantizedConvParams p = ReadParams(context.node, context.inputs);
  const std::int64_t channels = p.conv.out_channels;
  RequireVector(context, kQuantizedWeightScale, DType::kFloat32, "w_scale", channels, true);
  if (context.HasInput(kQuantizedBias)) {
    RequireVector(context, kQuantizedBias, DType::kInt32, "bias", channels, false);
  }
  if (p.conv.epilogue.activation == Activation::kPRelu) {
    RequireVector(context, kQuantizedSlope, DType::kFloat32, "slope", channels, true);
  }
  const Shape out{p.conv.batch, channels, p.conv.out_height, p.conv.out_width};
  if (p.has_addend) {
    const TensorInfo& addend = context.Input(kQuantizedAddend);
    Require(addend.dtype == DType::kUint8 && addend.shape == out, "addend of type ", addend.dtype,
            " and shape ", addend.shape, " for an output of shape ", out);
  }
  context.SetOutput(0, p.to_float ? DType::kFloat32 : DType::kUint8, out);
}

enum class KernelKind { kReference, kGemm, kDepthwise };

KernelKind ChooseKind(const QuantizedConvParams& p) {
  const ConvParams& conv = p.conv;
  if (p.from_float) return CanQuantizeInput(conv) ? KernelKind::kGemm : KernelKind::kReference;
  if (IsQuantizedDepthwise(p)) return KernelKind::kDepthwise;
  if (conv.groups == 1 && FitsTiling(conv)) return KernelKind::kGemm;
  return KernelKind::kReference;
}

LayoutChoice QuantizedConvLayouts(const LayoutContext& context) {
  const QuantizedConvParams p = ReadParams(context.node, context.inputs);
  LayoutChoice choice{std::vector<Layout>(context.inputs.size(), Layout::kRowMajor), {}};
  const KernelKind kind = ChooseKind(p);
  if (kind == KernelKind::kReference) return choice;
  choice.inputs[0] = p.from_float ? Layout::kRowMajor : Layout::kChannelsLast;
  if (p.has_addend) choice.inputs[kQuantizedAddend] = Layout::kChannelsLast;
  choice.outputs = {p.to_float ? Layout::kRowMajor : Layout::kChannelsLast};
  if (kind == KernelKind::kDepthwise && p.to_float) choice.outputs = {Layout::kBlocked};
  if (kind == KernelKind::kGemm && p.to_float && p.conv.out_channels >= FloatLanes()) {
    choice.outputs = {Layout::kBlocked};
  }
  return choice;
}

std::unique_ptr<Kernel> PrepareQuantizedConv(const PrepareContext& context) {
  const QuantizedConvParams p = ReadParams(context.node, context.inputs);
  const auto constant = [&](std::size_t i) -> std::shared_ptr<const Tensor> {
    if (!context.HasInput(i)) return nullptr;
    Require(context.inputs[i].constant != nullptr, "input ", i, " has to be constant");
    return context.inputs[i].constant;
  };
  const QuantizedConvConstants constants = {constant(kQuantizedWeights),
                                            constant(kQuantizedWeightScale),
                                            constant(kQuantizedBias), constant(kQuantizedSlope)};
  const bool fast =
      !context.reference && (p.from_float || context.inputs[0].layout == Layout::kChannelsLast);
  switch (fast ? ChooseKind(p) : KernelKind::kReference) {
    case KernelKind::kGemm:
      return MakeQuantizedGemmConv(p, constants, context.outputs[0].layout, context.packs);
    case KernelKind::kDepthwise:
      return MakeQuantizedDepthwiseConv(p, constants, context.packs);
    case KernelKind::kReference:
      break;
  }
  return MakeReferenceQuantizedConv(p, constants);
}

std::optional<SpatialField> QuantizedConvField(const FieldContext& context, std::size_t i) {
  if (i == kQuantizedAddend) return SpatialField{};
  if (i != 0) return std::nullopt;
  return WindowField(context.node, ReadParams(context.node, context.inputs).conv.ToNd().axes);
}

}  // namespace

Quantization ReadQuantization(const OpNode& node, std::string_view prefix) {
  const std::int64_t zero_point = node.attributes.Int(StrCat(prefix, "_zero_point"), 0);
  Require(0 <= zero_point && zero_point <= 255, prefix, "_zero_point ", zero_point);
  return {node.attributes.Float(StrCat(prefix, "_scale"), 1),
          static_cast<std::int32_t>(zero_point)};
}

void WriteQuantization(const Quantization& q, std::string_view prefix, Attributes& attributes) {
  attributes.Set(StrCat(prefix, "_scale"), q.scale);
  attributes.Set(StrCat(prefix, "_zero_point"), std::int64_t{q.zero_point});
}

bool IsIntegerActivation(Activation activation) {
  switch (activation) {
    case Activation::kNone:
    case Activation::kRelu:
    case Activation::kLeakyRelu:
    case Activation::kPRelu:
    case Activation::kClip:
    case Activation::kHardSwish:
      return true;
    default:
      return false;
  }
}

bool CanQuantizeInput(const ConvParams& conv) {
  return conv.in_channels <= 4 && conv.groups == 1 && FitsTiling(conv);
}

QuantizedConvParams ReadQuantizedConv(const OpNode& node, const Shape& x, const Shape& w,
                                      bool has_addend) {
  QuantizedConvParams p{.conv = ReadConvParams(node, x, w),
                        .x = ReadQuantization(node, "x"),
                        .y = ReadQuantization(node, "y"),
                        .addend = ReadQuantization(node, "addend"),
                        .to_float = !node.attributes.Has("y_scale"),
                        .has_addend = has_addend};
  Require(IsIntegerActivation(p.conv.epilogue.activation),
          "an activation that is not computed on integers");
  Require(p.conv.epilogue.combine == Combine::kNone, "an addend of another kind");
  return p;
}

extern const OpDef kQuantizedConvOp;
const OpDef kQuantizedConvOp = {.type = "QuantizedConv",
                                .min_inputs = 3,
                                .max_inputs = 6,
                                .infer = InferQuantizedConv,
                                .prepare = PrepareQuantizedConv,
                                .layouts = QuantizedConvLayouts,
                                .field = QuantizedConvField,
                                .internal = true};

}  // namespace tessera
