#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;
using Vector = std::vector<double>;
using Function = std::function<double(double)>;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Tanh(double x) { return std::tanh(x); }

// A layer as its attributes describe it, and plain loops over the equations of the specification.
struct Layer {
  std::string type;
  std::int64_t steps = 5, batch = 3, input = 4, hidden = 6;
  std::string direction = "forward";
  bool batch_first = false, has_bias = true, has_state = true, has_peepholes = false;
  std::vector<std::int32_t> lengths{};
  double clip = 0;
  bool input_forget = false, linear_before_reset = false;
  std::vector<std::string> names{};     // of activations
  std::vector<Function> activations{};  // of both directions
  F alphas{}, betas{};

  std::int64_t gates() const { return type == "RNN" ? 1 : type == "GRU" ? 3 : 4; }
  std::int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  Shape StateShape() const {
    return batch_first ? Shape{batch, directions(), hidden} : Shape{directions(), batch, hidden};
  }
};

struct Weights {
  Weights(const Layer& l, std::mt19937& random)
      : x(RandomTensor(
            l.batch_first ? Shape{l.batch, l.steps, l.input} : Shape{l.steps, l.batch, l.input},
            random)),
        w(RandomTensor({l.directions(), l.gates() * l.hidden, l.input}, random)),
        r(RandomTensor({l.directions(), l.gates() * l.hidden, l.hidden}, random)),
        b(RandomTensor({l.directions(), 2 * l.gates() * l.hidden}, random)),
        h(RandomTensor(l.StateShape(), random)),
        c(RandomTensor(l.StateShape(), random)),
        p(RandomTensor({l.directions(), 3 * l.hidden}, random)) {}
  Tensor x, w, r, b, h, c, p;
};

double At(const Tensor& t, std::int64_t i) { return static_cast<double>(t.data<float>()[i]); }

