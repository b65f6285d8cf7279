// QuantizeLinear and DequantizeLinear: per tensor, per slice along an axis, or per block of an
// axis.
// https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html
// https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html
#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "ops/element_loops.h"
#include "ops/quantize.h"
#include "ops/quantize_image.h"

namespace tessera {
namespace {

using RealTypes = TypeList<float, Half, std::int32_t>;
using ScaleTypes = TypeList<float, Half>;
using DequantizedTypes =
    TypeList<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t>;

// Which elements share a scale and a zero point.
struct Granularity {
  int axis = -1;           // -1: all of them
  std::int64_t block = 0;  // so many neighbours along the axis; 0: all of a slice
};

Granularity ReadGranularity(const OpNode& node, const Shape& x, const Shape& scale) {
  const std::int64_t block = node.opset >= 21 ? node.attributes.Int("block_size", 0) : 0;
  Require(block >= 0, "block_size is ", block);
  const bool blocked = block > 0 && scale.rank() >= 1 && scale.rank() == x.rank();
  if (!blocked && scale.rank() <= 1 && scale.NumElements() == 1) return {};
  Require(node.opset >= 13, "a scale of shape ", scale, ", before opset 13 it is a scalar");
  const int axis = NormalizeAxis(node.attributes.Int("axis", 1), x.rank());
  Shape expected{x[axis]};
  if (blocked) {
    expected = x;
    expected[axis] = x[axis] / block + (x[axis] % block != 0 ? 1 : 0);
  }
  Require(scale == expected, "a scale of shape ", scale, " for x ", x, " along axis ", axis,
          blocked ? StrCat(" in blocks of ", block) : "");
  return {axis, blocked ? block : 0};
}

// Loops over x whose operands are the output, x, and the scale (the zero point lies like that).
struct Part {
  ElementLoops loops;
  std::int64_t x_offset, scale_offset;
};

std::vector<Part> MakeParts(const Granularity& g, const Shape& x) {
  using Strides = ElementLoops::Strides;
  std::vector<Part> parts;
  const auto add = [&](std::span<const std::int64_t> dims, const Strides& own, const Strides& scale,
                       std::int64_t x_offset, std::int64_t scale_offset) {
    parts.push_back({ElementLoops(dims, std::array{own, own, scale}), x_offset, scale_offset});
  };
  if (g.axis < 0) {
    add(std::array{x.NumElements()}, {1}, {0}, 0, 0);
    return parts;
  }
  const std::int64_t outer = x.NumElements(0, g.axis), size = x[g.axis];
  const std::int64_t inner = x.NumElements(g.axis + 1, x.rank());
  const std::int64_t slice = size * inner;
  if (g.block == 0) {
    add(std::array{outer, size, inner}, {slice, inner, 1}, {0, 1, 0}, 0, 0);
    return parts;
  }
  // The last block may be smaller.
  const std::int64_t whole = size / g.block, rest = size % g.block;
  const std::int64_t scales = (whole + (rest != 0 ? 1 : 0)) * inner;
  if (whole > 0) {
    add(std::array{outer, whole, g.block, inner}, {slice, g.block * inner, inner, 1},
        {scales, inner, 0, 1}, 0, 0);
  }
  if (rest > 0) {
    add(std::array{outer, rest, inner}, {slice, inner, 1}, {scales, 0, 1}, whole * g.block * inner,
        whole * inner);
  }
  return parts;
}

// Elements that follow each other; their scales do, too, or are one.
struct QuantizedRow {
  const void* x;
  const void* scale;
  const void* zero_point;  // null: 0
  bool one_scale;
  void* y;
  std::int64_t n;
};
using RowFunction = void (*)(const QuantizedRow&);

// Integers are divided in double precision, where the quotient is as good as exact.
template <typename X, typename S, typename Q>
void PlainQuantize(const QuantizedRow& row) {
  using C = std::conditional_t<std::is_integral_v<X>, double, float>;
  const X* x = static_cast<const X*>(row.x);
  const S* scale = static_cast<const S*>(row.scale);
  const Q* zero_point = static_cast<const Q*>(row.zero_point);
  Q* y = static_cast<Q*>(row.y);
  const std::int64_t step = row.one_scale ? 0 : 1;
  for (std::int64_t i = 0; i < row.n; ++i) {
    y[i] = RoundAndSaturate<Q>(
        static_cast<C>(x[i]) / static_cast<C>(scale[i * step]),
        zero_point == nullptr ? 0 : static_cast<std::int32_t>(zero_point[i * step]));
  }
}

template <typename Q>
void VectorQuantize(const QuantizedRow& row) {
  if (!row.one_scale) return PlainQuantize<float, float, Q>(row);
  QuantizeRow(static_cast<const float*>(row.x), *static_cast<const float*>(row.scale),
              row.zero_point == nullptr ? 0 : *static_cast<const Q*>(row.zero_point), DTypeOf<Q>(),
              row.y, row.n);
}

template <typename Q, typename S>
void PlainDequantize(const QuantizedRow& row) {
  const Q* x = static_cast<const Q*>(row.x);
  const S* scale = static_cast<const S*>(row.scale);
  const Q* zero_point = static_cast<const Q*>(row.zero_point);
  S* y = static_cast<S*>(row.y);
  const std::int64_t step = row.one_scale ? 0 : 1;
  for (std::int64_t i = 0; i < row.n; ++i) {
    std::int32_t value = x[i];
    if constexpr (!std::is_same_v<Q, std::int32_t>) {
      if (zero_point != nullptr) value -= zero_point[i * step];
    }
    y[i] = static_cast<S>(static_cast<float>(value) * static_cast<float>(scale[i * step]));
  }
}

template <typename Q>
void VectorDequantize(const QuantizedRow& row) {
  if (!row.one_scale) return PlainDequantize<Q, float>(row);
  std::int32_t zero_point = 0;
  if constexpr (!std::is_same_v<Q, std::int32_t>) {
    if (row.zero_point != nullptr) zero_point = *static_cast<const Q*>(row.zero_point);
  }
  DequantizeRow(row.x, DTypeOf<Q>(), *static_cast<const float*>(row.scale), zero_point,
                static_cast<float*>(row.y), row.n);
}

// Both operators: a row function along the loops.
class QuantizationKernel final : public Kernel {
 public:
  QuantizationKernel(const PrepareContext& context, std::string_view name, RowFunction row)
      : name_(name),
        row_(row),
        parts_(MakeParts(
            ReadGranularity(context.node, context.inputs[0].shape, context.inputs[1].shape),
            context.inputs[0].shape)) {}

