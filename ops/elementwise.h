// Vector kernels for spans of float32: what elementwise operators do to one row.
#pragma once

#include <cstdint>

namespace tessera {

enum class UnaryFn : std::uint8_t {
  kAbs,
  kClip,  // min(max(x, alpha), beta)
  kElu,   // x < 0 ? alpha * (exp(x) - 1) : x
  kExp,
  kHardSigmoid,  // min(max(alpha * x + beta, 0), 1)
  kHardSwish,    // x * min(max(x / 6 + 0.5, 0), 1)
  kLeakyRelu,    // x < 0 ? alpha * x : x
  kNeg,
  kRelu,
  kSigmoid,
  kSqrt,
  kTanh,
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
  kMin,
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

// out[i] = fn(in[i]) for i < n. `out` may be `in`.
void ApplyUnary(const Unary& unary, const float* in, float* out, std::int64_t n);

// out[i] = fn(a[i], b[i]) for i < n. `out` may be the values of a kStream operand.
void ApplyBinary(BinaryFn fn, RowOperand a, RowOperand b, float* out, std::int64_t n);

// out[i] = x[i] * scale[i] + shift[i] for i < n, with one rounding where the CPU has FMA. `out`
// may be `x` or the values of a kStream operand.
void ApplyScaleShift(const float* x, RowOperand scale, RowOperand shift, float* out,
                     std::int64_t n);

}  // namespace tessera
