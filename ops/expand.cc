// Expand and Tile: a tensor that is repeated along axes.
// https://onnx.ai/onnx/operators/onnx__Expand.html
// https://onnx.ai/onnx/operators/onnx__Tile.html
#include <vector>

#include "ops/checked_math.h"
#include "ops/op.h"
#include "ops/strided_copy.h"

namespace tessera {
namespace {

void InferExpand(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  Require(context.Input(1).shape.rank() == 1, "the shape is not a vector");
  const Shape wanted(ConstantInt64s(context.inputs, 1));
  context.SetOutput(0, in.dtype, BroadcastShapes(in.shape, wanted));
}

std::unique_ptr<Kernel> PrepareExpand(const PrepareContext& context) {
  const TensorInfo& in = context.inputs[0];
  const Shape& out = context.outputs[0].shape;
  const auto own = RowMajorStrides(in.shape);
  std::vector<std::int64_t> strides(static_cast<std::size_t>(out.rank()));
  for (int d = 0; d < in.shape.rank(); ++d) {
    const auto to = static_cast<std::size_t>(d + out.rank() - in.shape.rank());
    if (in.shape[d] != 1) strides[to] = own[static_cast<std::size_t>(d)];
  }
  return MakeStridedCopyKernel("expand", StridedCopy(in.dtype, out.dims(), strides));
}

void InferTile(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const std::vector<std::int64_t> repeats = ConstantInt64s(context.inputs, 1);
  Require(repeats.size() == static_cast<std::size_t>(in.shape.rank()), repeats.size(),
          " repeats for shape ", in.shape);
  Shape out = in.shape;
  for (int d = 0; d < out.rank(); ++d) {
    const std::int64_t n = repeats[static_cast<std::size_t>(d)];
    Require(n >= 0, "axis ", d, " cannot be repeated ", n, " times");
    out[d] = CheckedMul(out[d], n);
  }
  context.SetOutput(0, in.dtype, out);
}

// Each axis becomes two: the repetitions, which do not move in the input, and the axis.
std::unique_ptr<Kernel> PrepareTile(const PrepareContext& context) {
  const TensorInfo& in = context.inputs[0];
  const Shape& out = context.outputs[0].shape;
  const auto own = RowMajorStrides(in.shape);
  std::vector<std::int64_t> dims, strides;
  for (int d = 0; d < in.shape.rank(); ++d) {
    dims.push_back(in.shape[d] == 0 ? 0 : out[d] / in.shape[d]);
    dims.push_back(in.shape[d]);
    strides.push_back(0);
    strides.push_back(own[static_cast<std::size_t>(d)]);
  }
  return MakeStridedCopyKernel("tile", StridedCopy(in.dtype, dims, strides));
}

}  // namespace

extern const OpDef kExpandOp, kTileOp;
const OpDef kExpandOp = {
    .type = "Expand",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferExpand,
    .prepare = PrepareExpand,
    .first_opset = 8,
};
const OpDef kTileOp = {
    .type = "Tile",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferTile,
    .prepare = PrepareTile,
};

}  // namespace tessera
