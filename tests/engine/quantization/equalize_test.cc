#include "engine/quantization/equalize.h"

#include "engine/quantization/calibrate.h"
#include "tests/engine/quantization/quantizer_test_util.h"

namespace tessera {
namespace {

struct Result {
  int sets = 0;
  double error = 0;  // of the float function
  // The largest share of the range of `value` that a channel fills over the smallest.
  double spread_before = 0, spread_after = 0;
  double lowest = 0;  // of `value` after that, relative to its highest
};

double Spread(const Graph& graph, const Calibration& c, std::string_view value) {
  for (const auto& [id, ranges] : c.ranges) {
    if (graph.value(id).name != value) continue;
    ValueRange all;
    for (const ValueRange& r : ranges) {
      all = {std::min(all.low, r.low), std::max(all.high, r.high)};
    }
    std::vector<double> m;
    for (const ValueRange& r : ranges) {
      m.push_back(
          std::max(all.high > 0 ? r.high / all.high : 0, all.low < 0 ? r.low / all.low : 0));
    }
    return *std::ranges::max_element(m) / *std::ranges::min_element(m);
  }
  ADD_FAILURE() << "no value " << value;
  return 0;
}

Result Equalize(const TestModel& m, std::string_view value, const Shape& shape = {1, 3, 12, 11}) {
  Graph graph = ImportTestModel(m);
  FoldConstants(graph);
  const auto samples = NoiseSamples(shape, 3);
  Graph shapes = graph;
  InferShapes(shapes, std::vector<Shape>{shape});
  SerialParallel serial;
  const Calibration before = Calibrate(graph, samples, serial);
  Graph equal = graph;
  Result r;
  r.sets = EqualizeChannels(equal, shapes, before.ranges);
  r.error = RelativeError(RunSamples(graph, samples, &serial), RunSamples(equal, samples, &serial));
  r.spread_before = Spread(graph, before, value);
  const Calibration after = Calibrate(equal, samples, serial);
  r.spread_after = Spread(equal, after, value);
  for (const auto& [id, h] : after.histograms) {
    if (equal.value(id).name == value) r.lowest = h.low() / h.high();
  }
  return r;
}

// Weights whose output channels differ by up to 4^3 in size.
void Uneven(TestModel& m, const std::string& name, std::int64_t outputs, std::int64_t inputs,
            std::int64_t kernel) {
  std::vector<float> values =
      TestModel::NoiseValues(static_cast<std::size_t>(outputs * inputs * kernel * kernel), 5);
  const std::size_t row = values.size() / static_cast<std::size_t>(outputs);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] *= std::pow(4.0f, static_cast<float>(i / row % 4));
  }
  m.Floats(name, {outputs, inputs, kernel, kernel}, values);
}

TEST(EqualizeChannels, KeepsTheFunctionOverHomogeneousActivations) {
  for (const char* activation : {"", "Relu", "LeakyRelu", "PRelu", "MaxPool"}) {
    SCOPED_TRACE(activation);
    TestModel m;
    m.Input("x", {1, 3, -1, -1})
        .Noise("b1", {8})
        .Noise("w2", {6, 8, 3, 3})
        .Noise("slope", {8, 1, 1});
    Uneven(m, "w1", 8, 3, 3);
    m.Node("Conv", {"x", "w1", "b1"}, {"c"});
    std::string between = "c";
    const std::string type = activation;
    if (type == "PRelu") {
      m.Node(type, {"c", "slope"}, {between = "a"});
    } else if (type == "MaxPool") {
      m.Node(type, {"c"}, {between = "a"}, {{"kernel_shape", std::vector<std::int64_t>{2, 2}}});
    } else if (!type.empty()) {
      m.Node(type, {"c"}, {between = "a"});
    }
    m.Node("Conv", {between, "w2"}, {"y"}).Output("y");
    const Result r = Equalize(m, between);
    EXPECT_EQ(r.sets, 1);
    EXPECT_LT(r.error, 1e-5);
    EXPECT_GT(r.spread_before, 10);
    EXPECT_LT(r.spread_after, 3);
  }
}

// As their slopes and biases have it, half of the channels are negative.
TEST(EqualizeChannels, NegativeChannelsAreTurned) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w1", {8, 3, 3, 3}, 0.1f).Noise("w2", {5, 8, 3, 3});
  m.Floats("b1", {8}, {1, -1, 1, -1, 1, -1, 1, -1});
  m.Floats("slope", {8, 1, 1}, {0.1f, 2, 0, 0.5f, -0.1f, 0.7f, 0.01f, 0.3f});
  m.Node("Conv", {"x", "w1", "b1"}, {"c"}).Node("PRelu", {"c", "slope"}, {"a"});
  m.Node("Conv", {"a", "w2"}, {"y"}).Output("y");
  const Result r = Equalize(m, "a");
  EXPECT_EQ(r.sets, 1);
  EXPECT_LT(r.error, 1e-5);
  EXPECT_GT(r.lowest, -0.5);
}

