#include "ops/recurrent_activations.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

namespace tessera {
namespace {

constexpr RecurrentActivation kActivations[] = {
    {"Affine", RecurrentFn::kAffine, true, true, 1.f, 0.f},
    {"Elu", RecurrentFn::kElu, true, false, 1.f},
    {"HardSigmoid", RecurrentFn::kHardSigmoid, true, true, 0.2f, 0.5f},
    {"LeakyRelu", RecurrentFn::kLeakyRelu, true, false, 0.01f},
    {"Relu", RecurrentFn::kRelu},
    {"ScaledTanh", RecurrentFn::kScaledTanh, true, true, 1.f, 1.f},
    {"Sigmoid", RecurrentFn::kSigmoid},
    {"Softplus", RecurrentFn::kSoftplus},
    {"Softsign", RecurrentFn::kSoftsign},
    {"Tanh", RecurrentFn::kTanh},
    {"ThresholdedRelu", RecurrentFn::kThresholdedRelu, true, false, 1.f},
};

}  // namespace

double RecurrentActivation::operator()(double x) const {
  const auto alpha = static_cast<double>(this->alpha), beta = static_cast<double>(this->beta);
  switch (fn) {
    case RecurrentFn::kAffine:
      return alpha * x + beta;
    case RecurrentFn::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case RecurrentFn::kHardSigmoid:
      return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case RecurrentFn::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case RecurrentFn::kRelu:
      return std::max(x, 0.0);
    case RecurrentFn::kScaledTanh:
      return alpha * std::tanh(beta * x);
    case RecurrentFn::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case RecurrentFn::kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case RecurrentFn::kSoftsign:
      return x / (1 + std::abs(x));
    case RecurrentFn::kTanh:
      return std::tanh(x);
    case RecurrentFn::kThresholdedRelu:
      return x >= alpha ? x : 0;
  }
  return x;
}

std::optional<Unary> RecurrentActivation::AsUnary() const {
  switch (fn) {
    case RecurrentFn::kElu:
      return Unary{UnaryFn::kElu, alpha};
    case RecurrentFn::kHardSigmoid:
      return Unary{UnaryFn::kHardSigmoid, alpha, beta};
    case RecurrentFn::kLeakyRelu:
      return Unary{UnaryFn::kLeakyRelu, alpha};
    case RecurrentFn::kRelu:
      return Unary{UnaryFn::kRelu};
    case RecurrentFn::kSigmoid:
      return Unary{UnaryFn::kSigmoid};
    case RecurrentFn::kTanh:
      return Unary{UnaryFn::kTanh};
    default:
      return std::nullopt;
  }
}

std::vector<RecurrentActivation> ReadRecurrentActivations(
    const OpNode& node, std::span<const std::string_view> defaults, std::int64_t directions) {
  std::vector<std::string> names = node.attributes.Strings("activations");
  if (names.empty()) {
    for (std::int64_t d = 0; d < directions; ++d) {
      names.insert(names.end(), defaults.begin(), defaults.end());
    }
  }
  const std::size_t wanted = defaults.size() * static_cast<std::size_t>(directions);
  // The default of RNN's attribute is a pair, whatever the direction.
  const bool is_default_of_rnn = defaults.size() == 1 && names.size() == 2;
  Require(names.size() == wanted || is_default_of_rnn, names.size(), " activations instead of ",
          wanted);
  names.resize(wanted);
  const std::vector<float> alphas = node.attributes.Floats("activation_alpha");
  const std::vector<float> betas = node.attributes.Floats("activation_beta");
  std::size_t next_alpha = 0, next_beta = 0;
  std::vector<RecurrentActivation> activations;
  for (const std::string& name : names) {
    const auto* it = std::find_if(std::begin(kActivations), std::end(kActivations),
                                  [&](const RecurrentActivation& a) { return name == a.name; });
    Require(it != std::end(kActivations), "activation '", name, "' is unknown");
    activations.push_back(*it);
    RecurrentActivation& a = activations.back();
    if (a.has_alpha && next_alpha < alphas.size()) a.alpha = alphas[next_alpha++];
    if (a.has_beta && next_beta < betas.size()) a.beta = betas[next_beta++];
  }
  return activations;
}

}  // namespace tessera
