// Each pass on a graph where it applies and on near misses where it must not: the result stays
// the same either way, and the number of steps tells whether it fired.
#include "engine/passes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/infer.h"
#include "engine/onnx_import.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;

// How often a pass rewrites this model at this input shape.
int Rewrites(const TestModel& m, std::string_view pass_name, const Shape& shape = {1, 3, 8, 8}) {
  const std::string bytes = m.Bytes();
  Graph graph = ImportOnnx(std::as_bytes(std::span(bytes)), "test.onnx", {});
  FoldConstants(graph);
  for (const Pass& pass : AllPasses()) {
    if (pass.name != pass_name) continue;
    if (pass.stage == PassStage::kFast) {
      InferShapes(graph, std::vector<Shape>(graph.inputs.size(), shape));
    }
    return pass.run(graph);
  }
  ADD_FAILURE() << "no pass " << pass_name;
  return -1;
}

void ExpectSameWithoutPass(const TestModel& m, const std::string& pass,
                           const Shape& shape = {1, 3, 8, 8}) {
  const Tensor x = Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 9));
  std::vector<Tensor> with, without;
  m.Load()->Run(std::vector<NamedView>{{"x", x.view()}}, with);
  m.Load({.disabled_passes = {pass}})->Run(std::vector<NamedView>{{"x", x.view()}}, without);
  ASSERT_EQ(with.size(), without.size());
  for (std::size_t k = 0; k < with.size(); ++k) {
    for (std::int64_t i = 0; i < with[k].size(); ++i) {
      ASSERT_NEAR(with[k].data<float>()[i], without[k].data<float>()[i], 1e-5) << k << " " << i;
    }
  }
}

// x -> Conv -> c, 3 to 4 channels; tests add what follows.
TestModel ConvModel() {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3}, 0.5f).Noise("b", {4});
  m.Node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  return m;
}

TEST(RemoveDeadNodes, ForgetsConstantsThatNobodyReads) {
  const std::string bytes = ConvModel().Noise("unused", {8}).Output("c").Bytes();
  Graph graph = ImportOnnx(std::as_bytes(std::span(bytes)), "test.onnx", {});
  graph.RemoveDeadNodes();
  for (const Value& value : graph.values) {
    const bool read = value.name == "w" || value.name == "b";
    EXPECT_EQ(value.info.constant != nullptr, read) << value.name;
  }
}

TEST(FoldBatchNorm, FoldsIntoConvolutionsOnly) {
  for (const bool bias : {true, false}) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3}).Noise("b", {4}).Noise("gamma", {4});
    m.Noise("beta", {4}).Noise("mean", {4}).Floats("var", {4}, {0.5f, 1, 2, 3});
    m.Node("Conv",
           bias ? std::vector<std::string>{"x", "w", "b"} : std::vector<std::string>{"x", "w"},
           {"c"});
    m.Node("BatchNormalization", {"c", "gamma", "beta", "mean", "var"}, {"y"}).Output("y");
    EXPECT_EQ(Rewrites(m, "fold-batch-norm"), 1);
    ExpectSameWithoutPass(m, "fold-batch-norm");
    m.Output("c");  // somebody else wants the convolution's own result
    EXPECT_EQ(Rewrites(m, "fold-batch-norm"), 0);
    ExpectSameWithoutPass(m, "fold-batch-norm");
  }
}

TEST(FuseActivation, EveryActivation) {
  const auto check = [](TestModel m, int expected) {
    m.Output("y");
    EXPECT_EQ(Rewrites(m, "fuse-activation"), expected);
    ExpectSameWithoutPass(m, "fuse-activation");
  };
  for (const char* type : {"Relu", "LeakyRelu", "Sigmoid", "HardSigmoid"}) {
    SCOPED_TRACE(type);
    check(ConvModel().Node(type, {"c"}, {"y"}), 1);
  }
  check(ConvModel().Node("LeakyRelu", {"c"}, {"y"}, {{"alpha", 0.3f}}), 1);
  check(ConvModel().Noise("s", {4, 1, 1}).Node("PRelu", {"c", "s"}, {"y"}), 1);
  check(ConvModel().Noise("s", {1}).Node("PRelu", {"c", "s"}, {"y"}), 1);
  check(ConvModel()
            .Floats("lo", {}, {-0.2f})
            .Floats("hi", {}, {0.4f})
            .Node("Clip", {"c", "lo", "hi"}, {"y"}),
        1);
  check(ConvModel().Floats("hi", {}, {0.4f}).Node("Clip", {"c", "", "hi"}, {"y"}), 1);
  check(ConvModel().Node("Sigmoid", {"c"}, {"s"}).Node("Mul", {"s", "c"}, {"y"}), 1);
  check(ConvModel().Node("Sigmoid", {"c"}, {"s"}).Node("Mul", {"c", "s"}, {"y"}), 1);
}

