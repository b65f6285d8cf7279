// Elementwise functions of one tensor that have vector kernels, activations above all.
// https://onnx.ai/onnx/operators/ : Abs, Ceil, Celu, Cos, Elu, Erf, Exp, Floor, Gelu, HardSigmoid,
// HardSwish, LeakyRelu, Log, Mish, Neg, Reciprocal, Relu, Round, Selu, Sigmoid, Sign, Sin,
// Softplus, Softsign, Sqrt, Tanh, ThresholdedRelu.
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/map_kernel.h"
#include "ops/op.h"

namespace tessera {
namespace {

using SignedTypes =
    TypeList<float, double, Half, std::int8_t, std::int16_t, std::int32_t, std::int64_t>;

template <typename T>
T EvaluateInteger(UnaryFn fn, T x) {
  if (fn == UnaryFn::kErf) return static_cast<T>(std::erf(static_cast<double>(x)));
  if constexpr (std::is_unsigned_v<T>) {
    return fn == UnaryFn::kSign ? T{x > 0} : x;  // else Abs; infer admits no other
  } else {
    // Negation wraps around at the lowest value, as hardware does.
    using U = std::make_unsigned_t<T>;
    const T negative = static_cast<T>(static_cast<U>(0) - static_cast<U>(x));
    switch (fn) {
      case UnaryFn::kAbs:
        return x < 0 ? negative : x;
      case UnaryFn::kNeg:
        return negative;
      case UnaryFn::kSign:
        return static_cast<T>((x > 0) - (x < 0));
      default:
        return x < 0 ? T{0} : x;  // Relu
    }
  }
}

template <typename T>
T EvaluateFloat(const Unary& unary, T x) {
  const T alpha = static_cast<T>(unary.alpha), beta = static_cast<T>(unary.beta);
  const auto clamp = [](T v, T lo, T hi) { return v < lo ? lo : v > hi ? hi : v; };
  constexpr T kHalf{0.5};
  switch (unary.fn) {
    case UnaryFn::kAbs:
      return std::abs(x);
    case UnaryFn::kCeil:
      return std::ceil(x);
    case UnaryFn::kCelu:
      return x < 0 ? alpha * std::expm1(x / alpha) : x;
    case UnaryFn::kClip:
      return clamp(x, alpha, beta);
    case UnaryFn::kCos:
      return std::cos(x);
    case UnaryFn::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case UnaryFn::kErf:
      return std::erf(x);
    case UnaryFn::kExp:
      return std::exp(x);
    case UnaryFn::kFloor:
      return std::floor(x);
    case UnaryFn::kGelu:
      return kHalf * x * (1 + std::erf(x * static_cast<T>(0.70710678118654752)));
    case UnaryFn::kGeluTanh: {
      const T root = static_cast<T>(0.79788456080286536);  // sqrt(2 / pi)
      return kHalf * x * (1 + std::tanh(root * (x + static_cast<T>(0.044715) * x * x * x)));
    }
    case UnaryFn::kHardSigmoid:
      return clamp(alpha * x + beta, T{0}, T{1});
    case UnaryFn::kHardSwish:
      return x * clamp(x / 6 + kHalf, T{0}, T{1});
    case UnaryFn::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case UnaryFn::kLog:
      return std::log(x);
    case UnaryFn::kMish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case UnaryFn::kNeg:
      return -x;
    case UnaryFn::kReciprocal:
      return 1 / x;
    case UnaryFn::kRelu:
      return x < 0 ? T{0} : x;
    case UnaryFn::kRound:
      return std::nearbyint(x);
    case UnaryFn::kSelu:
      return beta * (x < 0 ? alpha * std::expm1(x) : x);
    case UnaryFn::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case UnaryFn::kSign:
      return x > 0 ? T{1} : x < 0 ? T{-1} : x == 0 ? T{0} : x;
    case UnaryFn::kSin:
      return std::sin(x);
    case UnaryFn::kSoftplus:
      return (x < 0 ? T{0} : x) + std::log1p(std::exp(-std::abs(x)));
    case UnaryFn::kSoftsign:
      return x / (1 + std::abs(x));
    case UnaryFn::kSqrt:
      return std::sqrt(x);
    case UnaryFn::kTanh:
      return std::tanh(x);
    case UnaryFn::kThresholdedRelu:
      return x <= alpha ? T{0} : x;
  }
  return x;
}

using RowFunction = void (*)(const Unary&, const void*, void*, std::int64_t);

template <typename T>
void PlainRow(const Unary& unary, const void* in, void* out, std::int64_t n) {
  const auto function = [&](auto x) {
    if constexpr (std::is_integral_v<T>) {
      return EvaluateInteger(unary.fn, x);
    } else {
      return EvaluateFloat(unary, x);
    }
  };
  MapElements<T, T>(function, in, out, n);
}

void VectorRow(const Unary& unary, const void* in, void* out, std::int64_t n) {
  ApplyUnary(unary, static_cast<const float*>(in), static_cast<float*>(out), n);
}

constexpr std::string_view kApproximate = "approximate";  // Gelu's attribute

template <UnaryFn fn>
Unary ReadUnary(const OpNode& node) {
  const Attributes& a = node.attributes;
  switch (fn) {
    case UnaryFn::kCelu:
    case UnaryFn::kElu:
    case UnaryFn::kThresholdedRelu:
      return {fn, a.Float("alpha", 1.f)};
    case UnaryFn::kGelu:
      return {a.String(kApproximate, "none") == "tanh" ? UnaryFn::kGeluTanh : fn};
    case UnaryFn::kHardSigmoid:
      return {fn, a.Float("alpha", 0.2f), a.Float("beta", 0.5f)};
    case UnaryFn::kLeakyRelu:
      return {fn, a.Float("alpha", 0.01f)};
    case UnaryFn::kSelu:
      return {fn, a.Float("alpha", 1.67326319217681884765625f),
              a.Float("gamma", 1.05070102214813232421875f)};
    default:
      return {fn};
  }
}

template <UnaryFn fn>
std::unique_ptr<Kernel> PrepareUnary(const PrepareContext& context) {
  const DType dtype = context.inputs[0].dtype;
  const Unary unary = ReadUnary<fn>(context.node);
  const bool vector = dtype == DType::kFloat32 && !context.reference && HasVectorKernel(unary);
  const RowFunction row =
      vector ? VectorRow : Dispatch(dtype, NumberTypes(), [](auto tag) -> RowFunction {
        return PlainRow<typename decltype(tag)::type>;
      });
  return MakeMapKernel(vector ? "unary_vector" : "unary_plain", context,
                       [=](const void* in, void* out, std::int64_t n) { row(unary, in, out, n); });
}

// Types since opset kSince; those before are Before.
template <typename Types, typename Before = Types, int kSince = 0>
void InferUnary(const InferContext& context) {
  RequireType(context.Input(0).dtype, context.node.opset, Before(), kSince, Types());
  InferSameAsInput0(context);
}

void InferGelu(const InferContext& context) {
  const std::string approximate = context.node.attributes.String(kApproximate, "none");
  Require(approximate == "none" || approximate == "tanh", "unknown approximation '", approximate,
          "'");
  InferUnary<FloatTypes>(context);
}

template <UnaryFn fn>
constexpr OpDef UnaryOp(std::string_view type, int first_opset,
                        void (*infer)(const InferContext&) = InferUnary<FloatTypes>) {
  return {
      .type = type,
      .min_inputs = 1,
      .max_inputs = 1,
      .infer = infer,
      .prepare = PrepareUnary<fn>,
      .layouts = FollowInput0,
      .field = PointwiseField,
      .first_opset = first_opset,
  };
}

}  // namespace

extern const OpDef kAbsOp, kCeilOp, kCeluOp, kCosOp, kEluOp, kErfOp, kExpOp, kFloorOp, kGeluOp,
    kHardSigmoidOp, kHardSwishOp, kLeakyReluOp, kLogOp, kMishOp, kNegOp, kReciprocalOp, kReluOp,
    kRoundOp, kSeluOp, kSigmoidOp, kSignOp, kSinOp, kSoftplusOp, kSoftsignOp, kSqrtOp, kTanhOp,
    kThresholdedReluOp;
const OpDef kAbsOp = UnaryOp<UnaryFn::kAbs>("Abs", 1, InferUnary<NumberTypes>);
const OpDef kCeilOp = UnaryOp<UnaryFn::kCeil>("Ceil", 1);
const OpDef kCeluOp = UnaryOp<UnaryFn::kCelu>("Celu", 12, InferUnary<TypeList<float>>);
const OpDef kCosOp = UnaryOp<UnaryFn::kCos>("Cos", 7);
const OpDef kEluOp = UnaryOp<UnaryFn::kElu>("Elu", 1);
const OpDef kErfOp = UnaryOp<UnaryFn::kErf>("Erf", 9, InferUnary<NumberTypes>);
const OpDef kExpOp = UnaryOp<UnaryFn::kExp>("Exp", 1);
const OpDef kFloorOp = UnaryOp<UnaryFn::kFloor>("Floor", 1);
const OpDef kGeluOp = UnaryOp<UnaryFn::kGelu>("Gelu", 20, InferGelu);
const OpDef kHardSigmoidOp = UnaryOp<UnaryFn::kHardSigmoid>("HardSigmoid", 1);
const OpDef kHardSwishOp = UnaryOp<UnaryFn::kHardSwish>("HardSwish", 14);
const OpDef kLeakyReluOp = UnaryOp<UnaryFn::kLeakyRelu>("LeakyRelu", 1);
const OpDef kLogOp = UnaryOp<UnaryFn::kLog>("Log", 1);
const OpDef kMishOp = UnaryOp<UnaryFn::kMish>("Mish", 18);
const OpDef kNegOp = UnaryOp<UnaryFn::kNeg>("Neg", 1, InferUnary<SignedTypes>);
const OpDef kReciprocalOp = UnaryOp<UnaryFn::kReciprocal>("Reciprocal", 1);
const OpDef kReluOp = UnaryOp<UnaryFn::kRelu>("Relu", 1, InferUnary<SignedTypes, FloatTypes, 14>);
const OpDef kRoundOp = UnaryOp<UnaryFn::kRound>("Round", 11);
const OpDef kSeluOp = UnaryOp<UnaryFn::kSelu>("Selu", 1);
const OpDef kSigmoidOp = UnaryOp<UnaryFn::kSigmoid>("Sigmoid", 1);
const OpDef kSignOp = UnaryOp<UnaryFn::kSign>("Sign", 9, InferUnary<NumberTypes>);
const OpDef kSinOp = UnaryOp<UnaryFn::kSin>("Sin", 7);
const OpDef kSoftplusOp = UnaryOp<UnaryFn::kSoftplus>("Softplus", 1);
const OpDef kSoftsignOp = UnaryOp<UnaryFn::kSoftsign>("Softsign", 1);
const OpDef kSqrtOp = UnaryOp<UnaryFn::kSqrt>("Sqrt", 1);
const OpDef kTanhOp = UnaryOp<UnaryFn::kTanh>("Tanh", 1);
const OpDef kThresholdedReluOp = UnaryOp<UnaryFn::kThresholdedRelu>("ThresholdedRelu", 10);

}  // namespace tessera
