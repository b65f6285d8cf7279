// Compress: the slices along an axis, or the elements, for which a condition holds.
// https://onnx.ai/onnx/operators/onnx__Compress.html
#include <vector>

#include "ops/indexing.h"
#include "ops/op.h"

namespace tessera {
namespace {

// The input as slices; without an axis they are its elements.
AxisSlices ReadSlices(const OpNode& node, const TensorInfo& in) {
  if (!node.attributes.Has("axis")) return {in.dtype, Shape{in.shape.NumElements()}, 0};
  return {in.dtype, in.shape, NormalizeAxis(node.attributes.Int("axis", 0), in.shape.rank())};
}

std::vector<std::int64_t> Selected(const Tensor& condition) {
  std::vector<std::int64_t> selected;
  for (std::int64_t i = 0; i < condition.size(); ++i) {
    if (condition.data<const bool>()[i]) selected.push_back(i);
  }
  return selected;
}

void InferCompress(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const TensorInfo& condition = context.Input(1);
  Require(condition.dtype == DType::kBool && condition.shape.rank() == 1, "condition is ",
          condition.dtype, " ", condition.shape, " instead of a vector of bool");
  const AxisSlices slices = ReadSlices(context.node, in);
  Require(condition.shape[0] <= slices.dim, "a condition for ", condition.shape[0], " slices of ",
          slices.dim);
  const auto count = static_cast<std::int64_t>(Selected(context.Constant(1)).size());
  if (!context.node.attributes.Has("axis")) return context.SetOutput(0, in.dtype, Shape{count});
  Shape out = in.shape;
  out[NormalizeAxis(context.node.attributes.Int("axis", 0), out.rank())] = count;
  context.SetOutput(0, in.dtype, out);
}

class CompressKernel final : public Kernel {
 public:
  explicit CompressKernel(const PrepareContext& context)
      : slices_(ReadSlices(context.node, context.inputs[0])),
        selected_(Selected(ConstantInput(context.inputs, 1))) {}
  std::string_view name() const override { return "compress"; }
  void Run(const RunContext& context) const override {
    const auto* in = context.inputs[0].data<const std::byte>();
    CopySlices(slices_.outer, static_cast<std::int64_t>(selected_.size()), slices_.slice_bytes,
               context.outputs[0].bytes, context.parallel, [&](std::int64_t o, std::int64_t i) {
                 return in + slices_.Offset(o, selected_[static_cast<std::size_t>(i)]);
               });
  }

 private:
  AxisSlices slices_;
  std::vector<std::int64_t> selected_;
};

}  // namespace

extern const OpDef kCompressOp;
const OpDef kCompressOp = {
    .type = "Compress",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferCompress,
    .prepare = PrepareKernel<CompressKernel>,
    .first_opset = 9,
};

}  // namespace tessera
