// CumSum: running sums along an axis, which may be computed at run time.
// https://onnx.ai/onnx/operators/onnx__CumSum.html
#include <type_traits>

#include "ops/axis_view.h"
#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

using CumSumTypes =
    TypeList<float, double, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;
using CumSumTypesWithHalf =
    TypeList<float, double, Half, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;

void InferCumSum(const InferContext& context) {
  const TensorInfo& axis = context.Input(1);
  RequireType(context.Input(0).dtype, context.node.opset, CumSumTypes(), 14, CumSumTypesWithHalf());
  RequireType(axis.dtype, TypeList<std::int32_t, std::int64_t>());
  Require(axis.shape.rank() <= 1 && axis.shape.NumElements() == 1, "the axis has shape ",
          axis.shape, " instead of one element");
  InferSameAsInput0(context);
}

template <typename T>
class CumSumKernel final : public Kernel {
 public:
  explicit CumSumKernel(const OpNode& node)
      : exclusive_(node.attributes.Int("exclusive", 0) != 0),
        reverse_(node.attributes.Int("reverse", 0) != 0) {}
  std::string_view name() const override { return "cum_sum"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  // Throws Error for an axis out of range.
  void Run(const RunContext& context) const override {
    const TensorView& in = context.inputs[0];
    const TensorView& axis = context.inputs[1];
    const std::int64_t value = axis.dtype == DType::kInt64 ? *axis.data<const std::int64_t>()
                                                           : *axis.data<const std::int32_t>();
    const AxisView view(in.shape, NormalizeAxis(value, in.shape.rank()));
    view.ForLines(context.parallel, [&](std::int64_t o, std::int64_t column, std::int64_t n, int) {
      const std::int64_t offset = view.Offset(o, column);
      Columns(view, in.data<const T>() + offset, context.outputs[0].data<T>() + offset, n);
    });
  }

 private:
  // Integers wrap around; floats are summed in double precision.
  using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  using C = ComputeType<T>;

  void Columns(const AxisView& view, const T* in, T* out, std::int64_t n) const {
    Sum sums[AxisView::kMaxColumns] = {};
    for (std::int64_t i = 0; i < view.count; ++i) {
      const std::int64_t row = (reverse_ ? view.count - 1 - i : i) * view.inner;
      for (std::int64_t j = 0; j < n; ++j) {
        const Sum before = sums[j];
        sums[j] += static_cast<Sum>(static_cast<C>(in[row + j]));
        out[row + j] = static_cast<T>(static_cast<C>(exclusive_ ? before : sums[j]));
      }
    }
  }

  bool exclusive_, reverse_;
};

std::unique_ptr<Kernel> PrepareCumSum(const PrepareContext& context) {
  return Dispatch(
      context.inputs[0].dtype, CumSumTypesWithHalf(), [&](auto tag) -> std::unique_ptr<Kernel> {
        return std::make_unique<CumSumKernel<typename decltype(tag)::type>>(context.node);
      });
}

}  // namespace

extern const OpDef kCumSumOp;
const OpDef kCumSumOp = {
    .type = "CumSum",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferCumSum,
    .prepare = PrepareCumSum,
    .first_opset = 11,
};

}  // namespace tessera