TEST(FuseActivation, NearMisses) {
  // A slope that broadcasts along the width, not over channels.
  TestModel width = ConvModel();
  width.Noise("s", {8}).Node("PRelu", {"c", "s"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(width, "fuse-activation"), 0);
  ExpectSameWithoutPass(width, "fuse-activation");
  // The convolution's result is wanted too.
  TestModel output = ConvModel();
  output.Node("Relu", {"c"}, {"y"}).Output("y").Output("c");
  EXPECT_EQ(Rewrites(output, "fuse-activation"), 0);
  TestModel reader = ConvModel();
  reader.Node("Relu", {"c"}, {"r"}).Node("Add", {"c", "r"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(reader, "fuse-activation"), 0);
  // sigmoid(c) is wanted on its own.
  TestModel sigmoid = ConvModel();
  sigmoid.Node("Sigmoid", {"c"}, {"s"}).Node("Mul", {"s", "c"}, {"y"}).Output("y").Output("s");
  EXPECT_EQ(Rewrites(sigmoid, "fuse-activation"), 0);
}

TEST(FuseResidual, ScaledAndPlain) {
  for (const bool flip : {false, true}) {
    for (const bool scaled : {false, true}) {
      TestModel m;
      m.Input("x", {1, 3, -1, -1}).Noise("w", {3, 3, 3, 3}).Floats("scale", {}, {0.2f});
      m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
      if (scaled) m.Node("Mul", {"c", "scale"}, {"s"});
      const std::string s = scaled ? "s" : "c";
      m.Node("Add", flip ? std::vector<std::string>{"x", s} : std::vector<std::string>{s, "x"},
             {"y"});
      m.Output("y");
      EXPECT_EQ(Rewrites(m, "fuse-residual"), 1);
      ExpectSameWithoutPass(m, "fuse-residual");
    }
  }
}

TEST(FuseResidual, OfTwoConvolutionsTheLaterOneTakesTheSum) {
  TestModel m = ConvModel();
  m.Noise("w2", {4, 4, 3, 3}).Node("Conv", {"c", "w2"}, {"d"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Conv", {"x", "w"}, {"e"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Add", {"e", "d"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "fuse-residual"), 1);
  ExpectSameWithoutPass(m, "fuse-residual");
}

TEST(FuseResidual, NotWhenItBroadcasts) {
  TestModel m = ConvModel();
  m.Node("GlobalAveragePool", {"x"}, {"g"}).Noise("w1", {4, 3, 1, 1});
  m.Node("Conv", {"g", "w1"}, {"e"}).Node("Add", {"e", "c"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "fuse-residual"), 0);
  ExpectSameWithoutPass(m, "fuse-residual");
}

TEST(FuseGate, SpansGate) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {3, 3, 3, 3}).Floats("half", {}, {0.5f});
  m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Sigmoid", {"c"}, {"s"}).Node("Sub", {"s", "half"}, {"g"});
  m.Node("Add", {"c", "x"}, {"a"}).Node("Mul", {"a", "g"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "fuse-gate"), 1);
  ExpectSameWithoutPass(m, "fuse-gate");
  TestModel higher_rank = m;
  for (int i = 0; i < 5; ++i)
    higher_rank.proto.mutable_graph()->mutable_initializer(1)->add_dims(1);
  EXPECT_EQ(Rewrites(higher_rank, "fuse-gate"), 0);
  ExpectSameWithoutPass(higher_rank, "fuse-gate");
  m.proto.mutable_graph()->mutable_initializer(1)->set_float_data(0, 0.25f);
  EXPECT_EQ(Rewrites(m, "fuse-gate"), 0);
  ExpectSameWithoutPass(m, "fuse-gate");
}

// Steps of one run, by operator.
int CountSteps(const TestModel& m, const std::string& type, const SessionOptions& options = {}) {
  const Tensor x = Tensor::FromVector<float>({1, 3, 8, 8}, std::vector<float>(192, 0.5f));
  std::vector<Tensor> outputs;
  RunProfile profile;
  m.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs, nullptr, &profile);
  return static_cast<int>(std::count_if(profile.steps.begin(), profile.steps.end(),
                                        [&](const auto& step) { return step.type == type; }));
}

