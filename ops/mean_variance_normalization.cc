// MeanVarianceNormalization: (x - mean) / (standard deviation + 1e-9) over some axes.
// https://onnx.ai/onnx/operators/onnx__MeanVarianceNormalization.html
#include <cmath>
#include <vector>

#include "ops/axis_group.h"
#include "ops/elements.h"
#include "ops/moments.h"
#include "ops/op.h"

namespace tessera {
namespace {

std::vector<bool> NormalizedAxes(const OpNode& node, int rank) {
  std::vector<bool> normalized(static_cast<std::size_t>(rank));
  for (const std::int64_t axis : node.attributes.Ints("axes", {0, 2, 3})) {
    normalized[static_cast<std::size_t>(NormalizeAxis(axis, rank))] = true;
  }
  return normalized;
}

void InferMeanVarianceNormalization(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  RequireType(x.dtype, FloatTypes());
  NormalizedAxes(context.node, x.shape.rank());
  InferSameAsInput0(context);
}

template <typename T>
class MeanVarianceNormalizationKernel final : public Kernel {
 public:
  explicit MeanVarianceNormalizationKernel(const PrepareContext& context)
      : vector_(!context.reference) {
    const Shape& x = context.inputs[0].shape;
    const std::vector<bool> normalized = NormalizedAxes(context.node, x.rank());
    const auto strides = RowMajorStrides(x);
    for (int d = 0; d < x.rank(); ++d) {
      const auto u = static_cast<std::size_t>(d);
      (normalized[u] ? reduced_ : kept_).Add(x[d], strides[u]);
    }
    count_ = reduced_.Count();
    if (reduced_.dims.empty()) return;
    row_ = reduced_.dims.back();
    row_stride_ = reduced_.strides.back();
    reduced_.dims.pop_back();
    reduced_.strides.pop_back();
  }
  std::string_view name() const override { return "mean_variance_normalization"; }
  bool CanOverwriteInput(std::size_t) const override { return true; }
  void Run(const RunContext& context) const override {
    if (context.outputs[0].size() == 0) return;
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    context.parallel.For(kept_.Count(), [&](std::int64_t index, int) {
      const std::int64_t start = kept_.Offset(index);
      const auto count = static_cast<double>(count_);
      double sum = 0, squares = 0;
      reduced_.ForEach([&](std::int64_t offset) {
        sum += SumOf(in + start + offset, row_stride_, row_, vector_);
      });
      const double mean = sum / count;
      reduced_.ForEach([&](std::int64_t offset) {
        squares += SumOfSquaredDeviations(in + start + offset, row_stride_, mean, row_, vector_);
      });
      const double factor = 1 / (std::sqrt(squares / count) + 1e-9);
      reduced_.ForEach([&](std::int64_t offset) {
        NormalizeRow(in + start + offset, row_stride_, mean, factor, 0, out + start + offset, row_,
                     vector_);
      });
    });
  }

 private:
  AxisGroup kept_, reduced_;  // reduced_ without the rows
  bool vector_;
  std::int64_t count_, row_ = 1, row_stride_ = 1;
};

std::unique_ptr<Kernel> PrepareMeanVarianceNormalization(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<MeanVarianceNormalizationKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kMeanVarianceNormalizationOp;
const OpDef kMeanVarianceNormalizationOp = {
    .type = "MeanVarianceNormalization",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferMeanVarianceNormalization,
    .prepare = PrepareMeanVarianceNormalization,
    .first_opset = 9,
};

}  // namespace tessera