  std::string_view name() const override { return name_; }
  void Run(const RunContext& context) const override {
    const TensorView& x = context.inputs[0];
    const TensorView& scale = context.inputs[1];
    const TensorView& y = context.outputs[0];
    const bool has_zero_point = context.HasInput(2);
    if (has_zero_point && context.inputs[2].dtype == DType::kInt32) {
      CheckNoZeroPoint(context.inputs[2]);
    }
    const auto at = [](const TensorView& t, std::int64_t element) {
      return t.data<std::byte>() + element * static_cast<std::int64_t>(SizeOf(t.dtype));
    };
    for (const Part& part : parts_) {
      part.loops.Run(context.parallel, [&](const ElementLoops::Offsets& offsets, std::int64_t n) {
        const std::int64_t s = part.scale_offset + offsets[2];
        row_({at(x, part.x_offset + offsets[1]), at(scale, s),
              has_zero_point ? at(context.inputs[2], s) : nullptr, part.loops.IsConstant(2),
              at(y, part.x_offset + offsets[0]), n});
      });
    }
  }

 private:
  // Values of type int32 have none; files that say so with zeros are common.
  static void CheckNoZeroPoint(const TensorView& zero_points) {
    for (std::int64_t i = 0; i < zero_points.size(); ++i) {
      const std::int32_t value = zero_points.data<const std::int32_t>()[i];
      Require(value == 0, "x of type int32 has no zero point, it is ", value);
    }
  }

