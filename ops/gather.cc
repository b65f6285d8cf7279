// Gather: slices of a tensor along one axis, chosen by a tensor of indices.
// https://onnx.ai/onnx/operators/onnx__Gather.html
#include <cstring>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

using IndexTypes = TypeList<std::int32_t, std::int64_t>;

void InferGather(const InferContext& context) {
  const TensorInfo& data = context.Input(0);
  const TensorInfo& indices = context.Input(1);
  RequireType(indices.dtype, IndexTypes());
  const int rank = data.shape.rank();
  const int axis = NormalizeAxis(context.node.attributes.Int("axis", 0), rank);
  Require(rank - 1 + indices.shape.rank() <= Shape::kMaxRank, "the output's rank is too high");
  Shape out;
  for (int d = 0; d < axis; ++d) out.PushBack(data.shape[d]);
  for (const std::int64_t dim : indices.shape) out.PushBack(dim);
  for (int d = axis + 1; d < rank; ++d) out.PushBack(data.shape[d]);
  context.SetOutput(0, data.dtype, out);
}

class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(const PrepareContext& context) {
    const TensorInfo& data = context.inputs[0];
    const int rank = data.shape.rank();
    const int axis = NormalizeAxis(context.node.attributes.Int("axis", 0), rank);
    outer_ = data.shape.NumElements(0, axis);
    dim_ = data.shape[axis];
    slice_bytes_ =
        data.shape.NumElements(axis + 1, rank) * static_cast<std::int64_t>(SizeOf(data.dtype));
  }
  std::string_view name() const override { return "gather"; }
  // Throws Error for an index out of range.
  void Run(const RunContext& context) const override {
    Dispatch(context.inputs[1].dtype, IndexTypes(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* indices = context.inputs[1].data<const T>();
      const std::int64_t n = context.inputs[1].size();
      const auto* in = context.inputs[0].data<const std::byte>();
      auto* out = context.outputs[0].data<std::byte>();
      for (std::int64_t i = 0; i < n; ++i) {
        Require(indices[i] >= -dim_ && indices[i] < dim_, "index ", indices[i],
                " is out of range for an axis of ", dim_, " elements");
      }
      context.parallel.For(outer_, [&](std::int64_t o, int) {
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t index = indices[i] < 0 ? indices[i] + dim_ : indices[i];
          std::memcpy(out + (o * n + i) * slice_bytes_, in + (o * dim_ + index) * slice_bytes_,
                      static_cast<std::size_t>(slice_bytes_));
        }
      });
    });
  }

 private:
  std::int64_t outer_, dim_, slice_bytes_;
};

std::unique_ptr<Kernel> PrepareGather(const PrepareContext& context) {
  return std::make_unique<GatherKernel>(context);
}

}  // namespace

extern const OpDef kGatherOp;
const OpDef kGatherOp = {
    .type = "Gather",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferGather,
    .prepare = PrepareGather,
};

}  // namespace tessera
