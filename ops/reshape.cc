// Operators that give the same elements another shape: Reshape, Flatten, Squeeze, Unsqueeze.
// https://onnx.ai/onnx/operators/onnx__Reshape.html and so on.
#include <algorithm>
#include <vector>

#include "ops/op.h"

namespace tessera {
namespace {

void InferReshape(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  Require(context.Input(1).shape.rank() == 1, "the shape is not a vector");
  std::vector<std::int64_t> dims = ConstantInt64s(context.inputs, 1);
  const bool allow_zero =
      context.node.opset >= 14 && context.node.attributes.Int("allowzero", 0) != 0;
  std::int64_t unknown = -1, known = 1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !allow_zero) {
      const int axis = static_cast<int>(i);
      Require(axis < in.shape.rank(), "dimension ", i, " cannot be kept: the input has rank ",
              in.shape.rank());
      dims[i] = in.shape[axis];
    }
    if (dims[i] == -1) {
      Require(unknown < 0, "two dimensions are -1");
      unknown = static_cast<std::int64_t>(i);
      dims[i] = 1;
    }
  }
  const Shape others{std::span<const std::int64_t>(dims)};
  known = others.NumElements();
  const std::int64_t n = in.shape.NumElements();
  if (unknown >= 0) {
    Require(known > 0 && n % known == 0, "shape ", in.shape, " does not fit into ", others,
            " with dimension ", unknown, " to be found");
    dims[static_cast<std::size_t>(unknown)] = n / known;
  }
  const Shape out{std::span<const std::int64_t>(dims)};
  Require(out.NumElements() == n, "cannot reshape ", in.shape, " to ", out);
  context.SetOutput(0, in.dtype, out);
}

void InferFlatten(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const int rank = in.shape.rank();
  std::int64_t axis = context.node.attributes.Int("axis", 1);
  Require(axis >= -rank && axis <= rank, "axis ", axis, " is out of range for rank ", rank);
  if (axis < 0) axis += rank;
  const int split = static_cast<int>(axis);
  context.SetOutput(0, in.dtype,
                    Shape{in.shape.NumElements(0, split), in.shape.NumElements(split, rank)});
}

// The axes of Squeeze and Unsqueeze: an attribute before opset 13, input 1 since.
std::vector<std::int64_t> ReadAxes(const InferContext& context) {
  if (context.node.opset < 13) return context.node.attributes.Ints("axes");
  if (!context.HasInput(1)) return {};
  return ConstantInt64s(context.inputs, 1);
}

std::vector<bool> MarkAxes(const std::vector<std::int64_t>& axes, int rank) {
  std::vector<bool> marked(static_cast<std::size_t>(rank));
  for (const std::int64_t axis : axes) {
    const auto i = static_cast<std::size_t>(NormalizeAxis(axis, rank));
    Require(!marked[i], "axis ", axis, " is given twice");
    marked[i] = true;
  }
  return marked;
}

void InferSqueeze(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const std::vector<std::int64_t> axes = ReadAxes(context);
  const std::vector<bool> marked = MarkAxes(axes, in.shape.rank());
  const bool all =
      context.node.opset < 13 ? !context.node.attributes.Has("axes") : !context.HasInput(1);
  Shape out;
  for (int d = 0; d < in.shape.rank(); ++d) {
    const bool drop = all ? in.shape[d] == 1 : marked[static_cast<std::size_t>(d)];
    Require(!drop || in.shape[d] == 1, "axis ", d, " of shape ", in.shape, " is not 1");
    if (!drop) out.PushBack(in.shape[d]);
  }
  context.SetOutput(0, in.dtype, out);
}

void InferUnsqueeze(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  Require(context.node.opset < 13 ? context.node.attributes.Has("axes") : context.HasInput(1),
          "axes are missing");
  const std::vector<std::int64_t> axes = ReadAxes(context);
  const int rank = in.shape.rank() + static_cast<int>(axes.size());
  Require(rank <= Shape::kMaxRank, "rank ", rank, " is too high");
  const std::vector<bool> marked = MarkAxes(axes, rank);
  Shape out;
  for (int d = 0, from = 0; d < rank; ++d) {
    out.PushBack(marked[static_cast<std::size_t>(d)] ? 1 : in.shape[from++]);
  }
  context.SetOutput(0, in.dtype, out);
}

constexpr OpDef View(std::string_view type, int min_inputs, int max_inputs,
                     void (*infer)(const InferContext&)) {
  return {
      .type = type,
      .min_inputs = min_inputs,
      .max_inputs = max_inputs,
      .infer = infer,
      .is_view = true,
  };
}

}  // namespace

extern const OpDef kFlattenOp, kReshapeOp, kSqueezeOp, kUnsqueezeOp;
const OpDef kFlattenOp = View("Flatten", 1, 1, InferFlatten);
const OpDef kReshapeOp = View("Reshape", 2, 2, InferReshape);
const OpDef kSqueezeOp = View("Squeeze", 1, 2, InferSqueeze);
const OpDef kUnsqueezeOp = View("Unsqueeze", 1, 2, InferUnsqueeze);

}  // namespace tessera
