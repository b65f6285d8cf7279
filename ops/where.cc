// Where: elements of X or Y, as a condition says.
// https://onnx.ai/onnx/operators/onnx__Where.html
#include <array>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

void InferWhere(const InferContext& context) {
  const TensorInfo& condition = context.Input(0);
  const TensorInfo& x = context.Input(1);
  const TensorInfo& y = context.Input(2);
  Require(condition.dtype == DType::kBool, "condition of type ", condition.dtype);
  Require(x.dtype == y.dtype, "operands of types ", x.dtype, " and ", y.dtype);
  context.SetOutput(0, x.dtype,
                    BroadcastShapes(condition.shape, BroadcastShapes(x.shape, y.shape)));
}

template <typename T>
class WhereKernel final : public Kernel {
 public:
  explicit WhereKernel(const PrepareContext& context)
      : loops_(ElementLoops::Broadcast(context.outputs[0].shape,
                                       std::array{context.inputs[0].shape, context.inputs[1].shape,
                                                  context.inputs[2].shape})) {
    const Shape& out = context.outputs[0].shape;
    for (std::size_t i = 1; i < 3; ++i) overwritable_[i] = context.inputs[i].shape == out;
  }
  std::string_view name() const override { return "where"; }
  bool CanOverwriteInput(std::size_t i) const override { return overwritable_[i]; }
  void Run(const RunContext& context) const override {
    const bool* condition = context.inputs[0].data<const bool>();
    const T* x = context.inputs[1].data<const T>();
    const T* y = context.inputs[2].data<const T>();
    T* out = context.outputs[0].data<T>();
    const auto step = [&](int k) { return loops_.IsConstant(k) ? 0 : 1; };
    const std::int64_t c_step = step(1), x_step = step(2), y_step = step(3);
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        const T a = x[at[2] + i * x_step], b = y[at[3] + i * y_step];
        out[at[0] + i] = condition[at[1] + i * c_step] ? a : b;
      }
    });
  }

 private:
  ElementLoops loops_;
  std::array<bool, 3> overwritable_{};
};

std::unique_ptr<Kernel> PrepareWhere(const PrepareContext& context) {
  return DispatchSize(context.outputs[0].dtype, [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<WhereKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kWhereOp;
const OpDef kWhereOp = {
    .type = "Where",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = InferWhere,
    .prepare = PrepareWhere,
    .field = BroadcastField,
    .first_opset = 9,
};

}  // namespace tessera