// Y, Y_h and Y_c.
std::vector<Tensor> Expected(const Layer& l, const Weights& k) {
  const std::int64_t H = l.hidden, D = l.directions(), G = l.gates();
  Tensor y(DType::kFloat32,
           l.batch_first ? Shape{l.batch, l.steps, D, H} : Shape{l.steps, D, l.batch, H});
  Tensor last_h(DType::kFloat32, l.StateShape()), last_c(DType::kFloat32, l.StateShape());
  std::fill(y.values<float>().begin(), y.values<float>().end(), 0.f);
  const std::size_t per_direction = l.type == "RNN" ? 1 : l.type == "GRU" ? 2 : 3;
  for (std::int64_t d = 0; d < D; ++d) {
    const auto f = [&](std::size_t i, double x) {
      if (l.clip > 0) x = std::clamp(x, -l.clip, l.clip);
      if (!l.activations.empty())
        return l.activations[static_cast<std::size_t>(d) * per_direction + i](x);
      return l.type == "RNN" || i > 0 ? Tanh(x) : Sigmoid(x);
    };
    const bool reverse = d == 1 || l.direction == "reverse";
    for (std::int64_t b = 0; b < l.batch; ++b) {
      const std::int64_t state = (l.batch_first ? b * D + d : d * l.batch + b) * H;
      Vector h(static_cast<std::size_t>(H)), c(static_cast<std::size_t>(H));
      for (std::int64_t i = 0; i < H && l.has_state; ++i) {
        h[static_cast<std::size_t>(i)] = At(k.h, state + i);
        c[static_cast<std::size_t>(i)] = At(k.c, state + i);
      }
      const std::int64_t length =
          l.lengths.empty() ? l.steps : l.lengths[static_cast<std::size_t>(b)];
      for (std::int64_t step = 0; step < length; ++step) {
        const std::int64_t t = reverse ? length - 1 - step : step;
        const std::int64_t x_row = (l.batch_first ? b * l.steps + t : t * l.batch + b) * l.input;
        // X W^T + Wb, H R^T + Rb of gate g, element i.
        const auto of_x = [&](std::int64_t g, std::int64_t i) {
          double sum = l.has_bias ? At(k.b, d * 2 * G * H + g * H + i) : 0;
          for (std::int64_t j = 0; j < l.input; ++j) {
            sum += At(k.x, x_row + j) * At(k.w, ((d * G + g) * H + i) * l.input + j);
          }
          return sum;
        };
        const auto of_h = [&](std::int64_t g, std::int64_t i, const Vector& hidden) {
          double sum = l.has_bias ? At(k.b, (d * 2 * G + G + g) * H + i) : 0;
          for (std::int64_t j = 0; j < H; ++j) {
            sum += hidden[static_cast<std::size_t>(j)] * At(k.r, ((d * G + g) * H + i) * H + j);
          }
          return sum;
        };
        const auto peephole = [&](std::int64_t g, std::int64_t i) {
          return l.has_peepholes ? At(k.p, (d * 3 + g) * H + i) : 0.0;
        };
        Vector next(h.size());
        Vector reset(h.size());
        for (std::int64_t i = 0; i < H && l.type == "GRU"; ++i) {
          reset[static_cast<std::size_t>(i)] =
              f(0, of_x(1, i) + of_h(1, i, h)) * h[static_cast<std::size_t>(i)];
        }
        for (std::int64_t i = 0; i < H; ++i) {
          const auto u = static_cast<std::size_t>(i);
          if (l.type == "RNN") {
            next[u] = f(0, of_x(0, i) + of_h(0, i, h));
          } else if (l.type == "GRU") {
            const double z = f(0, of_x(0, i) + of_h(0, i, h));
            const double r = f(0, of_x(1, i) + of_h(1, i, h));
            const double candidate = l.linear_before_reset ? f(1, of_x(2, i) + r * of_h(2, i, h))
                                                           : f(1, of_x(2, i) + of_h(2, i, reset));
            next[u] = (1 - z) * candidate + z * h[u];
          } else {
            const double in = f(0, of_x(0, i) + of_h(0, i, h) + peephole(0, i) * c[u]);
            const double forget =
                l.input_forget ? 1 - in : f(0, of_x(2, i) + of_h(2, i, h) + peephole(2, i) * c[u]);
            c[u] = forget * c[u] + in * f(1, of_x(3, i) + of_h(3, i, h));
            next[u] = f(0, of_x(1, i) + of_h(1, i, h) + peephole(1, i) * c[u]) * f(2, c[u]);
          }
        }
        h = next;
        const std::int64_t y_row =
            (l.batch_first ? (b * l.steps + t) * D + d : (t * D + d) * l.batch + b) * H;
        for (std::int64_t i = 0; i < H; ++i) {
          y.data<float>()[y_row + i] = static_cast<float>(h[static_cast<std::size_t>(i)]);
        }
      }
      for (std::int64_t i = 0; i < H; ++i) {
        last_h.data<float>()[state + i] = static_cast<float>(h[static_cast<std::size_t>(i)]);
        last_c.data<float>()[state + i] = static_cast<float>(c[static_cast<std::size_t>(i)]);
      }
    }
  }
  std::vector<Tensor> all;
  all.push_back(std::move(y));
  all.push_back(std::move(last_h));
  if (l.type == "LSTM") all.push_back(std::move(last_c));
  return all;
}

OpCall Call(const Layer& l, const Weights& k, int opset = 14) {
  OpCall call(l.type, opset);
  call.Outputs(l.type == "LSTM" ? 3 : 2)
      .Attr("direction", l.direction)
      .Attr("hidden_size", l.hidden);
  if (opset >= 14) call.Attr("layout", l.batch_first);
  if (l.clip > 0) call.Attr("clip", static_cast<float>(l.clip));
  if (l.input_forget) call.Attr("input_forget", 1);
  if (l.linear_before_reset) call.Attr("linear_before_reset", 1);
  if (!l.names.empty()) call.Attr("activations", l.names);
  if (!l.alphas.empty()) call.Attr("activation_alpha", l.alphas);
  if (!l.betas.empty()) call.Attr("activation_beta", l.betas);
  call.In(k.x.Clone()).In(k.w.Clone()).In(k.r.Clone());
  const auto optional = [&](bool present, const Tensor& t) {
    present ? call.In(t.Clone()) : call.Absent();
  };
  optional(l.has_bias, k.b);
  optional(!l.lengths.empty(),
           Values<std::int32_t>({static_cast<std::int64_t>(l.lengths.size())}, l.lengths));
  optional(l.has_state, k.h);
  if (l.type == "LSTM") {
    optional(l.has_state, k.c);
    optional(l.has_peepholes, k.p);
  }
  return call;
}

