// Vector kernels for spans of float32: what elementwise operators do to one row.
#pragma once

#include <cstdint>

namespace tessera {

// What is not exact, up to the rounding of a product, is within 4 units in the last place unless
// said otherwise; simd/math-inl.h has the bounds of the functions.
enum class UnaryFn : std::uint8_t {
  kAbs,
  kCeil,
  kCelu,  // x < 0 ? alpha * (exp(x / alpha) - 1) : x
  kClip,  // min(max(x, alpha), beta)
  kCos,
  kElu,  // x < 0 ? alpha * (exp(x) - 1) : x
  kErf,
  kExp,
  kFloor,
  kGelu,         // x / 2 * (1 + erf(x / sqrt 2)), within 2^-22 |x|
  kGeluTanh,     // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), within 2^-22 |x|
  kHardSigmoid,  // min(max(alpha * x + beta, 0), 1)
  kHardSwish,    // x * min(max(x / 6 + 0.5, 0), 1)
  kLeakyRelu,    // x < 0 ? alpha * x : x
  kLog,
  kMish,  // x * tanh(log(1 + exp(x)))
  kNeg,
  kReciprocal,
  kRelu,
  kRound,  // to the nearest integer, halves to even
  kSelu,   // beta * (x < 0 ? alpha * (exp(x) - 1) : x)
  kSigmoid,
  kSign,  // -1, 0 or 1
  kSin,
  kSoftplus,  // log(1 + exp(x))
  kSoftsign,  // x / (1 + |x|)
  kSqrt,
  kTanh,
  kThresholdedRelu,  // x <= alpha ? 0 : x
};

struct Unary {
  UnaryFn fn;
  float alpha = 0, beta = 0;
};

enum class BinaryFn : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMin,  // of these two, NaN if one of the operands is
  kMax,
  kPRelu,  // a < 0 ? b * a : a
  kEqual,  // these are 1 or 0
  kGreater,
  kGreaterOrEqual,
  kLess,
  kLessOrEqual,
};

// An operand of a row.
struct RowOperand {
  enum Kind : std::uint8_t {
    kStream,  // one value for each element
    kScalar,  // one value for all
    kLanes,   // FloatLanes() values that repeat; the row's length is a multiple of FloatLanes()
  };
  const float* values;
  Kind kind = kStream;
};

// Whether ApplyUnary computes the function: Celu needs a positive alpha.
bool HasVectorKernel(const Unary& unary);

// out[i] = fn(in[i]) for i < n; NaN stays NaN. `out` may be `in`.
void ApplyUnary(const Unary& unary, const float* in, float* out, std::int64_t n);

// out[i] = fn(a[i], b[i]) for i < n. `out` may be the values of a kStream operand.
void ApplyBinary(BinaryFn fn, RowOperand a, RowOperand b, float* out, std::int64_t n);

// out[i] = x[i] * scale[i] + shift[i] for i < n, with one rounding where the CPU has FMA. `out`
// may be `x` or the values of a kStream operand.
void ApplyScaleShift(const float* x, RowOperand scale, RowOperand shift, float* out,
                     std::int64_t n);

}  // namespace tessera
