// Comparisons and logic: elementwise with a bool result.
// https://onnx.ai/onnx/operators/ : And, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Not,
// Or.
#include <array>
#include <functional>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

// a_step and b_step are 1 for an operand that moves along the row, 0 for one that stays.
using RowFunction = void (*)(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step,
                             bool* out, std::int64_t n);

template <typename T, typename Function>
void Row(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, bool* out,
         std::int64_t n) {
  using C = ComputeType<T>;
  const Function function;
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  // Loops of their own, which the compiler vectorises.
  if (b_step == 0) {
    const C other = *y;
    for (std::int64_t i = 0; i < n; ++i) out[i] = function(static_cast<C>(x[i * a_step]), other);
  } else if (a_step == 0) {
    const C other = *x;
    for (std::int64_t i = 0; i < n; ++i) out[i] = function(other, static_cast<C>(y[i]));
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = function(static_cast<C>(x[i]), static_cast<C>(y[i]));
    }
  }
}

class CompareKernel final : public Kernel {
 public:
  CompareKernel(const PrepareContext& context, RowFunction row)
      : row_(row),
        element_bytes_(static_cast<std::int64_t>(SizeOf(context.inputs[0].dtype))),
        loops_(ElementLoops::Broadcast(
            context.outputs[0].shape,
            std::array{context.inputs[0].shape, context.inputs[1].shape})) {}

  std::string_view name() const override { return "compare"; }
  void Run(const RunContext& context) const override {
    const auto* a = context.inputs[0].data<const std::byte>();
    const auto* b = context.inputs[1].data<const std::byte>();
    bool* out = context.outputs[0].data<bool>();
    const std::int64_t a_step = loops_.IsConstant(1) ? 0 : 1, b_step = loops_.IsConstant(2) ? 0 : 1;
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      row_(a + at[1] * element_bytes_, a_step, b + at[2] * element_bytes_, b_step, out + at[0], n);
    });
  }

 private:
  RowFunction row_;
  std::int64_t element_bytes_;
  ElementLoops loops_;
};

// Function is a functor type such as std::less<>, Types the element types it is defined for.
template <typename Function, typename Types>
std::unique_ptr<Kernel> PrepareCompare(const PrepareContext& context) {
  const RowFunction row = Dispatch(context.inputs[0].dtype, Types(), [](auto tag) -> RowFunction {
    return Row<typename decltype(tag)::type, Function>;
  });
  return std::make_unique<CompareKernel>(context, row);
}

template <typename Types>
void InferCompare(const InferContext& context) {
  const TensorInfo& a = context.Input(0);
  const TensorInfo& b = context.Input(1);
  RequireType(a.dtype, Types());
  Require(a.dtype == b.dtype, "operands of types ", a.dtype, " and ", b.dtype);
  context.SetOutput(0, DType::kBool, BroadcastShapes(a.shape, b.shape));
}

class NotKernel final : public Kernel {
 public:
  explicit NotKernel(const Shape& shape) : loops_(ElementLoops::Broadcast(shape, {&shape, 1})) {}
  std::string_view name() const override { return "not"; }
  bool CanOverwriteInput(std::size_t) const override { return true; }
  void Run(const RunContext& context) const override {
    const bool* in = context.inputs[0].data<const bool>();
    bool* out = context.outputs[0].data<bool>();
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) out[at[0] + i] = !in[at[1] + i];
    });
  }

 private:
  ElementLoops loops_;
};

std::unique_ptr<Kernel> PrepareNot(const PrepareContext& context) {
  return std::make_unique<NotKernel>(context.outputs[0].shape);
}

void InferNot(const InferContext& context) {
  RequireType(context.Input(0).dtype, TypeList<bool>());
  InferSameAsInput0(context);
}

template <typename Function, typename Types>
constexpr OpDef CompareOp(std::string_view type) {
  return {
      .type = type,
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = InferCompare<Types>,
      .prepare = PrepareCompare<Function, Types>,
      .field = BroadcastField,
  };
}

}  // namespace

extern const OpDef kAndOp, kEqualOp, kGreaterOp, kGreaterOrEqualOp, kLessOp, kLessOrEqualOp, kNotOp,
    kOrOp;
const OpDef kAndOp = CompareOp<std::logical_and<>, TypeList<bool>>("And");
const OpDef kEqualOp = CompareOp<std::equal_to<>, AllTypes>("Equal");
const OpDef kGreaterOp = CompareOp<std::greater<>, NumberTypes>("Greater");
const OpDef kGreaterOrEqualOp = CompareOp<std::greater_equal<>, NumberTypes>("GreaterOrEqual");
const OpDef kLessOp = CompareOp<std::less<>, NumberTypes>("Less");
const OpDef kLessOrEqualOp = CompareOp<std::less_equal<>, NumberTypes>("LessOrEqual");
const OpDef kNotOp = {
    .type = "Not",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferNot,
    .prepare = PrepareNot,
    .field = PointwiseField,
};
const OpDef kOrOp = CompareOp<std::logical_or<>, TypeList<bool>>("Or");

}  // namespace tessera