void Check(const Layer& l, std::mt19937& random, const std::string& what) {
  const Weights k(l, random);
  const std::vector<Tensor> expected = Expected(l, k), actual = Call(l, k).RunAll(2e-5);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ExpectClose(actual[i], expected[i], 2e-5, StrCat(l.type, " ", what, ", output ", i));
  }
}

TEST(Recurrent, FollowsTheEquationsInEveryDirectionAndLayout) {
  std::mt19937 random(51);
  for (const char* type : {"RNN", "GRU", "LSTM"}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const bool batch_first : {false, true}) {
        for (const bool all : {false, true}) {
          Layer l{.type = type};
          l.direction = direction;
          l.batch_first = batch_first;
          l.has_bias = l.has_state = l.has_peepholes = all;
          Check(l, random,
                StrCat(direction, batch_first ? ", batch first" : "", all ? ", all inputs" : ""));
          // Sequences of any lengths, none of them full.
          l.lengths = {4, 1, 3};
          Check(l, random, StrCat(direction, ", lengths", batch_first ? ", batch first" : ""));
          l.lengths = {0, 5, 2};
          Check(l, random, StrCat(direction, ", lengths from 0"));
        }
      }
    }
  }
}

TEST(Recurrent, TakesWideLayersAndSingleSequences) {
  std::mt19937 random(52);
  for (const char* type : {"RNN", "GRU", "LSTM"}) {
    Layer l{.type = type, .steps = 3, .batch = 1, .input = 70, .hidden = 100};
    l.direction = "bidirectional";
    // Weights of this size would saturate everything.
    Weights k(l, random);
    for (Tensor* t : {&k.w, &k.r}) {
      for (float& v : t->values<float>()) v *= 0.1f;
    }
    const std::vector<Tensor> expected = Expected(l, k), actual = Call(l, k).RunAll(2e-5);
    for (std::size_t i = 0; i < expected.size(); ++i)
      ExpectClose(actual[i], expected[i], 2e-5, type);
  }
}

TEST(Recurrent, HasItsVariants) {
  std::mt19937 random(53);
  Layer gru{.type = "GRU"};
  gru.linear_before_reset = true;
  Check(gru, random, "linear_before_reset");
  gru.has_bias = false;
  gru.direction = "bidirectional";
  Check(gru, random, "linear_before_reset without bias");
  Layer lstm{.type = "LSTM"};
  lstm.input_forget = lstm.has_peepholes = true;
  Check(lstm, random, "input_forget");
  for (const char* type : {"RNN", "GRU", "LSTM"}) {
    Layer l{.type = type};
    l.clip = 0.5;
    Check(l, random, "clip");
  }
}

TEST(Recurrent, KnowsAllActivations) {
  std::mt19937 random(54);
  // Parameters are consumed by those activations that have them, in order.
  Layer l{.type = "LSTM"};
  l.direction = "bidirectional";
  l.names = {"HardSigmoid", "Softsign", "ScaledTanh", "Sigmoid", "LeakyRelu", "Affine"};
  l.alphas = {0.3f, 0.7f, 0.25f, 0.5f};
  l.betas = {0.4f, 1.5f, 0.125f};
  l.activations = {[](double x) { return std::clamp(0.3f * x + 0.4f, 0.0, 1.0); },
                   [](double x) { return x / (1 + std::abs(x)); },
                   [](double x) { return 0.7f * std::tanh(1.5 * x); },
                   Sigmoid,
                   [](double x) { return x < 0 ? 0.25 * x : x; },
                   [](double x) { return 0.5 * x + 0.125; }};
  Check(l, random, "activations");
  Layer gru{.type = "GRU"};
  gru.direction = "bidirectional";
  gru.names = {"Softplus", "Elu", "HardSigmoid", "ThresholdedRelu"};
  gru.alphas = {2.f};
  gru.activations = {[](double x) { return std::log1p(std::exp(x)); },
                     [](double x) { return x < 0 ? 2 * std::expm1(x) : x; },
                     [](double x) { return std::clamp(0.2f * x + 0.5, 0.0, 1.0); },  // defaults
                     [](double x) { return x >= 1 ? x : 0; }};
  gru.steps = 2;
  Check(gru, random, "activations");
  Layer rnn{.type = "RNN"};
  rnn.names = {"Relu"};
  rnn.activations = {[](double x) { return std::max(x, 0.0); }};
  rnn.steps = 2;
  Check(rnn, random, "activations");
}

