// ArgMax and ArgMin: the place of the highest or lowest element along an axis.
// https://onnx.ai/onnx/operators/onnx__ArgMax.html, onnx__ArgMin.html
#include <cmath>
#include <type_traits>

#include "ops/axis_view.h"
#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

int Axis(const OpNode& node, int rank) {
  return NormalizeAxis(node.attributes.Int("axis", 0), rank);
}

void InferArgMax(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  RequireType(in.dtype, NumberTypes());
  const int axis = Axis(context.node, in.shape.rank());
  const bool keep = context.node.attributes.Int("keepdims", 1) != 0;
  Require(context.node.opset >= 12 || !context.node.attributes.Has("select_last_index"),
          "select_last_index is of later opsets");
  Shape out;
  for (int d = 0; d < in.shape.rank(); ++d) {
    if (d != axis || keep) out.PushBack(d == axis ? 1 : in.shape[d]);
  }
  Require(in.shape[axis] > 0 || out.NumElements() == 0, "no elements along axis ", axis, " of ",
          in.shape);
  context.SetOutput(0, DType::kInt64, out);
}

// NaN is above (for ArgMin: below) everything.
template <typename C, bool max>
bool IsBetter(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(a)) return !std::isnan(b);
  }
  return max ? a > b : a < b;
}

template <typename T, bool max>
class ArgMaxKernel final : public Kernel {
 public:
  explicit ArgMaxKernel(const PrepareContext& context)
      : view_(context.inputs[0].shape, Axis(context.node, context.inputs[0].shape.rank())),
        last_(context.node.attributes.Int("select_last_index", 0) != 0) {}
  std::string_view name() const override { return max ? "arg_max" : "arg_min"; }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    auto* out = context.outputs[0].data<std::int64_t>();
    view_.ForLines(context.parallel, [&](std::int64_t o, std::int64_t column, std::int64_t n, int) {
      Columns(in + view_.Offset(o, column), out + o * view_.inner + column, n);
    });
  }

 private:
  void Columns(const T* in, std::int64_t* out, std::int64_t n) const {
    using C = ComputeType<T>;
    C best[AxisView::kMaxColumns];
    for (std::int64_t j = 0; j < n; ++j) best[j] = static_cast<C>(in[j]), out[j] = 0;
    for (std::int64_t i = 1; i < view_.count; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const C x = static_cast<C>(in[i * view_.inner + j]);
        if (last_ ? IsBetter<C, max>(best[j], x) : !IsBetter<C, max>(x, best[j])) continue;
        best[j] = x;
        out[j] = i;
      }
    }
  }

  AxisView view_;
  bool last_;
};

template <bool max>
std::unique_ptr<Kernel> PrepareArgMax(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, NumberTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<ArgMaxKernel<typename decltype(tag)::type, max>>(context);
  });
}

// Pointwise in space along channels.
std::optional<SpatialField> ArgMaxField(const FieldContext& context, std::size_t) {
  const int rank = context.inputs[0].shape.rank();
  if (rank != 4 || Axis(context.node, rank) > 1 || context.outputs[0].shape.rank() != 4)
    return std::nullopt;
  return SpatialField{};
}

template <bool max>
constexpr OpDef ArgMaxOp(std::string_view type) {
  return {
      .type = type,
      .min_inputs = 1,
      .max_inputs = 1,
      .infer = InferArgMax,
      .prepare = PrepareArgMax<max>,
      .field = ArgMaxField,
  };
}

}  // namespace

extern const OpDef kArgMaxOp, kArgMinOp;
const OpDef kArgMaxOp = ArgMaxOp<true>("ArgMax");
const OpDef kArgMinOp = ArgMaxOp<false>("ArgMin");

}  // namespace tessera
