// What a convolution does to its sums before it stores them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ops/elementwise.h"
#include "ops/op.h"
#include "simd/aligned_buffer.h"

namespace tessera {

enum class Activation : std::uint8_t {
  kNone,
  kRelu,
  kLeakyRelu,    // x < 0 ? alpha * x : x
  kPRelu,        // x < 0 ? slope[channel] * x : x
  kClip,         // min(max(x, alpha), beta)
  kSigmoid,      // 1 / (1 + exp(-x))
  kSilu,         // x * sigmoid(x)
  kHardSigmoid,  // clip(alpha * x + beta, 0, 1)
  kHardSwish,    // x * clip(x / 6 + 0.5, 0, 1)
};

enum class Combine : std::uint8_t {
  kNone,
  kAdd,   // activation(x) * scale + addend            (residual connections; RRDB: scale 0.2)
  kGate,  // (x + addend) * (sigmoid(x) - 0.5)         (SPAN's parameter-free attention)
};

// y = combine(activation(sum + bias), addend). The operator FusedConv carries it as
//   inputs:     X, W, B (optional), slope (kPRelu), addend (kAdd and kGate; shape of the output)
//   attributes: those of Conv, "activation" (name of the enumerator without k),
//               "activation_alpha", "activation_beta", "combine", "scale"
// FusedGemm and FusedMul carry activations without operands of their own, as attributes alike.
struct Epilogue {
  Activation activation = Activation::kNone;
  float alpha = 0, beta = 0;
  Combine combine = Combine::kNone;
  float scale = 1;
};

inline constexpr std::size_t kConvBias = 2, kConvSlope = 3, kConvAddend = 4;

// Reads the attributes; an operator that is not fused gives an empty epilogue. Throws Error for
// unknown names.
Epilogue ReadEpilogue(const OpNode& node);
// Writes them.
void WriteEpilogue(const Epilogue& epilogue, Attributes& attributes);

// The epilogue itself, in double precision: the output for x = sum + bias. `slope` is the
// channel's (kPRelu only), `addend` the element's (kAdd and kGate only).
double ApplyEpilogue(const Epilogue& epilogue, double x, double slope, double addend);

// The activation as a function of one row (ops/elementwise.h); nullopt for kNone and for those that
// are no such function.
std::optional<Unary> AsUnary(const Epilogue& epilogue);

// Per-channel operands of a vector kernel (ops/epilogue-inl.h), padded with zeros to whole blocks.
struct EpilogueOperands {
  AlignedBuffer bias;   // 0 without a bias
  AlignedBuffer slope;  // factor of negative values: kPRelu's slope, kLeakyRelu's alpha, 0 for
                        // kRelu, 1 for all others

  const float* Bias() const { return bias.As<float>(); }
  const float* Slope() const { return slope.As<float>(); }
};
// `bias` [channels] and `slope` [channels] or [1] are float32, or null.
EpilogueOperands PackEpilogue(const Epilogue& epilogue, const Tensor* bias, const Tensor* slope,
                              std::int64_t channels, std::int64_t padded_channels);

}  // namespace tessera
