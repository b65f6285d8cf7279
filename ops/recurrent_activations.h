// The activation functions of recurrent layers, which their attributes name.
// https://onnx.ai/onnx/operators/onnx__LSTM.html, onnx__GRU.html, onnx__RNN.html
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ops/elementwise.h"
#include "ops/op.h"

namespace tessera {

enum class RecurrentFn : std::uint8_t {
  kAffine,       // alpha * x + beta
  kElu,          // x < 0 ? alpha * (e^x - 1) : x
  kHardSigmoid,  // min(max(alpha * x + beta, 0), 1)
  kLeakyRelu,    // x < 0 ? alpha * x : x
  kRelu,
  kScaledTanh,  // alpha * tanh(beta * x)
  kSigmoid,
  kSoftplus,  // log(1 + e^x)
  kSoftsign,  // x / (1 + |x|)
  kTanh,
  kThresholdedRelu,  // x >= alpha ? x : 0
};

struct RecurrentActivation {
  std::string_view name;
  RecurrentFn fn;
  bool has_alpha = false, has_beta = false;
  float alpha = 0, beta = 0;  // defaults

  double operator()(double x) const;
  // The same for ApplyUnary, if that knows it.
  std::optional<Unary> AsUnary() const;
};

// The attributes activations, activation_alpha and activation_beta of a layer whose cells have
// those of `defaults` for each of `directions`: all directions, one after the other. alpha and beta
// are lists of what those need that have such a parameter, in this order; missing ones have their
// defaults. Throws Error for unknown names and another number of them.
std::vector<RecurrentActivation> ReadRecurrentActivations(
    const OpNode& node, std::span<const std::string_view> defaults, std::int64_t directions);

}  // namespace tessera