TEST(ConcatInPlace, DenseBlocksAndNestedConcatsAreNotCopied) {
  const Ints pads{1, 1, 1, 1};
  const std::vector<TestModel::Attribute> axis{{"axis", std::int64_t{1}}};
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w0", {32, 3, 3, 3}, 0.3f).Noise("wa", {16, 32, 3, 3}, 0.1f);
  m.Noise("wb", {16, 48, 3, 3}, 0.1f).Noise("wc", {16, 64, 3, 3}, 0.1f).Noise("wd", {5, 80, 1, 1});
  m.Node("Conv", {"x", "w0"}, {"r"}, {{"pads", pads}});
  m.Node("Conv", {"r", "wa"}, {"a"}, {{"pads", pads}});
  m.Node("Concat", {"r", "a"}, {"ra"}, axis);
  m.Node("Conv", {"ra", "wb"}, {"b"}, {{"pads", pads}});
  m.Node("Concat", {"r", "a", "b"}, {"rab"}, axis);
  m.Node("Conv", {"rab", "wc"}, {"c"}, {{"pads", pads}});
  m.Node("Concat", {"rab", "c"}, {"rabc"}, axis);  // nested
  m.Node("Conv", {"rabc", "wd"}, {"y"}).Output("y");
  EXPECT_EQ(CountSteps(m, "Concat"), 0);
  EXPECT_EQ(CountSteps(m, "Concat", {.disabled_passes = {"concat-in-place"}}), 3);
  ExpectSameWithoutPass(m, "concat-in-place");
}

TEST(ConcatInPlace, CopiesWhatCannotLieInTwoPlaces) {
  const std::vector<TestModel::Attribute> axis{{"axis", std::int64_t{1}}};
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {16, 3, 1, 1});
  m.Node("Conv", {"x", "w"}, {"a"}).Node("Relu", {"a"}, {"b"}).Node("Neg", {"a"}, {"c"});
  m.Node("Concat", {"a", "b"}, {"ab"}, axis).Node("Concat", {"c", "a"}, {"ca"}, axis);
  m.Node("Concat", {"c", "c"}, {"cc"}, axis);
  m.Output("ab").Output("ca").Output("cc");
  EXPECT_GE(CountSteps(m, "Concat"), 2);
  ExpectSameWithoutPass(m, "concat-in-place");
}

// 'ab' is wanted at the head of 'abc', and 'a' and 'b' at the head of 'abd'.
TEST(ConcatInPlace, AConcatIsNotMovedOutOfAnother) {
  const std::vector<TestModel::Attribute> axis{{"axis", std::int64_t{1}}};
  TestModel m;
  m.Input("x", {1, 3, -1, -1});
  for (const std::string name : {"a", "b", "c", "d"}) {
    m.Noise("w" + name, {16, 3, 1, 1}).Node("Conv", {"x", "w" + name}, {name});
  }
  m.Node("Concat", {"a", "b"}, {"ab"}, axis).Node("Concat", {"ab", "c"}, {"abc"}, axis);
  m.Node("Concat", {"a", "b", "d"}, {"abd"}, axis).Node("Add", {"abc", "abd"}, {"y"}).Output("y");
  ExpectSameWithoutPass(m, "concat-in-place");
}

// The last reader of 'a' must not write where 'a' lay: 'd' is there already, in the output of the
// second Concat.
TEST(ConcatInPlace, PartsOfConcatsAreNotComputedInPlaceOfEachOther) {
  const std::vector<TestModel::Attribute> axis{{"axis", std::int64_t{1}}};
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w1", {16, 32, 1, 1}).Noise("w2", {16, 32, 1, 1});
  for (const std::string name : {"a", "b", "d"}) {
    m.Noise("w" + name, {16, 3, 1, 1}).Node("Conv", {"x", "w" + name}, {name});
    if (name == "b") {
      m.Node("Concat", {"a", "b"}, {"ab"}, axis).Node("Conv", {"ab", "w1"}, {"first"});
    }
  }
  m.Node("Tanh", {"a"}, {"t"}).Node("Concat", {"d", "t"}, {"dt"}, axis);
  m.Node("Conv", {"dt", "w2"}, {"second"}).Node("Sub", {"first", "second"}, {"y"}).Output("y");
  ExpectSameWithoutPass(m, "concat-in-place");
}

TEST(RemoveIdentity, LeavesThoseBetweenInputAndOutput) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Node("Identity", {"x"}, {"a"}).Node("Relu", {"a"}, {"b"});
  m.Node("Dropout", {"b"}, {"c"}).Node("Identity", {"c"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "remove-identity"), 3);
  ExpectSameWithoutPass(m, "remove-identity");
  TestModel copy;
  copy.Input("x", {1, 3, -1, -1}).Node("Identity", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(copy, "remove-identity"), 0);
  ExpectSameWithoutPass(copy, "remove-identity");
}

}  // namespace
}  // namespace tessera
