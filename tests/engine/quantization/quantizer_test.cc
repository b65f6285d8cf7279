#include "engine/quantization/quantizer.h"

#include <cmath>

#include "engine/quantization/prepare.h"
#include "tests/engine/quantization/quantizer_test_util.h"

namespace tessera {
namespace {

constexpr std::int64_t kDepthwise = 8;

// Conv -> Relu -> depthwise -> pointwise -> Add(skip) -> Conv, the last one's result is the output.
TestModel Bottleneck() {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y");
  m.Noise("w1", {8, 3, 3, 3}, 0.4f).Noise("b1", {8}).Noise("w2", {8, 1, 3, 3}, 0.4f);
  m.Noise("w3", {8, 8, 1, 1}, 0.4f).Noise("b3", {8}).Noise("w4", {2, 8, 3, 3}, 0.4f);
  const std::vector<std::int64_t> pads{1, 1, 1, 1};
  m.Node("Conv", {"x", "w1", "b1"}, {"c1"}, {{"pads", pads}}).Node("Relu", {"c1"}, {"a1"});
  m.Node("Conv", {"a1", "w2"}, {"c2"}, {{"pads", pads}, {"group", kDepthwise}});
  m.Node("Conv", {"c2", "w3", "b3"}, {"c3"}).Node("Add", {"a1", "c3"}, {"s"});
  m.Node("Conv", {"s", "w4"}, {"y"}, {{"pads", pads}});
  return m;
}

double ErrorOf(const TestModel& m, const QuantizedModel& quantized, const std::vector<Sample>& on) {
  SerialParallel serial;
  return RelativeError(RunSamples(ImportTestModel(m), on, &serial),
                       RunSamples(Reimport(quantized.graph), on, &serial));
}

TEST(Quantizer, GivesNearlyTheSameWithWeightsOfAByte) {
  const TestModel m = Bottleneck();
  const auto samples = NoiseSamples({1, 3, 16, 17}, 4), tests = NoiseSamples({1, 3, 20, 13}, 2, 50);
  for (const RangeMethod method :
       {RangeMethod::kMinMax, RangeMethod::kPercentile, RangeMethod::kMse, RangeMethod::kEntropy}) {
    SCOPED_TRACE(Name(method));
    EXPECT_EQ(RangeMethodFromName(Name(method)), method);
    const QuantizedModel q = Quantize(ImportTestModel(m), samples, {.method = method});
    EXPECT_LT(ErrorOf(m, q, tests), 0.05);
    ASSERT_EQ(q.layers.size(), 4u);
    double share = 0;
    for (const LayerReport& layer : q.layers) {
      EXPECT_TRUE(layer.quantized);
      share += layer.share;
    }
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_EQ(q.layers[0].name, "Conv_c1");
    EXPECT_EQ(q.layers[0].float_bytes, 4u * (8 * 27 + 8));
    EXPECT_EQ(q.layers[1].type, "depthwise 3x3");
    for (const Node& node : q.graph.nodes) {
      if (node.op.type != "Conv") continue;
      const int dq = q.graph.Producers()[static_cast<std::size_t>(node.inputs[1])];
      const Tensor* w = q.graph.Constant(q.graph.nodes[static_cast<std::size_t>(dq)].inputs[0]);
      ASSERT_NE(w, nullptr);
      EXPECT_EQ(w->dtype(), DType::kInt8);
    }
  }
}

TEST(Quantizer, PutsQuantizeLinearWhereTheKernelsWantIt) {
  const Graph g = Quantize(ImportTestModel(Bottleneck()), NoiseSamples({1, 3, 9, 9}, 2), {}).graph;
  EXPECT_GE(g.opset, 13);
  // The input, what the first activation, the depthwise convolution and the addition give.
  EXPECT_EQ(CountNodes(g, "QuantizeLinear"), 4);
  const Node &c1 = *FindNode(g, "Conv_c1"), &a1 = *FindNode(g, "Relu_a1");
  EXPECT_EQ(Readers(g, c1), (std::multiset<std::string>{"Relu"}));
  EXPECT_EQ(Readers(g, a1), (std::multiset<std::string>{"QuantizeLinear"}));
  EXPECT_EQ(Readers(g, *FindNode(g, "Conv_c2")), (std::multiset<std::string>{"QuantizeLinear"}));
  // No step between a convolution and the addition that alone reads it.
  EXPECT_EQ(Readers(g, *FindNode(g, "Conv_c3")), (std::multiset<std::string>{"Add"}));
  const Node& add = *FindNode(g, "Add_s");
  EXPECT_EQ(Maker(g, add, 0), "DequantizeLinear");
  EXPECT_EQ(Readers(g, add), (std::multiset<std::string>{"QuantizeLinear"}));
  // The output stays float.
  EXPECT_EQ(Readers(g, *FindNode(g, "Conv_y")), (std::multiset<std::string>{}));
  for (const char* conv : {"Conv_c1", "Conv_c2", "Conv_c3", "Conv_y"}) {
    for (std::size_t i = 0; i < FindNode(g, conv)->inputs.size(); ++i) {
      EXPECT_EQ(Maker(g, *FindNode(g, conv), i), "DequantizeLinear") << conv << " input " << i;
    }
  }
}

TEST(Quantizer, FunctionsGatesAndMovers) {
  TestModel m(14);
  m.Input("x", {1, 3, -1, -1}).Output("y").Noise("w1", {8, 3, 3, 3}).Noise("w2", {8, 8, 1, 1});
  m.Noise("w3", {8, 8, 1, 1}).Noise("w4", {4, 16, 3, 3});
  m.Node("Conv", {"x", "w1"}, {"c"}).Node("Tanh", {"c"}, {"t"});  // a table
  m.Node("GlobalAveragePool", {"t"}, {"p"}).Node("Conv", {"p", "w2"}, {"g"});
  m.Node("Sigmoid", {"g"}, {"gate"}).Node("Mul", {"t", "gate"}, {"s"});  // stays float
  m.Node("Conv", {"s", "w3"}, {"d"}).Node("HardSwish", {"d"}, {"h"});
  m.Node("Concat", {"h", "s"}, {"k"}, {{"axis", std::int64_t{1}}});
  m.Node("Conv", {"k", "w4"}, {"e"});
  m.Node("DepthToSpace", {"e"}, {"y"}, {{"blocksize", std::int64_t{2}}});
  const auto samples = NoiseSamples({1, 3, 12, 12}, 3);
  const QuantizedModel q = Quantize(ImportTestModel(m), samples, {});
  const Graph& g = q.graph;
  using Types = std::multiset<std::string>;
  EXPECT_EQ(q.layers.size(), 3u);  // the gate's convolution is none of them
  EXPECT_EQ(Readers(g, *FindNode(g, "Conv_c")), (Types{"QuantizeLinear"}));
  EXPECT_EQ(Readers(g, *FindNode(g, "Tanh_t")), (Types{"QuantizeLinear"}));
  EXPECT_EQ(Maker(g, *FindNode(g, "GlobalAveragePool_p"), 0), "DequantizeLinear");
  EXPECT_EQ(Maker(g, *FindNode(g, "Conv_g"), 0), "GlobalAveragePool");
  EXPECT_EQ(Readers(g, *FindNode(g, "Sigmoid_gate")), (Types{"Mul"}));
  EXPECT_EQ(Maker(g, *FindNode(g, "Mul_s"), 0), "DequantizeLinear");
  EXPECT_EQ(Readers(g, *FindNode(g, "Mul_s")), (Types{"QuantizeLinear"}));
  EXPECT_EQ(Readers(g, *FindNode(g, "Conv_d")), (Types{"HardSwish"}));
  EXPECT_EQ(Readers(g, *FindNode(g, "HardSwish_h")), (Types{"QuantizeLinear"}));
  // What Concat alone reads has its parameters.
  const auto scale = [&](std::string_view node) {
    const int q_node = g.Consumers()[static_cast<std::size_t>(FindNode(g, node)->outputs[0])][0];
    return g.Constant(g.nodes[static_cast<std::size_t>(q_node)].inputs[1])->data<float>()[0];
  };
  EXPECT_EQ(scale("HardSwish_h"), scale("Concat_k"));
  EXPECT_EQ(Maker(g, *FindNode(g, "DepthToSpace_y"), 0), "DequantizeLinear");
  EXPECT_LT(ErrorOf(m, q, samples), 0.08);
}

// A gated map and two convolutions' results, of which one is a hundred times the others.
TEST(Quantizer, ConcatOfDifferentRanges) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Output("y").Noise("w1", {8, 3, 3, 3}, 100).Noise("w2", {8, 8, 1, 1});
  m.Noise("w3", {8, 8, 1, 1}, 0.1f).Noise("w5", {4, 4, 1, 1});
  m.Floats("gain", {8, 1, 1}, {1e-4f, 1e-3f, 2e-3f, 1e-4f, 1e-2f, 1e-3f, 1e-3f, 1e-4f});
  m.Node("Conv", {"x", "w1"}, {"c"}).Node("Conv", {"c", "w2"}, {"d"});
  m.Node("Sigmoid", {"d"}, {"s"}).Node("Add", {"c", "d"}, {"a"}).Node("Mul", {"a", "s"}, {"h"});
  m.Node("Mul", {"h", "gain"}, {"gained"}).Node("Sigmoid", {"gained"}, {"s2"});
  m.Node("Mul", {"gained", "s2"}, {"g"}).Node("Conv", {"g", "w3"}, {"e"});
  m.Node("Concat", {"c", "e", "g"}, {"k"}, {{"axis", std::int64_t{1}}});
  // Weights that make up for the ranges: all of the inputs matter.
  std::vector<float> w4 = TestModel::NoiseValues(4 * 24, 3);
  for (std::size_t i = 0; i < w4.size(); ++i) w4[i] *= i % 24 < 8 ? 0.01f : i % 24 < 16 ? 10 : 1;
  m.Floats("w4", {4, 24, 1, 1}, w4).Node("Conv", {"k", "w4"}, {"f"});
  m.Node("Conv", {"f", "w5"}, {"y"});
  const auto samples = NoiseSamples({1, 3, 14, 14}, 3);
  const QuantizedModel q = Quantize(ImportTestModel(m), samples, {});
  const double with = ErrorOf(m, q, samples);
  const double without =
      ErrorOf(m, Quantize(ImportTestModel(m), samples, {.equalize = false}), samples);
  EXPECT_LT(with, 0.02);
  EXPECT_GT(without, 4 * with);
  // The float map is read in float by those that compute in float.
  const Graph& g = q.graph;
  EXPECT_EQ(Readers(g, *FindNode(g, "Conv_c")),
            (std::multiset<std::string>{"Add", "QuantizeLinear"}));
  const Node& concat = *FindNode(g, "Concat_k");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(Maker(g, concat, i), "DequantizeLinear");
  EXPECT_EQ(CountNodes(g, "Mul"), 3);
}

// Grey becomes colours by a gain for each: the factors are no scales of its one channel.
TEST(Quantizer, GainsThatMakeChannels) {
  TestModel m;
  m.Input("x", {1, 1, 16, 17}).Output("y").Floats("gain", {3, 1, 1}, {1, 0.5f, 2});
  m.Noise("w1", {8, 3, 3, 3}).Noise("w2", {4, 8, 1, 1});
  m.Node("Mul", {"x", "gain"}, {"g"}).Node("Conv", {"g", "w1"}, {"c"});
  m.Node("Conv", {"c", "w2"}, {"y"});
  const auto samples = NoiseSamples({1, 1, 16, 17}, 3);
  EXPECT_LT(ErrorOf(m, Quantize(ImportTestModel(m), samples, {}), samples), 0.02);
}

TEST(Quantizer, ExcludedLayersStayAsTheyAre) {
  const Graph imported = ImportTestModel(Bottleneck());
  const auto samples = NoiseSamples({1, 3, 9, 9}, 2);
  const QuantizedModel q =
      Quantize(imported, samples, {.excluded = {"Conv_c3"}, .equalize = false});
  const Node& conv = *FindNode(q.graph, "Conv_c3");
  const Tensor *w = q.graph.Constant(conv.inputs[1]),
               *before = imported.Constant(FindNode(imported, "Conv_c3")->inputs[1]);
  ASSERT_NE(w, nullptr);
  EXPECT_TRUE(std::ranges::equal(w->values<float>(), before->values<float>()));
  EXPECT_FALSE(q.layers[2].quantized);
  EXPECT_EQ(Maker(q.graph, conv, 0), "Conv");  // nobody else wants the depthwise result in 8 bits
  EXPECT_THROW(Quantize(imported, samples, {.excluded = {"Conv_none"}}), Error);
}

TEST(Quantizer, BothFormatsGiveTheSame) {
  TestModel m;  // every convolution is followed by one, its activation by saturation
  m.Input("x", {1, 3, -1, -1}).Output("y").Floats("zero", {}, {0}).Floats("half", {}, {0.5f});
  m.Noise("w1", {8, 3, 3, 3}).Noise("b1", {8}).Noise("w2", {8, 1, 3, 3}).Noise("w3", {3, 8, 1, 1});
  m.Node("Conv", {"x", "w1", "b1"}, {"c1"}).Node("Relu", {"c1"}, {"a1"});
  m.Node("Conv", {"a1", "w2"}, {"c2"}, {{"group", kDepthwise}});
  m.Node("Clip", {"c2", "zero", "half"}, {"a2"});
  m.Node("Conv", {"a2", "w3"}, {"c3"})
      .Node("DepthToSpace", {"c3"}, {"y"}, {{"blocksize", std::int64_t{1}}});
  const auto samples = NoiseSamples({1, 3, 14, 14}, 3);
  SerialParallel serial;
  // All of the values, so that Clip's bounds are those of the range.
  const QuantizerOptions qdq{.method = RangeMethod::kMinMax};
  const QuantizerOptions qlinear{.format = QuantizedFormat::kQLinear,
                                 .method = RangeMethod::kMinMax};
  const Graph a = Reimport(Quantize(ImportTestModel(m), samples, qdq).graph);
  const Graph b = Reimport(Quantize(ImportTestModel(m), samples, qlinear).graph);
  EXPECT_EQ(CountNodes(a, "QLinearConv"), 0);
  EXPECT_EQ(CountNodes(b, "QLinearConv"), 3);
  EXPECT_EQ(CountNodes(b, "Conv") + CountNodes(b, "Relu") + CountNodes(b, "Clip"), 0);
  const auto ya = RunSamples(a, samples, &serial), yb = RunSamples(b, samples, &serial);
  // Float sums of QDQ round otherwise: a step of the output now and then.
  EXPECT_LT(RelativeError(ya, yb), 0.003);
}

TEST(Quantizer, BiasCorrectionTakesAwayAShift) {
  // Weights of 0.4 steps all round to 0: each output channel loses a multiple of its inputs' mean.
  TestModel m;
  std::vector<float> w(16, 0.4f / 127);
  w[0] = 1;
  m.Input("x", {1, 16, -1, -1}).Output("y").Floats("w", {1, 16, 1, 1}, w);
  m.Node("Conv", {"x", "w"}, {"y"});
  std::vector<Sample> samples = NoiseSamples({1, 16, 12, 12}, 3);
  for (const Sample& s : samples) {
    for (float& v : s[0].values<float>()) v += 5;
  }
  SerialParallel serial;
  const auto mean_shift = [&](bool correct) {
    const QuantizerOptions options{
        .equalize = false, .correct_bias = correct, .fit_weights = false, .clip_weights = false};
    const Graph g = Quantize(ImportTestModel(m), samples, options).graph;
    const auto a = RunSamples(ImportTestModel(m), samples, &serial);
    const auto b = RunSamples(g, samples, &serial);
    double sum = 0, count = 0;
    for (std::size_t s = 0; s < a.size(); ++s) {
      for (std::int64_t i = 0; i < a[s][0].size(); ++i, ++count) {
        sum += b[s][0].data<float>()[i] - a[s][0].data<float>()[i];
      }
    }
    return std::abs(sum / count);
  };
  EXPECT_NEAR(mean_shift(false), 15 * 5 * 0.4 / 127, 0.03);
  EXPECT_LT(mean_shift(true), 1e-4);
}

// The first convolution's input has a channel of +-1000 and one of +-1 that matters as much.
TEST(QuantizeWithin, LeavesTheBadLayerInFloatAlone) {
  TestModel m;
  m.Input("x", {1, 2, -1, -1}).Output("y").Floats("w1", {2, 2, 1, 1}, {1e-3f, 0, 0, 1});
  m.Noise("w2", {8, 2, 3, 3}).Noise("w3", {8, 8, 3, 3}).Noise("w4", {3, 8, 3, 3});
  m.Node("Conv", {"x", "w1"}, {"c1"})
      .Node("Conv", {"c1", "w2"}, {"c2"})
      .Node("Relu", {"c2"}, {"a2"});
  m.Node("Conv", {"a2", "w3"}, {"c3"}).Node("Relu", {"c3"}, {"a3"});
  m.Node("Conv", {"a3", "w4"}, {"y"});
  const auto samples = NoiseSamples({1, 2, 16, 16}, 4), tests = NoiseSamples({1, 2, 16, 16}, 2, 9);
  for (const auto* set : {&samples, &tests}) {
    for (const Sample& s : *set) {
      for (float& v : s[0].values<float>().first(256)) v *= 1000;
    }
  }
  const Damage damage = [](std::span<const Outputs> a, std::span<const Outputs> b) {
    return RelativeError(a, b);
  };
  std::size_t last = 0, calls = 0;
  const SearchProgress progress = [&](std::size_t done, std::size_t total) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    last = done;
    ++calls;
  };
  const Graph imported = ImportTestModel(m);
  const QuantizedModel q = QuantizeWithin(imported, samples, tests, damage, 0.05, {}, progress);
  ASSERT_EQ(q.layers.size(), 4u);
  for (const LayerReport& layer : q.layers) {
    EXPECT_EQ(layer.quantized, layer.name != "Conv_c1") << layer.name;
    EXPECT_EQ(layer.damage > 0.1, layer.name == "Conv_c1") << layer.name << " " << layer.damage;
  }
  EXPECT_LE(q.damage, 0.05);
  EXPECT_GT(calls, 4u);
  // Without need all are quantised; where nothing is good enough, none.
  for (const LayerReport& l : QuantizeWithin(imported, samples, tests, damage, 1e9, {}).layers) {
    EXPECT_TRUE(l.quantized);
  }
  for (const LayerReport& l : QuantizeWithin(imported, samples, tests, damage, 0, {}).layers) {
    EXPECT_FALSE(l.quantized);
  }
}

