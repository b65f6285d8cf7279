// Conv and FusedConv: parameters, shapes, layouts, and the choice of the kernel.
// https://onnx.ai/onnx/operators/onnx__Conv.html
#include "ops/conv.h"

#include <algorithm>
#include <string>
#include <vector>

#include "ops/conv_tiling.h"
#include "ops/window.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

bool IsFloat(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kFloat64;
}

void InferConv(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  const TensorInfo& w = context.Input(1);
  Require(IsFloat(x.dtype), "X of type ", x.dtype, " is not supported");
  // Weights in float16 may stand for float32: they are stored so, and computed alike.
  Require(w.dtype == x.dtype || w.dtype == DType::kFloat16, "X is ", x.dtype, ", W is ", w.dtype);
  const Shape x_shape = ConvInputShape(context.node, x);
  const ConvNd p = ReadConv(context.node, x_shape, w.shape);
  const Shape out = p.OutputShape();

  if (context.HasInput(kConvBias)) {
    const Shape& bias = context.Input(kConvBias).shape;
    Require(bias == Shape{p.out_channels}, "bias of shape ", bias, " for ", p.out_channels,
            " output channels");
  }
  if (p.epilogue.activation == Activation::kPRelu) {
    const Shape& slope = context.Input(kConvSlope).shape;
    Require(slope.NumElements() == 1 || slope.NumElements() == p.out_channels, "slope of shape ",
            slope, " for ", p.out_channels, " output channels");
  }
  if (p.epilogue.combine != Combine::kNone) {
    const Shape& addend = context.Input(kConvAddend).shape;
    Require(addend == out, "addend of shape ", addend, " for an output of shape ", out);
  }
  context.SetOutput(0, x.dtype, out);
}

bool Present(std::span<const TensorInfo> inputs, std::size_t i) {
  return i < inputs.size() && inputs[i].present;
}

// kNarrow: planar, or dot products if the input is blocked.
enum class KernelKind { kDepthwise, kDirect, kNarrow };

KernelKind ChooseKind(const ConvParams& p) {
  const int lanes = FloatLanes();
  if (p.groups == 1) {
    // Not if that leaves half of a vector of output channels empty.
    return p.out_channels * 2 <= lanes ? KernelKind::kNarrow : KernelKind::kDirect;
  }
  if (p.groups == p.in_channels && p.groups == p.out_channels) return KernelKind::kDepthwise;
  const bool whole_blocks =
      p.in_channels / p.groups % lanes == 0 && p.out_channels / p.groups % lanes == 0;
  return whole_blocks ? KernelKind::kDirect : KernelKind::kNarrow;
}

// Whether the vector kernels can be used: float32, and operands that can be packed. Of depthwise
// convolutions, whose weights are few, those may be computed.
bool CanPack(const OpNode& node, std::span<const TensorInfo> inputs) {
  if (inputs[0].dtype != DType::kFloat32) return false;
  for (const std::size_t i : {kConvBias, kConvSlope}) {
    if (Present(inputs, i) && inputs[i].constant == nullptr) return false;
  }
  if (inputs[1].constant != nullptr) return true;
  if (inputs[1].dtype != DType::kFloat32 || inputs[0].shape.rank() != 4) return false;
  return ChooseKind(ReadConvParams(node, ConvInputShape(node, inputs[0]), inputs[1].shape)) ==
         KernelKind::kDepthwise;
}

// Constant input i as float32; null if it is absent or computed. Converted once for all plans.
std::shared_ptr<const Tensor> FloatConstant(const PrepareContext& context, std::size_t i) {
  if (!context.HasInput(i) || context.inputs[i].constant == nullptr) return nullptr;
  const std::shared_ptr<const Tensor>& constant = context.inputs[i].constant;
  if (constant->dtype() == DType::kFloat32) return constant;
  return context.packs.Get<Tensor>(constant, "float32", [&] {
    return Tensor::FromVector(constant->shape(), ToFloats(constant->view()));
  });
}

