// Elementwise functions of two tensors (Max, Mean, Min and Sum: of any number) with numpy
// broadcasting. Integers wrap around; divided by 0 they are 0.
// https://onnx.ai/onnx/operators/ : Add, Div, Max, Mean, Min, Mul, PRelu, Pow, Sub, Sum.
// FusedCompare is the comparison of float32 that its attribute "function" names, cast to float32.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/broadcast.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/epilogue.h"
#include "ops/op.h"

namespace tessera {
namespace {

// What arithmetic took at first.
using WideTypes =
    TypeList<float, double, Half, std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>;
using PowBaseTypes = TypeList<float, double, Half, std::int32_t, std::int64_t>;

// Whole powers by squaring; wraps around like every other integer operation here.
template <typename T>
T IntegerPower(T base, std::int64_t exponent) {
  if (exponent < 0) {  // the reciprocal, truncated
    if (base == static_cast<T>(-1)) return exponent % 2 != 0 ? base : T{1};
    return base == T{1} ? T{1} : T{0};
  }
  std::uint64_t result = 1, factor = static_cast<std::uint64_t>(base);
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}

template <typename T, typename E>
T Power(T base, E exponent) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<E>) {
    return IntegerPower(base, static_cast<std::int64_t>(exponent));
  } else {
    return ConvertElement<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
}

template <typename T>
bool IsNan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <typename T>
T Evaluate(BinaryFn fn, T a, T b) {
  // Integers are added and multiplied as unsigned, so that overflow wraps around.
  using U = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
  const U ua = static_cast<U>(a), ub = static_cast<U>(b);
  switch (fn) {
    case BinaryFn::kAdd:
      return static_cast<T>(ua + ub);
    case BinaryFn::kSub:
      return static_cast<T>(ua - ub);
    case BinaryFn::kMul:
      return static_cast<T>(ua * ub);
    case BinaryFn::kDiv:
      if constexpr (std::is_integral_v<T>) {
        // The specification leaves these two open; the CPU would trap.
        if (b == 0) return 0;
        if (std::is_signed_v<T> && b == static_cast<T>(-1)) return static_cast<T>(U{0} - ua);
      }
      return static_cast<T>(a / b);
    case BinaryFn::kMin:
      return a < b || IsNan(a) ? a : b;
    case BinaryFn::kMax:
      return a > b || IsNan(a) ? a : b;
    case BinaryFn::kPRelu:
      return a < T{0} ? static_cast<T>(ub * ua) : a;
    case BinaryFn::kPow:
      return Power(a, b);
    case BinaryFn::kEqual:
      return static_cast<T>(a == b);
    case BinaryFn::kGreater:
      return static_cast<T>(a > b);
    case BinaryFn::kGreaterOrEqual:
      return static_cast<T>(a >= b);
    case BinaryFn::kLess:
      return static_cast<T>(a < b);
    case BinaryFn::kLessOrEqual:
      return static_cast<T>(a <= b);
  }
  return a;
}

// One row of a broadcast: operands move along or stay, see RowOperand.
struct Row {
  const void* a;
  const void* b;
  RowOperand::Kind a_kind, b_kind;
  void* out;
  std::int64_t n;
};

template <typename T>
void PlainRow(BinaryFn fn, const Row& row) {
  using C = ComputeType<T>;
  const T* a = static_cast<const T*>(row.a);
  const T* b = static_cast<const T*>(row.b);
  T* out = static_cast<T*>(row.out);
  const std::int64_t a_step = row.a_kind == RowOperand::kStream ? 1 : 0;
  const std::int64_t b_step = row.b_kind == RowOperand::kStream ? 1 : 0;
  for (std::int64_t i = 0; i < row.n; ++i) {
    out[i] = static_cast<T>(Evaluate<C>(fn, a[i * a_step], b[i * b_step]));
  }
}

// Pow since opset 12: the exponent has a type of its own.
template <typename T, typename E>
void PlainPowRow(BinaryFn, const Row& row) {
  const T* a = static_cast<const T*>(row.a);
  const E* b = static_cast<const E*>(row.b);
  T* out = static_cast<T*>(row.out);
  const std::int64_t a_step = row.a_kind == RowOperand::kStream ? 1 : 0;
  const std::int64_t b_step = row.b_kind == RowOperand::kStream ? 1 : 0;
  for (std::int64_t i = 0; i < row.n; ++i) {
    out[i] = static_cast<T>(Power<ComputeType<T>, ComputeType<E>>(a[i * a_step], b[i * b_step]));
  }
}

void VectorRow(BinaryFn fn, const Row& row) {
  ApplyBinary(fn, {static_cast<const float*>(row.a), row.a_kind},
              {static_cast<const float*>(row.b), row.b_kind}, static_cast<float*>(row.out), row.n);
}

using RowFunction = void (*)(BinaryFn, const Row&);

class BinaryKernel final : public Kernel {
 public:
  // The result is divided by the number of inputs if `mean` says so (of floats).
  BinaryKernel(BinaryFn fn, const PrepareContext& context, bool mean = false)
      : fn_(fn), epilogue_(ReadEpilogue(context.node)) {
    const TensorInfo& out = context.outputs[0];
    if (context.inputs.size() == 1) {
      // Any of these functions of one input is that input, and so is the maximum with itself.
      fn_ = BinaryFn::kMax;
    } else if (mean) {
      count_ = Dispatch(out.dtype, FloatTypes(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        return Tensor::FromVector<T>({},
                                     {static_cast<T>(static_cast<float>(context.inputs.size()))});
      });
    }
    element_bytes_ = static_cast<std::int64_t>(SizeOf(out.dtype));
    vector_ = out.dtype == DType::kFloat32 && context.inputs.back().dtype == DType::kFloat32 &&
              !context.reference;
    row_ = ChooseRow(fn, out.dtype, context.inputs.back().dtype);
    // Those of any number take the first two inputs, then the result so far and the next one.
    const std::size_t last = context.inputs.size() - 1;
    for (std::size_t i = std::min<std::size_t>(1, last); i <= last; ++i) {
      const TensorInfo& b = context.inputs[i];
      const std::array inputs{i <= 1 ? context.inputs[0] : out, b};
      steps_.push_back(
          {i, static_cast<std::int64_t>(SizeOf(b.dtype)), BroadcastOperands(inputs, out)});
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(2, context.inputs.size()); ++i) {
      const TensorInfo& in = context.inputs[i];
      overwritable_[i] =
          in.shape == out.shape && in.layout == out.layout && SizeOf(in.dtype) == SizeOf(out.dtype);
    }
  }

