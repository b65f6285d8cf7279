// LpNormalization: elements divided by the L1 or L2 norm of their line along an axis. A line of
// zeros stays zeros.
// https://onnx.ai/onnx/operators/onnx__LpNormalization.html
#include <cmath>

#include "ops/axis_view.h"
#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

int Axis(const OpNode& node, int rank) {
  return NormalizeAxis(node.attributes.Int("axis", -1), rank);
}

void InferLpNormalization(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  RequireType(in.dtype, FloatTypes());
  Axis(context.node, in.shape.rank());
  const std::int64_t p = context.node.attributes.Int("p", 2);
  Require(p == 1 || p == 2, "p is ", p, " instead of 1 or 2");
  InferSameAsInput0(context);
}

template <typename T>
class LpNormalizationKernel final : public Kernel {
 public:
  explicit LpNormalizationKernel(const PrepareContext& context)
      : view_(context.inputs[0].shape, Axis(context.node, context.inputs[0].shape.rank())),
        squares_(context.node.attributes.Int("p", 2) == 2) {}
  std::string_view name() const override { return "lp_normalization"; }
  bool CanOverwriteInput(std::size_t) const override { return true; }
  void Run(const RunContext& context) const override {
    view_.ForLines(context.parallel, [&](std::int64_t o, std::int64_t column, std::int64_t n, int) {
      const std::int64_t offset = view_.Offset(o, column);
      Columns(context.inputs[0].data<const T>() + offset, context.outputs[0].data<T>() + offset, n);
    });
  }

 private:
  using C = ComputeType<T>;

  void Columns(const T* in, T* out, std::int64_t n) const {
    double norms[AxisView::kMaxColumns] = {};
    for (std::int64_t i = 0; i < view_.count; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto x = static_cast<double>(static_cast<C>(in[i * view_.inner + j]));
        norms[j] += squares_ ? x * x : std::abs(x);
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      if (squares_) norms[j] = std::sqrt(norms[j]);
      if (norms[j] == 0) norms[j] = 1;
    }
    for (std::int64_t i = 0; i < view_.count; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto x = static_cast<double>(static_cast<C>(in[i * view_.inner + j]));
        out[i * view_.inner + j] = static_cast<T>(static_cast<C>(x / norms[j]));
      }
    }
  }

  AxisView view_;
  bool squares_;
};

std::unique_ptr<Kernel> PrepareLpNormalization(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<LpNormalizationKernel<typename decltype(tag)::type>>(context);
  });
}

// Pointwise in space along channels.
std::optional<SpatialField> LpNormalizationField(const FieldContext& context, std::size_t) {
  const int rank = context.inputs[0].shape.rank();
  if (rank != 4 || Axis(context.node, rank) > 1) return std::nullopt;
  return SpatialField{};
}

}  // namespace

extern const OpDef kLpNormalizationOp;
const OpDef kLpNormalizationOp = {
    .type = "LpNormalization",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferLpNormalization,
    .prepare = PrepareLpNormalization,
    .field = LpNormalizationField,
};

}  // namespace tessera
