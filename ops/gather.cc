// Parts of a tensor that a tensor of indices chooses: Gather takes slices along one axis,
// GatherElements one element along an axis for each place of the output, GatherND slices by tuples
// of indices. Indices may be negative; those out of range are an Error when the kernel runs.
// https://onnx.ai/onnx/operators/onnx__Gather.html
// https://onnx.ai/onnx/operators/onnx__GatherElements.html
// https://onnx.ai/onnx/operators/onnx__GatherND.html
#include <array>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/indexing.h"
#include "ops/op.h"

namespace tessera {
namespace {

int Axis(const OpNode& node, const Shape& data) {
  return NormalizeAxis(node.attributes.Int("axis", 0), data.rank());
}

void InferGather(const InferContext& context) {
  const TensorInfo& data = context.Input(0);
  const TensorInfo& indices = context.Input(1);
  RequireType(indices.dtype, IndexTypes());
  const int rank = data.shape.rank();
  const int axis = Axis(context.node, data.shape);
  Require(rank - 1 + indices.shape.rank() <= Shape::kMaxRank, "the output's rank is too high");
  Shape out;
  for (int d = 0; d < axis; ++d) out.PushBack(data.shape[d]);
  for (const std::int64_t dim : indices.shape) out.PushBack(dim);
  for (int d = axis + 1; d < rank; ++d) out.PushBack(data.shape[d]);
  context.SetOutput(0, data.dtype, out);
}

class GatherKernel final : public Kernel {
 public:
  explicit GatherKernel(const PrepareContext& context)
      : slices_(context.inputs[0].dtype, context.inputs[0].shape,
                Axis(context.node, context.inputs[0].shape)) {}
  std::string_view name() const override { return "gather"; }
  void Run(const RunContext& context) const override {
    const auto* in = context.inputs[0].data<const std::byte>();
    Dispatch(context.inputs[1].dtype, IndexTypes(), [&](auto tag) {
      const auto* indices = context.inputs[1].data<const typename decltype(tag)::type>();
      CopySlices(slices_.outer, context.inputs[1].size(), slices_.slice_bytes,
                 context.outputs[0].bytes, context.parallel, [&](std::int64_t o, std::int64_t i) {
                   return in + slices_.Offset(o, ResolveIndex(indices[i], slices_.dim));
                 });
    });
  }

 private:
  AxisSlices slices_;
};

void InferGatherElements(const InferContext& context) {
  const TensorInfo& data = context.Input(0);
  const TensorInfo& indices = context.Input(1);
  RequireType(indices.dtype, IndexTypes());
  RequireElementIndices(data.shape, indices.shape, Axis(context.node, data.shape));
  context.SetOutput(0, data.dtype, indices.shape);
}

template <typename T, typename Index>
class GatherElementsKernel final : public Kernel {
 public:
  explicit GatherElementsKernel(const PrepareContext& context)
      : axis_(context.inputs[0].shape, Axis(context.node, context.inputs[0].shape)),
        loops_(axis_.Loops(context.inputs[1].shape)) {}
  std::string_view name() const override { return "gather_elements"; }
  void Run(const RunContext& context) const override {
    const T* data = context.inputs[0].data<const T>();
    const Index* indices = context.inputs[1].data<const Index>();
    T* out = context.outputs[0].data<T>();
    const std::int64_t step = loops_.RowStride(ElementAxis::kData);
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      const T* from = data + at[ElementAxis::kData];
      for (std::int64_t i = 0; i < n; ++i) {
        out[at[0] + i] = from[i * step + axis_.Offset(indices[at[1] + i])];
      }
    });
  }

 private:
  ElementAxis axis_;
  ElementLoops loops_;
};

std::unique_ptr<Kernel> PrepareGatherElements(const PrepareContext& context) {
  return DispatchSize(context.inputs[0].dtype, [&](auto element) {
    return Dispatch(context.inputs[1].dtype, IndexTypes(),
                    [&](auto index) -> std::unique_ptr<Kernel> {
                      using T = typename decltype(element)::type;
                      using Index = typename decltype(index)::type;
                      return std::make_unique<GatherElementsKernel<T, Index>>(context);
                    });
  });
}

// The number of leading axes that data and indices have in common; since opset 12.
int BatchDims(const OpNode& node, const Shape& data, const Shape& indices) {
  const std::int64_t dims = node.opset >= 12 ? node.attributes.Int("batch_dims", 0) : 0;
  Require(dims >= 0 && dims < std::min(data.rank(), indices.rank()), "batch_dims ", dims,
          " for data ", data, " and indices ", indices);
  return static_cast<int>(dims);
}

void InferGatherND(const InferContext& context) {
  const TensorInfo& data = context.Input(0);
  const TensorInfo& indices = context.Input(1);
  RequireType(indices.dtype, TypeList<std::int64_t>());
  const int batch = BatchDims(context.node, data.shape, indices.shape);
  const int last = indices.shape.rank() - 1;
  const IndexTuples tuples(data.shape, batch, indices.shape[last]);
  Shape out;
  for (int d = 0; d < last; ++d) {
    Require(d >= batch || indices.shape[d] == data.shape[d], "batches of data ", data.shape,
            " and indices ", indices.shape, " differ");
    out.PushBack(indices.shape[d]);
  }
  for (int d = batch + static_cast<int>(tuples.length()); d < data.shape.rank(); ++d) {
    out.PushBack(data.shape[d]);
  }
  context.SetOutput(0, data.dtype, out);
}

class GatherNDKernel final : public Kernel {
 public:
  explicit GatherNDKernel(const PrepareContext& context)
      : GatherNDKernel(context.inputs[0].shape, context.inputs[1].shape,
                       BatchDims(context.node, context.inputs[0].shape, context.inputs[1].shape)) {}
  std::string_view name() const override { return "gather_nd"; }
  void Run(const RunContext& context) const override {
    const auto* in = context.inputs[0].data<const std::byte>();
    const auto* indices = context.inputs[1].data<const std::int64_t>();
    const auto bytes = static_cast<std::int64_t>(SizeOf(context.inputs[0].dtype));
    CopySlices(batches_, tuples_per_batch_, tuples_.slice() * bytes, context.outputs[0].bytes,
               context.parallel, [&](std::int64_t b, std::int64_t i) {
                 const auto* tuple = indices + (b * tuples_per_batch_ + i) * tuples_.length();
                 return in + (b * batch_stride_ + tuples_.Offset(tuple)) * bytes;
               });
  }

 private:
  GatherNDKernel(const Shape& data, const Shape& indices, int batch)
      : tuples_(data, batch, indices[indices.rank() - 1]),
        batches_(data.NumElements(0, batch)),
        batch_stride_(data.NumElements(batch, data.rank())),
        tuples_per_batch_(indices.NumElements(batch, indices.rank() - 1)) {}

  IndexTuples tuples_;
  std::int64_t batches_, batch_stride_, tuples_per_batch_;
};

}  // namespace

extern const OpDef kGatherElementsOp, kGatherNDOp, kGatherOp;
const OpDef kGatherElementsOp = {
    .type = "GatherElements",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferGatherElements,
    .prepare = PrepareGatherElements,
    .first_opset = 11,
};
const OpDef kGatherNDOp = {
    .type = "GatherND",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferGatherND,
    .prepare = PrepareKernel<GatherNDKernel>,
    .first_opset = 11,
};
const OpDef kGatherOp = {
    .type = "Gather",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferGather,
    .prepare = PrepareKernel<GatherKernel>,
};

}  // namespace tessera
