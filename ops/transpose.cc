// Transpose: a copy with permuted strides.
// https://onnx.ai/onnx/operators/onnx__Transpose.html
#include <vector>

#include "ops/op.h"
#include "ops/strided_copy.h"

namespace tessera {
namespace {

// Input axis of each output axis.
std::vector<int> Permutation(const OpNode& node, int rank) {
  std::vector<int> axes;
  const std::vector<std::int64_t> perm = node.attributes.Ints("perm");
  if (!node.attributes.Has("perm")) {
    for (int d = rank; d-- > 0;) axes.push_back(d);
    return axes;
  }
  Require(perm.size() == static_cast<std::size_t>(rank), "perm has ", perm.size(),
          " entries for rank ", rank);
  std::vector<bool> used(perm.size());
  for (const std::int64_t p : perm) {
    const auto axis = static_cast<std::size_t>(NormalizeAxis(p, rank));
    Require(!used[axis], "axis ", p, " is twice in perm");
    used[axis] = true;
    axes.push_back(static_cast<int>(axis));
  }
  return axes;
}

void InferTranspose(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  Shape out;
  for (const int axis : Permutation(context.node, in.shape.rank())) out.PushBack(in.shape[axis]);
  context.SetOutput(0, in.dtype, out);
}

std::unique_ptr<Kernel> PrepareTranspose(const PrepareContext& context) {
  const TensorInfo& in = context.inputs[0];
  const auto in_strides = RowMajorStrides(in.shape);
  std::vector<std::int64_t> strides;
  for (const int axis : Permutation(context.node, in.shape.rank())) {
    strides.push_back(in_strides[static_cast<std::size_t>(axis)]);
  }
  return MakeStridedCopyKernel("transpose",
                               StridedCopy(in.dtype, context.outputs[0].shape.dims(), strides));
}

}  // namespace

extern const OpDef kTransposeOp;
const OpDef kTransposeOp = {
    .type = "Transpose",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferTranspose,
    .prepare = PrepareTranspose,
};

}  // namespace tessera