LayoutChoice ConvLayouts(const LayoutContext& context) {
  const TensorInfo& x = context.inputs[0];
  std::vector<Layout> inputs(context.inputs.size(), Layout::kRowMajor);
  if (!CanPack(context.node, context.inputs) || x.shape.rank() != 4) return {inputs, {}};
  const ConvParams p =
      ReadConvParams(context.node, ConvInputShape(context.node, x), context.inputs[1].shape);
  if (!FitsTiling(p)) return {inputs, {}};

  Layout output = Layout::kBlocked;
  const bool transformed = context.node.attributes.Has(kTransformedFrom);
  switch (transformed ? KernelKind::kDirect : ChooseKind(p)) {
    case KernelKind::kDepthwise:
      inputs[0] = Layout::kBlocked;
      break;
    case KernelKind::kDirect:
      // A first layer's few planes are not worth a reordering pass of their own.
      inputs[0] = x.layout == Layout::kRowMajor && p.groups == 1 && p.in_channels <= FloatLanes() &&
                          !transformed
                      ? Layout::kRowMajor
                      : Layout::kBlocked;
      break;
    case KernelKind::kNarrow:
      if (p.groups == 1) inputs[0] = x.layout;
      output = Layout::kRowMajor;
      break;
  }
  if (Present(context.inputs, kConvAddend)) inputs[kConvAddend] = output;
  return {inputs, {output}};
}

// For all that the vector kernels of 1-D and 2-D convolutions do not do.
std::unique_ptr<Kernel> PrepareGeneralConv(const PrepareContext& context, const ConvNd& conv) {
  const bool all_float32 = std::all_of(
      context.inputs.begin(), context.inputs.end(),
      [](const TensorInfo& input) { return !input.present || input.dtype == DType::kFloat32; });
  if (!context.reference && all_float32) {
    if (auto kernel = MakeGemmConv(conv)) return kernel;
  }
  return MakeReferenceConv(conv);
}

// Any layouts of X and the output will do, not only those of ConvLayouts, if there is one group.
std::unique_ptr<Kernel> PrepareConv(const PrepareContext& context) {
  const TensorInfo& x = context.inputs[0];
  const Shape x_shape = ConvInputShape(context.node, x);
  const Shape& w = context.inputs[1].shape;
  if (context.reference || !CanPack(context.node, context.inputs) || x_shape.rank() > 4) {
    return PrepareGeneralConv(context, ReadConv(context.node, x_shape, w));
  }
  const ConvParams p = ReadConvParams(context.node, x_shape, w);
  if (!FitsTiling(p)) return PrepareGeneralConv(context, p.ToNd());
  const ConvConstants constants = {FloatConstant(context, 1), FloatConstant(context, kConvBias),
                                   FloatConstant(context, kConvSlope)};
  const Layout output = context.outputs[0].layout;
  if (context.node.attributes.Has(kTransformedFrom)) {
    return MakeWinogradProduct(p, constants, context.packs);
  }
  const bool blocked = x.layout == Layout::kBlocked && output == Layout::kBlocked;
  if (blocked) {
    if (auto kernel = MakeWinogradConv(p, constants, context.packs)) return kernel;
  }
  const KernelKind kind = ChooseKind(p);
  if (kind == KernelKind::kDepthwise && blocked) {
    return MakeDepthwiseConv(p, constants, context.packs);
  }
  if (constants.weights == nullptr) return PrepareGeneralConv(context, p.ToNd());
  if (kind != KernelKind::kDirect && output == Layout::kRowMajor) {
    return x.layout == Layout::kBlocked ? MakeDotConv(p, constants, context.packs)
                                        : MakePlanarConv(p, constants, context.packs);
  }
  return MakeDirectConv(p, constants, x.layout, output, context.packs);
}

std::optional<SpatialField> ConvField(const FieldContext& context, std::size_t i) {
  if (i == kConvAddend) return SpatialField{};
  if (i != 0 || context.inputs[0].shape.rank() != 4) return std::nullopt;
  const Shape &x = context.inputs[0].shape, &w = context.inputs[1].shape;
  std::optional<SpatialField> field = WindowField(context.node, ReadConv(context.node, x, w).axes);
  if (field && MayUseWinograd(ReadConvParams(context.node, x, w))) {
    for (AxisField& axis : *field) axis.rounding = kWinogradRounding;
  }
  return field;
}

}  // namespace

bool CanShareWinogradInput(const ConvParams& p) {
  return p.batch == 1 && p.pad_top == 1 && p.pad_left == 1 && p.pad_bottom == 1 &&
         p.pad_right == 1 && ChooseKind(p) == KernelKind::kDirect && ChooseWinogradTile(p) == 6;
}

Shape ConvInputShape(const OpNode& node, const TensorInfo& x) {
  const std::vector<std::int64_t> shape = node.attributes.Ints(kTransformedFrom);
  return shape.empty() ? x.shape : Shape(std::span<const std::int64_t>(shape));
}

