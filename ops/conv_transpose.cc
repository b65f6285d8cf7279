// ConvTranspose: parameters, shapes and the plain kernel. Where weights are known, a pass
// (engine/passes/split_conv_transpose.cc) turns it into a convolution and InterleavePhases.
// https://onnx.ai/onnx/operators/onnx__ConvTranspose.html
#include <algorithm>
#include <string>
#include <vector>

#include "ops/conv.h"
#include "ops/elements.h"

namespace tessera {
namespace {

void InferConvTranspose(const InferContext& context) {
  const TensorInfo &x = context.Input(0), &w = context.Input(1);
  RequireType(x.dtype, FloatTypes());
  Require(w.dtype == x.dtype || w.dtype == DType::kFloat16, "X is ", x.dtype, ", W is ", w.dtype);
  const ConvNd conv = ReadConvTranspose(context.node, x.shape, w.shape);
  if (context.HasInput(kConvBias)) {
    const Shape& bias = context.Input(kConvBias).shape;
    Require(bias == Shape{conv.out_channels}, "bias of shape ", bias, " for ", conv.out_channels,
            " output channels");
  }
  context.SetOutput(0, x.dtype, conv.OutputShape());
}

std::unique_ptr<Kernel> PrepareConvTranspose(const PrepareContext& context) {
  return MakeReferenceConv(
      ReadConvTranspose(context.node, context.inputs[0].shape, context.inputs[1].shape));
}

std::optional<SpatialField> ConvTransposeField(const FieldContext& context, std::size_t i) {
  const Shape& x = context.inputs[0].shape;
  // With output_shape, the pads depend on the size of the input.
  if (i != 0 || x.rank() != 4 || context.node.attributes.Has("output_shape")) return std::nullopt;
  const ConvNd conv = ReadConvTranspose(context.node, x, context.inputs[1].shape);
  SpatialField field;
  for (std::size_t a = 0; a < 2; ++a) {
    const WindowAxis& axis = conv.axes[a];
    const auto stride = static_cast<double>(axis.stride);
    // Where it is split into convolutions of the input, these may be 3x3.
    field[a] = {axis.stride, 1, static_cast<double>(axis.pad_begin - axis.extent() + 1) / stride,
                static_cast<double>(axis.pad_begin) / stride, kWinogradRounding};
  }
  return field;
}

}  // namespace

ConvNd ReadConvTranspose(const OpNode& node, const Shape& x, const Shape& w) {
  Require(x.rank() >= 3, "X has shape ", x, " instead of [N, C, spatial...]");
  Require(w.rank() == x.rank(), "X ", x, " and W ", w, " differ in rank");
  const std::int64_t groups = node.attributes.Int("group", 1);
  Require(groups >= 1 && w[0] >= 1 && w[1] >= 1 && w[0] == x[1] && x[1] % groups == 0, "X ", x,
          " and W ", w, " do not fit together in ", groups, " group", groups == 1 ? "" : "s");
  const int axes = x.rank() - 2;
  const std::span<const std::int64_t> kernel = w.dims().subspan(2);
  RequireKernelShape(node, kernel);
  const std::vector<std::int64_t> strides = AxisInts(node, "strides", axes, 1, 1);
  const std::vector<std::int64_t> dilations = AxisInts(node, "dilations", axes, 1, 1);
  const std::vector<std::int64_t> more = AxisInts(node, "output_padding", axes, 0, 0);
  const bool has_shape = !node.attributes.Ints("output_shape").empty();
  const std::vector<std::int64_t> shape = AxisInts(node, "output_shape", axes, 0, 0);
  const std::vector<std::int64_t> pads = AxisInts(node, "pads", 2 * axes, 0, 0);
  const AutoPad auto_pad = ReadAutoPad(node);
  const bool same = auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower;

  ConvNd conv{.batch = x[0],
              .in_channels = x[1],
              .out_channels = w[1] * groups,
              .groups = groups,
              .axes = {},
              .epilogue = {},
              .transposed = true};
  for (int a = 0; a < axes; ++a) {
    const auto i = static_cast<std::size_t>(a);
    Require(kernel[i] >= 1, "a kernel of size ", kernel[i]);
    WindowAxis axis{x[a + 2],   kernel[i],
                    strides[i], dilations[i],
                    pads[i],    pads[i + static_cast<std::size_t>(axes)],
                    0};
    Require(axis.in >= 1, "nothing to convolve in X ", x);
    constexpr std::int64_t kMost = std::int64_t{1} << 40;  // more than any tensor has
    Require(axis.kernel <= kMost / axis.dilation && axis.in <= kMost / axis.stride,
            "an output beyond any memory, X ", x, ", W ", w);
    const std::int64_t all = axis.stride * (axis.in - 1) + more[i] + axis.extent();
    if (has_shape || same) {
      axis.out = has_shape ? shape[i] : axis.in * axis.stride;
      // Where more is asked for than there is, it is appended.
      const std::int64_t total = std::max<std::int64_t>(0, all - axis.out);
      axis.pad_begin = auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
      axis.pad_end = total - axis.pad_begin;
    } else {
      axis.out = all - axis.pad_begin - axis.pad_end;
    }
    Require(axis.out >= 1, "an output of ", axis.out, " elements along axis ", a + 2, ", X ", x);
    conv.axes.push_back(axis);
  }
  return conv;
}

extern const OpDef kConvTransposeOp;
const OpDef kConvTransposeOp = {
    .type = "ConvTranspose",
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = InferConvTranspose,
    .prepare = PrepareConvTranspose,
    .field = ConvTransposeField,
};

}  // namespace tessera