TEST(Recurrent, ComputesInDouble) {
  const std::vector<double> w{0.5}, r{-0.25};
  const Tensor y = OpCall("RNN", 14)
                       .In(Values<double>({2, 1, 1}, {1, 2}))
                       .In(Values<double>({1, 1, 1}, w))
                       .In(Values<double>({1, 1, 1}, r))
                       .RunOne();
  const double first = std::tanh(0.5);
  EXPECT_NEAR(y.data<double>()[0], first, 1e-15);
  EXPECT_NEAR(y.data<double>()[1], std::tanh(1 - 0.25 * first), 1e-15);
}

TEST(Recurrent, TakesEmptySequences) {
  std::mt19937 random(55);
  for (const char* type : {"RNN", "GRU", "LSTM"}) {
    Layer none{.type = type, .steps = 0};
    Check(none, random, "no steps");
    Layer alone{.type = type, .batch = 0};
    Check(alone, random, "no sequences");
    Layer blind{.type = type, .input = 0};
    Check(blind, random, "no inputs");
  }
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  std::mt19937 random(56);
  const Layer l{.type = "LSTM"};
  const Weights k(l, random);
  EXPECT_NO_THROW(Call(l, k).Infer());
  EXPECT_THROW(Call(l, k).Attr("hidden_size", 5).Infer(), Error);
  EXPECT_THROW(Call(l, k).Attr("direction", "sideways").Infer(), Error);
  EXPECT_THROW(Call(l, k).Attr("direction", "bidirectional").Infer(), Error);
  EXPECT_THROW(Call(l, k).Attr("activations", std::vector<std::string>{"Tanh"}).Infer(), Error);
  EXPECT_THROW(
      Call(l, k).Attr("activations", std::vector<std::string>{"Tanh", "Tanh", "Tan"}).Infer(),
      Error);
  EXPECT_THROW(Call(l, k).Attr("layout", 2).Infer(), Error);
  EXPECT_THROW(Call(l, k, 7).Attr("layout", 1).Infer(), Error);
  EXPECT_THROW(Call(l, k).Attr("clip", -1.f).Infer(), Error);
  EXPECT_THROW(OpCall("LSTM").In(Iota({5, 3})).In(k.w.Clone()).In(k.r.Clone()).Infer(), Error);
  EXPECT_THROW(OpCall("LSTM").In(k.x.Clone()).In(Iota({1, 24, 5})).In(k.r.Clone()).Infer(), Error);
  EXPECT_THROW(OpCall("GRU").In(k.x.Clone()).In(k.w.Clone()).In(k.r.Clone()).Infer(), Error);
  EXPECT_THROW(
      OpCall("GRU").Outputs(3).In(k.x.Clone()).In(Iota({1, 18, 4})).In(Iota({1, 18, 6})).Infer(),
      Error);
  EXPECT_THROW(OpCall("RNN")
                   .In(Iota<std::int32_t>({1, 1, 1}))
                   .In(Iota<std::int32_t>({1, 1, 1}))
                   .In(Iota<std::int32_t>({1, 1, 1}))
                   .Infer(),
               Error);
  for (const std::int32_t bad : {-1, 6}) {
    Layer with_lengths = l;
    with_lengths.lengths = {1, bad, 2};
    EXPECT_THROW(Call(with_lengths, k).Run({}), Error);
  }
}

}  // namespace
}  // namespace tessera
