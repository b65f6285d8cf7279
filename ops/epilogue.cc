#include "ops/epilogue.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

constexpr std::array<std::pair<std::string_view, Activation>, 9> kActivations = {{
    {"None", Activation::kNone},
    {"Relu", Activation::kRelu},
    {"LeakyRelu", Activation::kLeakyRelu},
    {"PRelu", Activation::kPRelu},
    {"Clip", Activation::kClip},
    {"Sigmoid", Activation::kSigmoid},
    {"Silu", Activation::kSilu},
    {"HardSigmoid", Activation::kHardSigmoid},
    {"HardSwish", Activation::kHardSwish},
}};
constexpr std::array<std::pair<std::string_view, Combine>, 3> kCombines = {{
    {"None", Combine::kNone},
    {"Add", Combine::kAdd},
    {"Gate", Combine::kGate},
}};

template <typename Table>
auto ValueOf(const Table& table, const OpNode& node, std::string_view attribute) {
  const std::string name = node.attributes.String(attribute, "None");
  for (const auto& [key, value] : table) {
    if (key == name) return value;
  }
  throw Error(StrCat("unknown ", attribute, " '", name, "'"));
}

template <typename Table, typename Value>
std::string NameOf(const Table& table, Value value) {
  return std::string(std::find_if(table.begin(), table.end(), [&](const auto& e) {
                       return e.second == value;
                     })->first);
}

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }

// NaN stays NaN, as std::clamp would not promise.
double Clamp(double x, double lo, double hi) {
  if (x < lo) x = lo;
  return x > hi ? hi : x;
}

double Activate(const Epilogue& e, double x, double slope) {
  switch (e.activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kLeakyRelu:
      return x < 0 ? e.alpha * x : x;
    case Activation::kPRelu:
      return x < 0 ? slope * x : x;
    case Activation::kClip:
      return Clamp(x, e.alpha, e.beta);
    case Activation::kSigmoid:
      return SigmoidOf(x);
    case Activation::kSilu:
      return x * SigmoidOf(x);
    case Activation::kHardSigmoid:
      return Clamp(e.alpha * x + e.beta, 0, 1);
    case Activation::kHardSwish:
      return x * Clamp(x / 6 + 0.5, 0, 1);
  }
  return x;
}

float NegativeSlope(const Epilogue& e, const Tensor* slope, std::int64_t channel) {
  switch (e.activation) {
    case Activation::kRelu:
      return 0;
    case Activation::kLeakyRelu:
      return e.alpha;
    case Activation::kPRelu:
      return slope->data<float>()[slope->size() == 1 ? 0 : channel];
    default:
      return 1;
  }
}

}  // namespace

Epilogue ReadEpilogue(const OpNode& node) {
  Epilogue e;
  if (!node.type.starts_with("Fused") && !node.type.starts_with("QuantizedConv")) return e;
  const Attributes& a = node.attributes;
  e.activation = ValueOf(kActivations, node, "activation");
  e.combine = ValueOf(kCombines, node, "combine");
  e.alpha = a.Float("activation_alpha", 0);
  e.beta = a.Float("activation_beta", 0);
  e.scale = a.Float("scale", 1);
  return e;
}

void WriteEpilogue(const Epilogue& e, Attributes& attributes) {
  attributes.Set("activation", NameOf(kActivations, e.activation));
  attributes.Set("combine", NameOf(kCombines, e.combine));
  attributes.Set("activation_alpha", e.alpha);
  attributes.Set("activation_beta", e.beta);
  attributes.Set("scale", e.scale);
}

double ApplyEpilogue(const Epilogue& e, double x, double slope, double addend) {
  const double y = Activate(e, x, slope);
  switch (e.combine) {
    case Combine::kNone:
      return y;
    case Combine::kAdd:
      return y * e.scale + addend;
    case Combine::kGate:
      return (y + addend) * (SigmoidOf(y) - 0.5);
  }
  return y;
}

std::optional<Unary> AsUnary(const Epilogue& e) {
  switch (e.activation) {
    case Activation::kRelu:
      return Unary{UnaryFn::kRelu};
    case Activation::kLeakyRelu:
      return Unary{UnaryFn::kLeakyRelu, e.alpha};
    case Activation::kClip:
      return Unary{UnaryFn::kClip, e.alpha, e.beta};
    case Activation::kSigmoid:
      return Unary{UnaryFn::kSigmoid};
    case Activation::kHardSigmoid:
      return Unary{UnaryFn::kHardSigmoid, e.alpha, e.beta};
    case Activation::kHardSwish:
      return Unary{UnaryFn::kHardSwish};
    default:
      return std::nullopt;
  }
}

EpilogueOperands PackEpilogue(const Epilogue& epilogue, const Tensor* bias, const Tensor* slope,
                              std::int64_t channels, std::int64_t padded_channels) {
  const std::size_t bytes = static_cast<std::size_t>(padded_channels) * sizeof(float);
  EpilogueOperands operands{AlignedBuffer(bytes), AlignedBuffer(bytes)};
  for (std::int64_t c = 0; c < padded_channels; ++c) {
    const bool real = c < channels;
    operands.bias.As<float>()[c] = real && bias != nullptr ? bias->data<float>()[c] : 0;
    operands.slope.As<float>()[c] = real ? NegativeSlope(epilogue, slope, c) : 0;
  }
  return operands;
}

}  // namespace tessera