TEST(Quantizer, SamplesHaveToFit) {
  const Graph imported = ImportTestModel(Bottleneck());
  EXPECT_THROW(Quantize(imported, {}, {}), Error);
  EXPECT_THROW(Quantize(imported, NoiseSamples({3, 9, 9}, 1), {}), Error);
  EXPECT_THROW(Quantize(imported, NoiseSamples({1, 4, 9, 9}, 1), {}), Error);
  std::vector<Sample> two = NoiseSamples({1, 3, 9, 9}, 1);
  two[0].push_back(Tensor(DType::kFloat32, {1}));
  EXPECT_THROW(Quantize(imported, two, {}), Error);
  std::vector<Sample> infinite = NoiseSamples({1, 3, 9, 9}, 1);
  infinite[0][0].data<float>()[5] = INFINITY;
  EXPECT_THROW(Quantize(imported, infinite, {}), Error);
}

TEST(PrepareForQuantizing, OldOperatorsMeanTheSame) {
  TestModel m(9);
  m.Input("x", {1, 3, 8, 8}).Output("y").Noise("w", {8, 3, 3, 3});
  m.Floats("three", {}, {3}).Floats("six", {}, {6});
  m.Node("Pad", {"x"}, {"p"},
         {{"pads", std::vector<std::int64_t>{0, 0, 1, 1, 0, 0, 2, 0}}, {"value", 0.5f}});
  m.Node("Conv", {"p", "w"}, {"c"});
  m.Node("Add", {"c", "three"}, {"a"}).Node("Clip", {"a"}, {"k"}, {{"min", 0.0f}, {"max", 6.0f}});
  m.Node("Mul", {"c", "k"}, {"m"}).Node("Div", {"m", "six"}, {"h"});
  m.Node("Slice", {"h"}, {"s"},
         {{"starts", std::vector<std::int64_t>{1}},
          {"ends", std::vector<std::int64_t>{7}},
          {"axes", std::vector<std::int64_t>{2}}});
  m.Node("Upsample", {"s", "scales"}, {"u"}, {{"mode", std::string("nearest")}});
  m.Floats("scales", {4}, {1, 1, 2, 2});
  m.Node("Unsqueeze", {"u"}, {"v"}, {{"axes", std::vector<std::int64_t>{0}}});
  m.Node("Squeeze", {"v"}, {"y"}, {{"axes", std::vector<std::int64_t>{0}}});
  const Graph imported = ImportTestModel(m);
  const Graph prepared = PrepareForQuantizing(imported);
  EXPECT_EQ(prepared.opset, 14);
  EXPECT_EQ(CountNodes(prepared, "HardSwish"), 1);
  EXPECT_EQ(CountNodes(prepared, "Div") + CountNodes(prepared, "Clip"), 0);
  const auto samples = NoiseSamples({1, 3, 8, 8}, 2);
  SerialParallel serial;
  EXPECT_LT(RelativeError(RunSamples(imported, samples, &serial),
                          RunSamples(Reimport(prepared), samples, &serial)),
            1e-5);
  TestModel softmax(9);  // another axis since opset 13
  softmax.Input("x", {1, 3, 8, 8}).Output("y").Node("Softmax", {"x"}, {"y"});
  EXPECT_THROW(PrepareForQuantizing(ImportTestModel(softmax)), Error);
}

TEST(PrepareForQuantizing, OnceIsEnough) {
  const Graph q = Quantize(ImportTestModel(Bottleneck()), NoiseSamples({1, 3, 9, 9}, 1), {}).graph;
  EXPECT_THROW(Quantize(Reimport(q), NoiseSamples({1, 3, 9, 9}, 1), {}), Error);
}

TEST(PictureDamage, IsDecibelsBelowRounding) {
  std::vector<Outputs> a(1), b(1);
  a[0].push_back(Tensor::FromVector<float>({1, 1, 1, 2}, {0.5f, 2.0f}));
  b[0].push_back(a[0][0].Clone());
  EXPECT_EQ(PictureDamage(a, b), 0);
  b[0][0].data<float>()[1] = 1.5f;  // both are white
  EXPECT_EQ(PictureDamage(a, b), 0);
  b[0][0].data<float>()[0] += std::sqrt(2.0f / 12 * 9) / 255;  // nine times as much as rounding
  EXPECT_NEAR(PictureDamage(a, b), 10, 1e-3);
}

}  // namespace
}  // namespace tessera