Shape ConvNd::OutputShape() const {
  Shape shape{batch, out_channels};
  for (const WindowAxis& axis : axes) shape.PushBack(axis.out);
  return shape;
}

double ConvNd::Flops() const {
  double flops =
      2.0 * static_cast<double>(batch * out_channels) * static_cast<double>(in_channels / groups);
  for (const WindowAxis& axis : axes) {
    flops *= static_cast<double>((transposed ? axis.in : axis.out) * axis.kernel);
  }
  return flops;
}

ConvNd ReadConv(const OpNode& node, const Shape& x, const Shape& w) {
  Require(x.rank() >= 3, "X has shape ", x, " instead of [N, C, spatial...]");
  Require(w.rank() == x.rank(), "X ", x, " and W ", w, " differ in rank");
  const std::int64_t groups = node.attributes.Int("group", 1);
  Require(groups >= 1 && w[0] >= 1 && x[1] >= 1 && w[0] % groups == 0 && x[1] % groups == 0 &&
              w[1] == x[1] / groups,
          "X ", x, " and W ", w, " do not fit together in ", groups, " group",
          groups == 1 ? "" : "s");
  const std::span<const std::int64_t> kernel = w.dims().subspan(2);
  RequireKernelShape(node, kernel);
  return {.batch = x[0],
          .in_channels = x[1],
          .out_channels = w[0],
          .groups = groups,
          .axes = ReadWindows(node, x, kernel),
          .epilogue = ReadEpilogue(node),
          .transposed = false};
}

ConvParams ReadConvParams(const OpNode& node, const Shape& x, const Shape& w) {
  Require(x.rank() <= 4, "X ", x, " of a convolution over two spatial axes");
  const ConvNd conv = ReadConv(node, x, w);
  const WindowAxis row{1, 1, 1, 1, 0, 0, 1};  // of a 1-D convolution
  const WindowAxis& h = conv.axes.size() == 1 ? row : conv.axes[0];
  const WindowAxis& v = conv.axes.back();
  return {.batch = conv.batch,
          .in_channels = conv.in_channels,
          .in_height = h.in,
          .in_width = v.in,
          .out_channels = conv.out_channels,
          .out_height = h.out,
          .out_width = v.out,
          .kernel_h = h.kernel,
          .kernel_w = v.kernel,
          .stride_h = h.stride,
          .stride_w = v.stride,
          .dilation_h = h.dilation,
          .dilation_w = v.dilation,
          .pad_top = h.pad_begin,
          .pad_left = v.pad_begin,
          .pad_bottom = h.pad_end,
          .pad_right = v.pad_end,
          .groups = conv.groups,
          .epilogue = conv.epilogue};
}

ConvNd ConvParams::ToNd() const {
  return {.batch = batch,
          .in_channels = in_channels,
          .out_channels = out_channels,
          .groups = groups,
          .axes = {{in_height, kernel_h, stride_h, dilation_h, pad_top, pad_bottom, out_height},
                   {in_width, kernel_w, stride_w, dilation_w, pad_left, pad_right, out_width}},
          .epilogue = epilogue,
          .transposed = false};
}

void InferWinogradInput(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  context.SetOutput(0, x.dtype, WinogradInputShape(x.shape));
}

LayoutChoice WinogradInputLayouts(const LayoutContext&) {
  return {{Layout::kBlocked}, {Layout::kBlocked}};
}

std::unique_ptr<Kernel> PrepareWinogradInput(const PrepareContext& context) {
  return MakeWinogradInput(context.inputs[0].shape);
}

extern const OpDef kConvOp, kFusedConvOp, kWinogradInputOp;
const OpDef kConvOp = {.type = "Conv",
                       .min_inputs = 2,
                       .max_inputs = 3,
                       .infer = InferConv,
                       .prepare = PrepareConv,
                       .layouts = ConvLayouts,
                       .field = ConvField};
const OpDef kFusedConvOp = {.type = "FusedConv",
                            .min_inputs = 2,
                            .max_inputs = 5,
                            .infer = InferConv,
                            .prepare = PrepareConv,
                            .layouts = ConvLayouts,
                            .field = ConvField,
                            .internal = true};
const OpDef kWinogradInputOp = {.type = "WinogradInput",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .infer = InferWinogradInput,
                                .prepare = PrepareWinogradInput,
                                .layouts = WinogradInputLayouts,
                                .internal = true};

}  // namespace tessera
