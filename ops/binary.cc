// Elementwise functions of two tensors (Min and Max: of any number) with numpy broadcasting.
// https://onnx.ai/onnx/operators/ : Add, Div, Max, Min, Mul, PRelu, Pow, Sub.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/epilogue.h"
#include "ops/op.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

using BlockedOperand = ElementLoops::BlockedOperand;
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
    return static_cast<T>(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
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
      return std::min(a, b);
    case BinaryFn::kMax:
      return std::max(a, b);
    case BinaryFn::kPRelu:
      return a < T{0} ? static_cast<T>(ub * ua) : a;
    case BinaryFn::kPow:
      return Power(a, b);
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

// How operand `in` lies beside an output of shape `out` in Layout::kBlocked; nullopt if it cannot.
std::optional<BlockedOperand> ClassifyBlocked(const TensorInfo& in, const Shape& out) {
  if (in.shape == out) return BlockedOperand::kSame;
  if (in.shape.NumElements() == 1) return BlockedOperand::kScalar;
  const int rank = in.shape.rank();
  const bool per_channel = rank >= 3 && in.shape[rank - 1] == 1 && in.shape[rank - 2] == 1 &&
                           in.shape[rank - 3] == out[1];
  if (!per_channel) return std::nullopt;
  if (in.constant && (rank == 3 || in.shape[0] == 1)) return BlockedOperand::kChannels;
  if (!in.constant && rank == 4) return BlockedOperand::kPixel;
  return std::nullopt;
}

LayoutChoice ChooseLayouts(const LayoutContext& context) {
  const Shape& out = context.outputs[0].shape;
  bool any_blocked = false;
  std::vector<Layout> layouts;
  for (const TensorInfo& in : context.inputs) {
    any_blocked = any_blocked || (in.layout == Layout::kBlocked && in.shape == out);
  }
  if (!any_blocked) return {};
  for (const TensorInfo& in : context.inputs) {
    const auto kind = ClassifyBlocked(in, out);
    if (!kind || in.dtype != DType::kFloat32) return {};
    const bool blocked = *kind == BlockedOperand::kSame || *kind == BlockedOperand::kPixel;
    layouts.push_back(blocked ? Layout::kBlocked : Layout::kRowMajor);
  }
  return {layouts, {Layout::kBlocked}};
}

class BinaryKernel final : public Kernel {
 public:
  BinaryKernel(BinaryFn fn, const PrepareContext& context)
      : fn_(fn), epilogue_(ReadEpilogue(context.node)) {
    const TensorInfo& out = context.outputs[0];
    element_bytes_ = static_cast<std::int64_t>(SizeOf(out.dtype));
    vector_ = out.dtype == DType::kFloat32 && context.inputs.back().dtype == DType::kFloat32 &&
              !context.reference;
    row_ = ChooseRow(fn, out.dtype, context.inputs.back().dtype);
    // Min and Max take the first two inputs, then the result so far and the next one.
    const std::size_t last = context.inputs.size() - 1;
    for (std::size_t i = std::min<std::size_t>(1, last); i <= last; ++i) {
      const TensorInfo& b = context.inputs[i];
      steps_.push_back(MakeStep(i <= 1 ? context.inputs[0] : out, b, out, i));
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
      if (!step.a.packed.empty()) a = reinterpret_cast<const std::byte*>(step.a.packed.data());
      if (!step.b.packed.empty()) b = reinterpret_cast<const std::byte*>(step.b.packed.data());
      step.loops.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
        const Row row{a + at[1] * element_bytes_,
                      b + at[2] * step.b_element_bytes,
                      step.a.kind,
                      step.b.kind,
                      out + at[0] * element_bytes_,
                      n};
        row_(fn_, row);
        if (epilogue_.activation != Activation::kNone && &step == &steps_.back()) {
          Activate(static_cast<float*>(row.out), n);
        }
      });
    }
  }

 private:
  struct Operand {
    RowOperand::Kind kind;
    std::vector<float> packed;  // BlockedOperand::kChannels: the constant, padded to whole vectors
  };
  struct Step {
    std::size_t input;  // number of operand b
    std::int64_t b_element_bytes;
    ElementLoops loops;
    Operand a, b;
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
  void Activate(float* out, std::int64_t n) const {
    if (vector_) return ApplyUnary(*AsUnary(epilogue_), out, out, n);
    for (std::int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<float>(ApplyEpilogue(epilogue_, out[i], 0, 0));
    }
  }

  static Step MakeStep(const TensorInfo& a, const TensorInfo& b, const TensorInfo& out,
                       std::size_t input) {
    const std::array<Shape, 2> shapes{a.shape, b.shape};
    const auto b_bytes = static_cast<std::int64_t>(SizeOf(b.dtype));
    if (out.layout != Layout::kBlocked) {
      const ElementLoops loops = ElementLoops::Broadcast(out.shape, shapes);
      const auto kind = [&](int k) {
        return loops.IsConstant(k) ? RowOperand::kScalar : RowOperand::kStream;
      };
      return {input, b_bytes, loops, {kind(1), {}}, {kind(2), {}}};
    }
    const std::array<BlockedOperand, 2> kinds{ClassifyBlocked(a, out.shape).value(),
                                              ClassifyBlocked(b, out.shape).value()};
    return {input, b_bytes, ElementLoops::Blocked(out.shape, kinds, shapes),
            MakeBlockedOperand(kinds[0], a), MakeBlockedOperand(kinds[1], b)};
  }

  static Operand MakeBlockedOperand(BlockedOperand kind, const TensorInfo& info) {
    switch (kind) {
      case BlockedOperand::kSame:
        return {RowOperand::kStream, {}};
      case BlockedOperand::kScalar:
        return {RowOperand::kScalar, {}};
      case BlockedOperand::kPixel:
        return {RowOperand::kLanes, {}};
      case BlockedOperand::kChannels:
        break;
    }
    const std::span<const float> values = info.constant->values<const float>();
    std::vector<float> packed(values.begin(), values.end());
    // The padding channels are divided by this too: 1 keeps them quiet.
    packed.resize(RoundUp(packed.size(), static_cast<std::size_t>(FloatLanes())), 1.f);
    return {RowOperand::kLanes, std::move(packed)};
  }

  BinaryFn fn_;
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

void InferBroadcast(const InferContext& context) {
  const TensorInfo& first = context.Input(0);
  RequireType(first.dtype, NumberTypes());
  Shape out = first.shape;
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    const TensorInfo& in = context.Input(i);
    Require(in.dtype == first.dtype, "operands of types ", first.dtype, " and ", in.dtype);
    out = BroadcastShapes(out, in.shape);
  }
  context.SetOutput(0, first.dtype, out);
}

