// Elementwise functions of one tensor.
// https://onnx.ai/onnx/operators/ : Abs, Elu, Exp, HardSigmoid, HardSwish, LeakyRelu, Neg, Relu,
// Sigmoid, Sqrt, Tanh.
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op.h"

namespace tessera {
namespace {

using SignedTypes =
    TypeList<float, double, Half, std::int8_t, std::int16_t, std::int32_t, std::int64_t>;

template <typename T>
T Evaluate(const Unary& unary, T x) {
  if constexpr (std::is_integral_v<T>) {
    // Negation wraps around at the lowest value, as hardware does.
    using U = std::make_unsigned_t<T>;
    const T negative = static_cast<T>(static_cast<U>(0) - static_cast<U>(x));
    if constexpr (std::is_unsigned_v<T>) return x;  // Abs; infer admits no other
    switch (unary.fn) {
      case UnaryFn::kAbs:
        return x < 0 ? negative : x;
      case UnaryFn::kNeg:
        return negative;
      default:
        return x < 0 ? T{0} : x;  // Relu
    }
  } else {
    const T alpha = static_cast<T>(unary.alpha), beta = static_cast<T>(unary.beta);
    const auto clamp = [](T v, T lo, T hi) { return v < lo ? lo : v > hi ? hi : v; };
    switch (unary.fn) {
      case UnaryFn::kAbs:
        return std::abs(x);
      case UnaryFn::kClip:
        return clamp(x, alpha, beta);
      case UnaryFn::kElu:
        return x < 0 ? alpha * std::expm1(x) : x;
      case UnaryFn::kExp:
        return std::exp(x);
      case UnaryFn::kHardSigmoid:
        return clamp(alpha * x + beta, T{0}, T{1});
      case UnaryFn::kHardSwish:
        return x * clamp(x / 6 + T{0.5}, T{0}, T{1});
      case UnaryFn::kLeakyRelu:
        return x < 0 ? alpha * x : x;
      case UnaryFn::kNeg:
        return -x;
      case UnaryFn::kRelu:
        return x < 0 ? T{0} : x;
      case UnaryFn::kSigmoid:
        return 1 / (1 + std::exp(-x));
      case UnaryFn::kSqrt:
        return std::sqrt(x);
      case UnaryFn::kTanh:
        return std::tanh(x);
    }
    return x;
  }
}

template <typename T>
void PlainRow(const Unary& unary, const void* in, void* out, std::int64_t n) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] = static_cast<T>(Evaluate<ComputeType<T>>(unary, from[i]));
  }
}

void VectorRow(const Unary& unary, const void* in, void* out, std::int64_t n) {
  ApplyUnary(unary, static_cast<const float*>(in), static_cast<float*>(out), n);
}

class UnaryKernel final : public Kernel {
 public:
  using RowFunction = void (*)(const Unary&, const void*, void*, std::int64_t);

  UnaryKernel(Unary unary, RowFunction row, std::size_t element_bytes, ElementLoops loops)
      : unary_(unary),
        row_(row),
        element_bytes_(static_cast<std::int64_t>(element_bytes)),
        loops_(loops) {}

  std::string_view name() const override {
    return row_ == VectorRow ? "unary_vector" : "unary_plain";
  }
  bool CanOverwriteInput(std::size_t) const override { return true; }
  void Run(const RunContext& context) const override {
    auto* in = context.inputs[0].data<const std::byte>();
    auto* out = context.outputs[0].data<std::byte>();
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      row_(unary_, in + at[1] * element_bytes_, out + at[0] * element_bytes_, n);
    });
  }

 private:
  Unary unary_;
  RowFunction row_;
  std::int64_t element_bytes_;
  ElementLoops loops_;
};

template <UnaryFn fn>
Unary ReadUnary(const OpNode& node) {
  const Attributes& a = node.attributes;
  switch (fn) {
    case UnaryFn::kElu:
      return {fn, a.Float("alpha", 1.f)};
    case UnaryFn::kHardSigmoid:
      return {fn, a.Float("alpha", 0.2f), a.Float("beta", 0.5f)};
    case UnaryFn::kLeakyRelu:
      return {fn, a.Float("alpha", 0.01f)};
    default:
      return {fn};
  }
}

template <UnaryFn fn>
std::unique_ptr<Kernel> PrepareUnary(const PrepareContext& context) {
  const TensorInfo& in = context.inputs[0];
  const Shape& shape = context.outputs[0].shape;
  const auto same = ElementLoops::BlockedOperand::kSame;
  const ElementLoops loops = in.layout == Layout::kBlocked
                                 ? ElementLoops::Blocked(shape, {&same, 1}, {&shape, 1})
                                 : ElementLoops::Broadcast(shape, {&shape, 1});
  const auto row = in.dtype == DType::kFloat32 && !context.reference
                       ? VectorRow
                       : Dispatch(in.dtype, NumberTypes(),
                                  [](auto tag) { return PlainRow<typename decltype(tag)::type>; });
  return std::make_unique<UnaryKernel>(ReadUnary<fn>(context.node), row, SizeOf(in.dtype), loops);
}

void InferFloat(const InferContext& context) {
  RequireType(context.Input(0).dtype, FloatTypes());
  InferSameAsInput0(context);
}

void InferNumber(const InferContext& context) {
  RequireType(context.Input(0).dtype, NumberTypes());
  InferSameAsInput0(context);
}

void InferSigned(const InferContext& context) {
  RequireType(context.Input(0).dtype, SignedTypes());
  InferSameAsInput0(context);
}

template <UnaryFn fn>
constexpr OpDef UnaryOp(std::string_view type, void (*infer)(const InferContext&)) {
  return {
      .type = type,
      .min_inputs = 1,
      .max_inputs = 1,
      .infer = infer,
      .prepare = PrepareUnary<fn>,
      .layouts = FollowInput0,
      .field = PointwiseField,
  };
}

}  // namespace

extern const OpDef kAbsOp, kEluOp, kExpOp, kHardSigmoidOp, kHardSwishOp, kLeakyReluOp, kNegOp,
    kReluOp, kSigmoidOp, kSqrtOp, kTanhOp;
const OpDef kAbsOp = UnaryOp<UnaryFn::kAbs>("Abs", InferNumber);
const OpDef kEluOp = UnaryOp<UnaryFn::kElu>("Elu", InferFloat);
const OpDef kExpOp = UnaryOp<UnaryFn::kExp>("Exp", InferFloat);
const OpDef kHardSigmoidOp = UnaryOp<UnaryFn::kHardSigmoid>("HardSigmoid", InferFloat);
const OpDef kHardSwishOp = UnaryOp<UnaryFn::kHardSwish>("HardSwish", InferFloat);
const OpDef kLeakyReluOp = UnaryOp<UnaryFn::kLeakyRelu>("LeakyRelu", InferFloat);
const OpDef kNegOp = UnaryOp<UnaryFn::kNeg>("Neg", InferSigned);
const OpDef kReluOp = UnaryOp<UnaryFn::kRelu>("Relu", InferSigned);
const OpDef kSigmoidOp = UnaryOp<UnaryFn::kSigmoid>("Sigmoid", InferFloat);
const OpDef kSqrtOp = UnaryOp<UnaryFn::kSqrt>("Sqrt", InferFloat);
const OpDef kTanhOp = UnaryOp<UnaryFn::kTanh>("Tanh", InferFloat);

}  // namespace tessera