  std::string_view name() const override { return vector_ ? "binary_vector" : "binary_plain"; }
  bool CanOverwriteInput(std::size_t i) const override { return i < 2 && overwritable_[i]; }
  void Run(const RunContext& context) const override {
    auto* out = context.outputs[0].data<std::byte>();
    for (const Step& step : steps_) {
      const auto* a = step.input <= 1 ? context.inputs[0].data<const std::byte>() : out;
      const auto* b = context.inputs[step.input].data<const std::byte>();
      a = step.operands.Start(0, a);
      b = step.operands.Start(1, b);
      step.operands.loops().Run(
          context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
            const Row row{a + at[1] * element_bytes_,   b + at[2] * step.b_element_bytes,
                          step.operands.kind(0),        step.operands.kind(1),
                          out + at[0] * element_bytes_, n};
            row_(fn_, row);
            if (&step == &steps_.back()) Finish(row);
          });
    }
  }

 private:
  struct Step {
    std::size_t input;  // number of operand b
    std::int64_t b_element_bytes;
    BroadcastOperands operands;
  };

  RowFunction ChooseRow(BinaryFn fn, DType a, DType b) const {
    if (vector_) return VectorRow;
    if (a == b) {
      return Dispatch(a, NumberTypes(), [](auto tag) -> RowFunction {
        return PlainRow<typename decltype(tag)::type>;
      });
    }
    Require(fn == BinaryFn::kPow, "operands of types ", a, " and ", b);
    return Dispatch(a, PowBaseTypes(), [&](auto base) {
      return Dispatch(b, NumberTypes(), [](auto exponent) -> RowFunction {
        return PlainPowRow<typename decltype(base)::type, typename decltype(exponent)::type>;
      });
    });
  }

  // A row that has just been written is in the cache still.
  void Finish(const Row& row) const {
    if (count_.view().present()) {
      row_(BinaryFn::kDiv, {row.out, count_.view().bytes, RowOperand::kStream, RowOperand::kScalar,
                            row.out, row.n});
    }
    if (epilogue_.activation != Activation::kNone) Activate(static_cast<float*>(row.out), row.n);
  }

  void Activate(float* out, std::int64_t n) const {
    if (vector_) return ApplyUnary(*AsUnary(epilogue_), out, out, n);
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<float>(ApplyEpilogue(epilogue_, out[i], 0, 0));
    }
  }

  BinaryFn fn_;
  Tensor count_;       // what the result is divided by, if it is there
  Epilogue epilogue_;  // of float32 results only
  bool vector_;
  RowFunction row_;
  std::int64_t element_bytes_;
  std::array<bool, 2> overwritable_{};
  std::vector<Step> steps_;
};

template <BinaryFn fn>
std::unique_ptr<Kernel> PrepareBinary(const PrepareContext& context) {
  return std::make_unique<BinaryKernel>(fn, context);
}

std::unique_ptr<Kernel> PrepareMean(const PrepareContext& context) {
  return std::make_unique<BinaryKernel>(BinaryFn::kAdd, context, true);
}

std::unique_ptr<Kernel> PrepareFusedCompare(const PrepareContext& context) {
  const std::string function = context.node.attributes.String("function", "");
  if (function == "Equal") return PrepareBinary<BinaryFn::kEqual>(context);
  if (function == "Greater") return PrepareBinary<BinaryFn::kGreater>(context);
  if (function == "GreaterOrEqual") return PrepareBinary<BinaryFn::kGreaterOrEqual>(context);
  if (function == "Less") return PrepareBinary<BinaryFn::kLess>(context);
  Require(function == "LessOrEqual", "unknown function '", function, "'");
  return PrepareBinary<BinaryFn::kLessOrEqual>(context);
}