void InferPow(const InferContext& context) {
  const TensorInfo& base = context.Input(0);
  const TensorInfo& exponent = context.Input(1);
  RequireType(base.dtype, PowBaseTypes());
  RequireType(exponent.dtype, NumberTypes());
  Require(context.node.opset >= 12 || base.dtype == exponent.dtype, "base and exponent of types ",
          base.dtype, " and ", exponent.dtype, " before opset 12");
  context.SetOutput(0, base.dtype, BroadcastShapes(base.shape, exponent.shape));
}

void InferPRelu(const InferContext& context) {
  InferBroadcast(context);
  const Shape& x = context.Input(0).shape;
  Require(context.outputs[0].shape == x, "slope of shape ", context.Input(1).shape,
          " cannot be broadcast to the input's ", x);
}

// The activation of an operator with an epilogue is one of those that AsUnary knows.
void InferFusedMul(const InferContext& context) {
  InferBroadcast(context);
  RequireType(context.Input(0).dtype, TypeList<float>());
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
      .layouts = ChooseLayouts,
      .field = BroadcastField,
      .internal = internal,
  };
}

}  // namespace

extern const OpDef kAddOp, kDivOp, kFusedMulOp, kMaxOp, kMinOp, kMulOp, kPReluOp, kPowOp, kSubOp;
const OpDef kAddOp = BinaryOp<BinaryFn::kAdd>("Add", InferBroadcast);
const OpDef kDivOp = BinaryOp<BinaryFn::kDiv>("Div", InferBroadcast);
const OpDef kFusedMulOp = BinaryOp<BinaryFn::kMul>("FusedMul", InferFusedMul, 2, 2, true);
const OpDef kMaxOp = BinaryOp<BinaryFn::kMax>("Max", InferBroadcast, 1, -1);
const OpDef kMinOp = BinaryOp<BinaryFn::kMin>("Min", InferBroadcast, 1, -1);
const OpDef kMulOp = BinaryOp<BinaryFn::kMul>("Mul", InferBroadcast);
const OpDef kPReluOp = BinaryOp<BinaryFn::kPRelu>("PRelu", InferPRelu);
const OpDef kPowOp = BinaryOp<BinaryFn::kPow>("Pow", InferPow);
const OpDef kSubOp = BinaryOp<BinaryFn::kSub>("Sub", InferBroadcast);

}  // namespace tessera