TEST(EqualizeChannels, DepthwiseWeightsTakeAll) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w2", {8, 1, 3, 3}).Noise("w3", {5, 8, 1, 1});
  Uneven(m, "w1", 8, 3, 1);
  m.Node("Conv", {"x", "w1"}, {"c"}).Node("Relu", {"c"}, {"a"});
  m.Node("Conv", {"a", "w2"}, {"d"}, {{"group", std::int64_t{8}}});
  m.Node("Relu", {"d"}, {"e"}).Node("Conv", {"e", "w3"}, {"y"}).Output("y");
  const Result r = Equalize(m, "a");
  EXPECT_EQ(r.sets, 2);
  EXPECT_LT(r.error, 1e-5);
  EXPECT_LT(r.spread_after, 1.1);
}

TEST(EqualizeChannels, ResidualsAreScaledTogether) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w2", {8, 8, 1, 1}).Noise("w3", {4, 8, 1, 1});
  Uneven(m, "w1", 8, 3, 1);
  m.Node("Conv", {"x", "w1"}, {"c"})
      .Node("Conv", {"c", "w2"}, {"d"})
      .Node("Add", {"c", "d"}, {"s"});
  m.Node("Conv", {"s", "w3"}, {"y"}).Output("y");
  const Result r = Equalize(m, "c");
  EXPECT_EQ(r.sets, 1);
  EXPECT_LT(r.error, 1e-5);
}

// Convolutions read copies of what is there in float; a Concat takes the ranges of its inputs.
TEST(EqualizeChannels, GatedMapsAndConcat) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w2", {8, 8, 1, 1}, 0.1f).Noise("w3", {8, 8, 1, 1});
  m.Noise("w4", {4, 24, 1, 1});
  Uneven(m, "w1", 8, 3, 1);
  const std::vector<TestModel::Attribute> channels{{"axis", std::int64_t{1}}};
  m.Node("Conv", {"x", "w1"}, {"c"}).Node("Conv", {"c", "w2"}, {"d"});
  m.Node("Sigmoid", {"d"}, {"s"}).Node("Add", {"c", "d"}, {"a"}).Node("Mul", {"a", "s"}, {"g"});
  m.Node("Conv", {"g", "w3"}, {"e"}).Node("Concat", {"c", "e", "g"}, {"k"}, channels);
  m.Node("Conv", {"k", "w4"}, {"y"}).Output("y");
  const Result r = Equalize(m, "k");
  EXPECT_EQ(r.sets, 3);
  EXPECT_LT(r.error, 1e-5);
  EXPECT_GT(r.spread_before, 30);
  EXPECT_LT(r.spread_after, 6);
}

TEST(EqualizeChannels, LeavesAloneWhatItMustNotChange) {
  const auto base = [] {
    TestModel m;
    m.Input("x", {1, 3, -1, -1})
        .Noise("w2", {6, 8, 1, 1})
        .Floats("zero", {}, {0})
        .Floats("six", {}, {6});
    Uneven(m, "w1", 8, 3, 1);
    m.Node("Conv", {"x", "w1"}, {"c"});
    return m;
  };
  TestModel clip = base();
  clip.Node("Clip", {"c", "zero", "six"}, {"a"}).Node("Conv", {"a", "w2"}, {"y"}).Output("y");
  EXPECT_EQ(Equalize(clip, "a").sets, 0);
  TestModel output = base();  // somebody sees the value between
  output.Node("Conv", {"c", "w2"}, {"y"}).Output("y").Output("c");
  EXPECT_EQ(Equalize(output, "c").sets, 0);
  TestModel sigmoid = base();  // so does another function
  sigmoid.Node("Conv", {"c", "w2"}, {"d"}).Node("Sigmoid", {"c"}, {"s"});
  sigmoid.Node("ReduceMean", {"s"}, {"r"}).Node("Add", {"d", "r"}, {"y"}).Output("y");
  EXPECT_EQ(Equalize(sigmoid, "c").sets, 0);
  TestModel joined = base();  // a Concat's other input cannot be scaled
  joined.Noise("w3", {4, 11, 1, 1}).Node("Concat", {"c", "x"}, {"k"}, {{"axis", std::int64_t{1}}});
  joined.Node("Conv", {"k", "w3"}, {"y"}).Output("y");
  EXPECT_EQ(Equalize(joined, "c").sets, 0);
}

}  // namespace
}  // namespace tessera