  std::string_view name_;
  RowFunction row_;
  std::vector<Part> parts_;
};

// A zero point lies like the scale, up to the rank of a single one.
void RequireZeroPoint(const InferContext& context, DType type) {
  if (!context.HasInput(2)) return;
  const TensorInfo& zero_point = context.Input(2);
  const Shape& scale = context.Input(1).shape;
  const bool single = scale.rank() <= 1 && scale.NumElements() == 1 &&
                      zero_point.shape.rank() <= 1 && zero_point.shape.NumElements() == 1;
  Require(single || zero_point.shape == scale, "zero points of shape ", zero_point.shape,
          " for scales of shape ", scale);
  Require(zero_point.dtype == type, "a zero point of type ", zero_point.dtype, " for values of ",
          type);
}

void InferQuantizeLinear(const InferContext& context) {
  const int opset = context.node.opset;
  const TensorInfo& x = context.Input(0);
  const TensorInfo& scale = context.Input(1);
  RequireType(x.dtype, RealTypes());
  const DType scale_type = opset >= 19 ? x.dtype : DType::kFloat32;
  Require(scale.dtype == scale_type && (opset >= 19 || x.dtype != DType::kFloat16), "x is ",
          x.dtype, ", its scale ", scale.dtype);
  DType type = context.HasInput(2) ? context.Input(2).dtype : DType::kUint8;
  const std::int64_t asked =
      opset >= 21 ? context.node.attributes.Int("output_dtype", 0) : std::int64_t{0};
  if (asked != 0) {
    const auto output_type = DTypeFromOnnx(asked);
    Require(output_type.has_value(), "output_dtype is ", asked, ", which is not supported");
    Require(!context.HasInput(2) || type == *output_type, "output_dtype is ", *output_type,
            ", the zero point's type ", type);
    type = *output_type;
  }
  RequireType(type, opset, ByteTypes(), 21, QuantizedTypes());
  RequireZeroPoint(context, type);
  ReadGranularity(context.node, x.shape, scale.shape);
  context.SetOutput(0, type, x.shape);
}

void InferDequantizeLinear(const InferContext& context) {
  const int opset = context.node.opset;
  const TensorInfo& x = context.Input(0);
  const TensorInfo& scale = context.Input(1);
  using OldTypes = TypeList<std::int8_t, std::uint8_t, std::int32_t>;
  RequireType(x.dtype, opset, OldTypes(), 21, DequantizedTypes());
  RequireType(scale.dtype, opset, TypeList<float>(), 19, ScaleTypes());
  RequireZeroPoint(context, x.dtype);
  ReadGranularity(context.node, x.shape, scale.shape);
  context.SetOutput(0, scale.dtype, x.shape);
}

// Whether one scale serves all of an image that is known at run time only.
bool IsImageWithOneScale(const LayoutContext& context) {
  const TensorInfo &x = context.inputs[0], &scale = context.inputs[1];
  return x.shape.rank() == 4 && x.constant == nullptr && scale.dtype == DType::kFloat32 &&
         ReadGranularity(context.node, x.shape, scale.shape).axis < 0;
}

// The scales of an image's channels, if each has its own but all share a zero point, and both are
// constants; else empty.
std::span<const float> ChannelScales(const OpNode& node, std::span<const TensorInfo> inputs) {
  const TensorInfo &x = inputs[0], &scale = inputs[1];
  if (x.shape.rank() != 4 || x.constant != nullptr || scale.constant == nullptr ||
      scale.dtype != DType::kFloat32) {
    return {};
  }
  const Granularity g = ReadGranularity(node, x.shape, scale.shape);
  if (g.axis != 1 || g.block != 0) return {};
  if (inputs.size() > 2 && inputs[2].present) {
    if (inputs[2].constant == nullptr) return {};
    const auto zeros = inputs[2].constant->values<const std::uint8_t>();
    if (std::ranges::any_of(zeros, [&](std::uint8_t z) { return z != zeros[0]; })) return {};
  }
  return scale.constant->values<const float>();
}

// Channels-last, as integer convolutions want it.
LayoutChoice QuantizeLinearLayouts(const LayoutContext& context) {
  const TensorInfo& x = context.inputs[0];
  if (x.dtype != DType::kFloat32 || context.outputs[0].dtype != DType::kUint8 ||
      (!IsImageWithOneScale(context) && ChannelScales(context.node, context.inputs).empty())) {
    return {};
  }
  return {{x.layout}, {Layout::kChannelsLast}};
}

// Channels-last as it comes. Blocked tensors of few channels would be mostly padding.
LayoutChoice DequantizeLinearLayouts(const LayoutContext& context) {
  const TensorInfo& x = context.inputs[0];
  if (x.layout != Layout::kChannelsLast || x.dtype != DType::kUint8 ||
      !IsImageWithOneScale(context)) {
    return {};
  }
  return {{Layout::kChannelsLast}, {x.shape[1] > 4 ? Layout::kBlocked : Layout::kRowMajor}};
}

std::unique_ptr<Kernel> PrepareQuantizeLinear(const PrepareContext& context) {
  if (context.outputs[0].layout == Layout::kChannelsLast) {
    return MakeImageQuantizer(context.inputs[0].shape, context.inputs[0].layout,
                              ChannelScales(context.node, context.inputs));
  }
  const DType x = context.inputs[0].dtype, s = context.inputs[1].dtype;
  const bool vector = x == DType::kFloat32 && !context.reference;
  const RowFunction row = Dispatch(context.outputs[0].dtype, QuantizedTypes(), [&](auto q) {
    using Q = typename decltype(q)::type;
    if (vector) return RowFunction{VectorQuantize<Q>};
    return Dispatch(x, RealTypes(), [&](auto real) {
      return Dispatch(s, RealTypes(), [](auto scale) -> RowFunction {
        return PlainQuantize<typename decltype(real)::type, typename decltype(scale)::type, Q>;
      });
    });
  });
  return std::make_unique<QuantizationKernel>(context,
                                              vector ? "quantize_vector" : "quantize_plain", row);
}

std::unique_ptr<Kernel> PrepareDequantizeLinear(const PrepareContext& context) {
  if (context.inputs[0].layout == Layout::kChannelsLast) {
    return MakeImageDequantizer(context.inputs[0].shape, context.outputs[0].layout);
  }
  const DType s = context.inputs[1].dtype;
  const bool vector = s == DType::kFloat32 && !context.reference;
  const RowFunction row = Dispatch(context.inputs[0].dtype, DequantizedTypes(), [&](auto q) {
    using Q = typename decltype(q)::type;
    if (vector) return RowFunction{VectorDequantize<Q>};
    return Dispatch(s, ScaleTypes(), [](auto scale) -> RowFunction {
      return PlainDequantize<Q, typename decltype(scale)::type>;
    });
  });
  return std::make_unique<QuantizationKernel>(
      context, vector ? "dequantize_vector" : "dequantize_plain", row);
}

// Pointwise unless the scale varies over the picture.
std::optional<SpatialField> QuantizationField(const FieldContext& context, std::size_t i) {
  const Granularity g =
      ReadGranularity(context.node, context.inputs[0].shape, context.inputs[1].shape);
  if (i != 0 || g.axis > 1) return std::nullopt;
  return PointwiseField(context, i);
}

}  // namespace

extern const OpDef kDequantizeLinearOp, kQuantizeLinearOp;
const OpDef kDequantizeLinearOp = {
    .type = "DequantizeLinear",
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = InferDequantizeLinear,
    .prepare = PrepareDequantizeLinear,
    .layouts = DequantizeLinearLayouts,
    .field = QuantizationField,
    .first_opset = 10,
};
const OpDef kQuantizeLinearOp = {
    .type = "QuantizeLinear",
    .min_inputs = 2,
    .max_inputs = 3,
    .infer = InferQuantizeLinear,
    .prepare = PrepareQuantizeLinear,
    .layouts = QuantizeLinearLayouts,
    .field = QuantizationField,
    .first_opset = 10,
};

}  // namespace tessera