// Types since opset kSince; those before are Before.
template <typename Types, typename Before = Types, int kSince = 0>
void InferBroadcast(const InferContext& context) {
  const TensorInfo& first = context.Input(0);
  RequireType(first.dtype, context.node.opset, Before(), kSince, Types());
  Shape out = first.shape;
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    const TensorInfo& in = context.Input(i);
    Require(in.dtype == first.dtype, "operands of types ", first.dtype, " and ", in.dtype);
    out = BroadcastShapes(out, in.shape);
  }
  context.SetOutput(0, first.dtype, out);
}

constexpr auto InferArithmetic = InferBroadcast<NumberTypes, WideTypes, 14>;

// Operators of any number of inputs.
template <typename Types, typename Before = Types, int kSince = 0>
void InferVariadic(const InferContext& context) {
  InferBroadcast<Types, Before, kSince>(context);
  for (const TensorInfo& in : context.inputs) {
    Require(context.node.opset >= 8 || in.shape == context.inputs[0].shape, "inputs of shapes ",
            context.inputs[0].shape, " and ", in.shape, " before opset 8");
  }
}

void InferPow(const InferContext& context) {
  const TensorInfo& base = context.Input(0);
  const TensorInfo& exponent = context.Input(1);
  RequireType(base.dtype, context.node.opset, FloatTypes(), 12, PowBaseTypes());
  RequireType(exponent.dtype, NumberTypes());
  Require(context.node.opset >= 12 || base.dtype == exponent.dtype, "base and exponent of types ",
          base.dtype, " and ", exponent.dtype, " before opset 12");
  context.SetOutput(0, base.dtype, BroadcastShapes(base.shape, exponent.shape));
}

void InferPRelu(const InferContext& context) {
  InferBroadcast<WideTypes, FloatTypes, 9>(context);
  const Shape& x = context.Input(0).shape;
  Require(context.outputs[0].shape == x, "slope of shape ", context.Input(1).shape,
          " cannot be broadcast to the input's ", x);
}

// The activation of an operator with an epilogue is one of those that AsUnary knows.
void InferFusedMul(const InferContext& context) {
  InferBroadcast<TypeList<float>>(context);
  Require(AsUnary(ReadEpilogue(context.node)).has_value(), "no such activation of a product");
}

template <BinaryFn fn>
constexpr OpDef BinaryOp(std::string_view type, void (*infer)(const InferContext&), int min = 2,
                         int max = 2, bool internal = false) {
  return {
      .type = type,
      .min_inputs = min,
      .max_inputs = max,
      .infer = infer,
      .prepare = PrepareBinary<fn>,
      .layouts = BroadcastLayouts,
      .field = BroadcastField,
      .internal = internal,
  };
}

}  // namespace

extern const OpDef kAddOp, kDivOp, kFusedCompareOp, kFusedMulOp, kMaxOp, kMeanOp, kMinOp, kMulOp,
    kPReluOp, kPowOp, kSubOp, kSumOp;
const OpDef kAddOp = BinaryOp<BinaryFn::kAdd>("Add", InferArithmetic);
const OpDef kDivOp = BinaryOp<BinaryFn::kDiv>("Div", InferArithmetic);
const OpDef kFusedCompareOp = {
    .type = "FusedCompare",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferBroadcast<TypeList<float>>,
    .prepare = PrepareFusedCompare,
    .layouts = BroadcastLayouts,
    .field = BroadcastField,
    .internal = true,
};
const OpDef kFusedMulOp = BinaryOp<BinaryFn::kMul>("FusedMul", InferFusedMul, 2, 2, true);
const OpDef kMaxOp =
    BinaryOp<BinaryFn::kMax>("Max", InferVariadic<NumberTypes, FloatTypes, 12>, 1, -1);
const OpDef kMeanOp = {
    .type = "Mean",
    .min_inputs = 1,
    .max_inputs = -1,
    .infer = InferVariadic<FloatTypes>,
    .prepare = PrepareMean,
    .layouts = BroadcastLayouts,
    .field = BroadcastField,
};
const OpDef kMinOp =
    BinaryOp<BinaryFn::kMin>("Min", InferVariadic<NumberTypes, FloatTypes, 12>, 1, -1);
const OpDef kMulOp = BinaryOp<BinaryFn::kMul>("Mul", InferArithmetic);
const OpDef kPReluOp = BinaryOp<BinaryFn::kPRelu>("PRelu", InferPRelu);
const OpDef kPowOp = BinaryOp<BinaryFn::kPow>("Pow", InferPow);
const OpDef kSubOp = BinaryOp<BinaryFn::kSub>("Sub", InferArithmetic);
const OpDef kSumOp = BinaryOp<BinaryFn::kAdd>("Sum", InferVariadic<FloatTypes>, 1, -1);

}  // namespace tessera
