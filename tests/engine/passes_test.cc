// Each pass on a graph where it applies and on near misses where it must not: the result stays
// the same either way, and the number of steps tells whether it fired.
#include "engine/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "engine/infer.h"
#include "engine/onnx_import.h"
#include "ops/error.h"
#include "tests/engine/test_model.h"
#include "tests/every_target.h"

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

// Within 1e-5, where `relative` of the largest value if that is above 1.
void ExpectSameOutputs(const std::vector<Tensor>& a, const std::vector<Tensor>& b, bool relative) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    float largest = 1;
    for (const float value : b[k].values<float>()) {
      largest = std::max(largest, std::abs(value));
    }
    const float tolerance = 1e-5f * (relative ? largest : 1);
    for (std::int64_t i = 0; i < a[k].size(); ++i) {
      ASSERT_NEAR(a[k].data<float>()[i], b[k].data<float>()[i], tolerance) << k << " " << i;
    }
  }
}

// As by plain kernels without passes. On every target: what a pass may do depends on the number of
// lanes.
void ExpectSameWithoutPass(const TestModel& m, const std::string& pass,
                           const Shape& shape = {1, 3, 8, 8}) {
  const Tensor x = Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 9));
  std::vector<Tensor> plain;
  m.Load({.reference = true})->Run(std::vector<NamedView>{{"x", x.view()}}, plain);
  OnEveryTarget([&] {
    std::vector<Tensor> with, without;
    m.Load()->Run(std::vector<NamedView>{{"x", x.view()}}, with);
    m.Load({.disabled_passes = {pass}})->Run(std::vector<NamedView>{{"x", x.view()}}, without);
    ExpectSameOutputs(with, without, false);
    ExpectSameOutputs(with, plain, true);
  });
}

// x -> Conv -> c, 3 to 4 channels; tests add what follows.
TestModel ConvModel() {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3}, 0.5f).Noise("b", {4});
  m.Node("Conv", {"x", "w", "b"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  return m;
}

// Steps of one run, by operator.
int CountSteps(const TestModel& m, const std::string& type, const SessionOptions& options = {},
               const Shape& shape = {1, 3, 8, 8}) {
  const Tensor x(DType::kFloat32, shape);
  std::fill_n(x.data<float>(), x.size(), 0.5f);
  std::vector<Tensor> outputs;
  RunProfile profile;
  m.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs, nullptr, &profile);
  return static_cast<int>(std::count_if(profile.steps.begin(), profile.steps.end(),
                                        [&](const auto& step) { return step.type == type; }));
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

TEST(SplitConvTranspose, ComputesEveryPhase) {
  struct Case {
    std::int64_t in, out, kernel_h, kernel_w, stride_h, stride_w;
    Ints pads, output_padding, dilations;
    std::int64_t groups;
  };
  const Case cases[] = {
      {3, 1, 9, 9, 3, 3, {4, 4, 4, 4}, {2, 2}, {1, 1}, 1},    // FSRCNN
      {3, 16, 4, 4, 2, 2, {1, 1, 1, 1}, {0, 0}, {1, 1}, 1},   // U-Net
      {40, 48, 4, 4, 2, 2, {1, 1, 1, 1}, {0, 0}, {1, 1}, 1},  // Winograd
      {3, 3, 2, 2, 2, 2, {0, 0, 0, 0}, {0, 0}, {1, 1}, 1},    //
      {3, 20, 3, 3, 2, 2, {1, 1, 1, 1}, {1, 1}, {1, 1}, 1},   //
      {3, 5, 3, 3, 1, 1, {1, 1, 1, 1}, {0, 0}, {2, 1}, 1},    // no phases
      {3, 3, 1, 3, 4, 1, {0, 0, 0, 2}, {3, 0}, {1, 3}, 1},    // phases without taps
      {3, 2, 5, 2, 2, 3, {3, 0, 2, 1}, {1, 2}, {2, 2}, 1},    // dilations
      {4, 6, 3, 4, 2, 2, {0, 1, 2, 0}, {0, 1}, {1, 1}, 2},    //
      {4, 4, 4, 4, 2, 2, {1, 1, 1, 1}, {0, 0}, {1, 1}, 4},    // depthwise
      {3, 2, 3, 3, 2, 2, {7, 0, 0, 6}, {0, 0}, {1, 1}, 1},    // pads beyond the kernel
  };
  for (const Case& c : cases) {
    TestModel m;
    m.Input("x", {1, c.in, -1, -1}).Noise("b", {c.out});
    m.Noise("w", {c.in, c.out / c.groups, c.kernel_h, c.kernel_w}, 0.2f);
    m.Node("ConvTranspose", {"x", "w", "b"}, {"t"},
           {{"strides", Ints{c.stride_h, c.stride_w}},
            {"pads", c.pads},
            {"output_padding", c.output_padding},
            {"dilations", c.dilations},
            {"group", c.groups}});
    m.Noise("gamma", {c.out}).Noise("mean", {c.out}).Noise("slope", {c.out, 1, 1});
    m.Floats("var", {c.out}, std::vector<float>(static_cast<std::size_t>(c.out), 2.f));
    m.Node("BatchNormalization", {"t", "gamma", "b", "mean", "var"}, {"n"});
    m.Node("PRelu", {"n", "slope"}, {"y"}).Output("y");
    EXPECT_EQ(Rewrites(m, "split-conv-transpose"), 1);
    ExpectSameWithoutPass(m, "split-conv-transpose", {1, c.in, 8, 9});
    ExpectSameWithoutPass(m, "split-conv-transpose", {2, c.in, 13, 7});
  }
}

TEST(SplitConvTranspose, LetsActivationsFuse) {
  const auto steps = [](bool output, const std::string& type) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Noise("w", {3, 16, 4, 4});
    m.Node("ConvTranspose", {"x", "w"}, {"t"},
           {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
    m.Node("LeakyRelu", {"t"}, {"y"}).Output("y");
    if (output) m.Output("t");
    ExpectSameWithoutPass(m, "split-conv-transpose");
    return CountSteps(m, type);
  };
  EXPECT_EQ(steps(false, "FusedConv"), 1);
  EXPECT_EQ(steps(false, "LeakyRelu"), 0);
  EXPECT_EQ(steps(true, "FusedConv"), 0);
  EXPECT_EQ(steps(true, "LeakyRelu"), 1);
}

TEST(SplitConvTranspose, KnowsWhatItCannotDo) {
  const auto rewrites = [](const Ints& output_shape, const std::string& auto_pad, bool constant) {
    TestModel m;
    m.Input("x", {1, 3, 8, 8});
    constant ? m.Noise("w", {3, 2, 3, 3}) : m.Input("w", {3, 2, 3, 3});
    std::vector<TestModel::Attribute> attributes = {{"strides", Ints{2, 2}},
                                                    {"auto_pad", auto_pad}};
    if (!output_shape.empty()) attributes.push_back({"output_shape", output_shape});
    m.Node("ConvTranspose", {"x", "w"}, {"y"}, attributes).Output("y");
    if (constant) ExpectSameWithoutPass(m, "split-conv-transpose");
    return Rewrites(m, "split-conv-transpose");
  };
  EXPECT_EQ(rewrites({}, "SAME_UPPER", true), 1);
  EXPECT_EQ(rewrites({}, "SAME_LOWER", true), 1);
  EXPECT_EQ(rewrites({}, "VALID", true), 1);
  EXPECT_EQ(rewrites({16, 15}, "NOTSET", true), 0);
  EXPECT_EQ(rewrites({}, "NOTSET", false), 0);
}

TEST(FoldScaleShift, AfterAConvolution) {
  for (const std::string type : {"Mul", "Div", "Add", "Sub"}) {
    for (const std::vector<std::int64_t>& dims :
         {Ints{}, Ints{1}, Ints{4, 1, 1}, Ints{1, 4, 1, 1}}) {
      for (const bool flip : {false, true}) {
        SCOPED_TRACE(type + " " + std::to_string(dims.size()) + (flip ? " flipped" : ""));
        TestModel m = ConvModel();
        std::vector<float> values{1.5f, -0.75f, 2, -3};
        if (dims.size() < 3) values.resize(1);
        m.Floats("k", dims, values);
        m.Node(type, flip ? std::vector<std::string>{"k", "c"} : std::vector<std::string>{"c", "k"},
               {"y"});
        m.Output("y");
        EXPECT_EQ(Rewrites(m, "fold-scale-shift"), type == "Div" && flip ? 0 : 1);
        ExpectSameWithoutPass(m, "fold-scale-shift");
        m.Output("c");  // somebody else wants the convolution's own result
        EXPECT_EQ(Rewrites(m, "fold-scale-shift"), 0);
      }
    }
  }
  TestModel chain = ConvModel();
  chain.Floats("two", {}, {2}).Noise("k", {4, 1, 1});
  chain.Node("Mul", {"c", "two"}, {"d"}).Node("Add", {"k", "d"}, {"e"}).Node("Relu", {"e"}, {"y"});
  chain.Output("y");
  EXPECT_EQ(Rewrites(chain, "fold-scale-shift"), 2);
  ExpectSameWithoutPass(chain, "fold-scale-shift");
}

TEST(FoldScaleShift, NotIfItVariesOverThePictureOrChangesTheShape) {
  const std::vector<std::pair<Ints, std::vector<float>>> constants = {
      {{8}, TestModel::NoiseValues(8, 1)},  // of columns
      {{4, 1, 8}, TestModel::NoiseValues(32, 1)},
      {{2, 1, 1, 1}, {1, 2}},  // makes two images of one
      {{1, 1, 1, 1, 1}, {2}},  // adds a dimension
      {{}, {INFINITY}},
  };
  for (const auto& [dims, values] : constants) {
    TestModel m = ConvModel();
    m.Floats("k", dims, values).Node("Mul", {"c", "k"}, {"y"}).Output("y");
    EXPECT_EQ(Rewrites(m, "fold-scale-shift"), 0);
  }
  TestModel square = ConvModel();
  square.Node("Mul", {"c", "c"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(square, "fold-scale-shift"), 0);
  ExpectSameWithoutPass(square, "fold-scale-shift");
}

TEST(FoldScaleShift, BeforeAConvolution) {
  const auto model = [](const std::vector<std::string>& types, const Ints& pads, const Ints& dims) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Noise("w", {6, 1, 3, 3}, 0.5f).Noise("b", {6});
    m.Floats("k", dims, std::vector<float>(dims.size() < 3 ? 1 : 3, 0.7f));
    std::string x = "x";
    for (const std::string& type : types) {
      const std::string before = x;
      x += "'";
      m.Node(type, {before, "k"}, {x});
    }
    m.Node("Conv", {x, "w", "b"}, {"y"}, {{"pads", pads}, {"group", std::int64_t{3}}}).Output("y");
    return m;
  };
  const auto check = [](const TestModel& m, int expected) {
    EXPECT_EQ(Rewrites(m, "fold-scale-shift"), expected);
    ExpectSameWithoutPass(m, "fold-scale-shift");
  };
  const Ints padded{1, 1, 0, 1}, unpadded{0, 0, 0, 0};
  check(model({"Mul"}, padded, {}), 1);
  check(model({"Div"}, padded, {1}), 1);
  check(model({"Add"}, unpadded, {}), 1);
  check(model({"Sub", "Mul"}, unpadded, {}), 2);
  check(model({"Sub", "Mul"}, padded, {}), 1);  // zeros stay zeros when they are scaled only
  check(model({"Add"}, padded, {}), 0);
  check(model({"Mul"}, padded, {3, 1, 1}), 0);  // x might have a single channel
  TestModel twice = model({"Mul"}, padded, {});
  twice.Output("x'");
  EXPECT_EQ(Rewrites(twice, "fold-scale-shift"), 0);
}

// SPAN's end: of 'a', 'd' and 'v' (after activations) and 'c' (a convolution), `order` goes into a
// 1x1 convolution.
TestModel PointwiseModel(std::int64_t c_channels, std::int64_t out_channels, const Ints& pads,
                         const std::vector<std::string>& order) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1})
      .Noise("wa", {5, 3, 3, 3}, 0.3f)
      .Noise("wc", {c_channels, 5, 3, 3}, 0.3f);
  m.Noise("bc", {c_channels}).Noise("wp", {out_channels, 10 + c_channels, 1, 1}, 0.3f);
  m.Noise("bp", {out_channels}).Noise("wy", {2, out_channels, 3, 3}, 0.3f);
  m.Node("Conv", {"x", "wa"}, {"a0"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Sigmoid", {"a0"}, {"s"}).Node("Mul", {"a0", "s"}, {"a"}).Node("Add", {"a", "a0"}, {"d"});
  m.Node("Conv", {"d", "wc", "bc"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Abs", {"d"}, {"v"});
  m.Node("Concat", order, {"all"}, {{"axis", std::int64_t{1}}});
  m.Node("Conv", {"all", "wp", "bp"}, {"p"}, {{"pads", pads}});
  return m;
}

TEST(FoldPointwise, MakesItsShareOfTheResult) {
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"c", "a", "d"}, {"a", "c", "d"}, {"a", "d", "c"}}) {
    TestModel m = PointwiseModel(7, 6, {0, 0, 0, 0}, order);
    m.Node("Conv", {"p", "wy"}, {"y"}, {{"pads", Ints{1, 1, 1, 1}}}).Output("y");
    EXPECT_EQ(Rewrites(m, "fold-pointwise"), 1);
    ExpectSameWithoutPass(m, "fold-pointwise");
    TestModel read_too = m;
    read_too.Output("c");
    EXPECT_EQ(Rewrites(read_too, "fold-pointwise"), 0);
    ExpectSameWithoutPass(read_too, "fold-pointwise");
  }
  TestModel alone;
  alone.Input("x", {1, 3, -1, -1})
      .Noise("w", {5, 3, 3, 3})
      .Noise("b", {4})
      .Noise("p", {4, 5, 1, 1});
  alone.Node("Conv", {"x", "w"}, {"c"}, {{"strides", Ints{2, 2}}});
  alone.Node("Conv", {"c", "p", "b"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(alone, "fold-pointwise"), 1);
  ExpectSameWithoutPass(alone, "fold-pointwise");
}

TEST(FoldPointwise, NearMisses) {
  const Ints unpadded{0, 0, 0, 0};
  const auto check = [](TestModel m, const std::string& last) {
    m.Node(last,
           last == "Conv" ? std::vector<std::string>{"p", "wy"} : std::vector<std::string>{"p"},
           {"y"});
    m.Output("y");
    EXPECT_EQ(Rewrites(m, "fold-pointwise"), 0);
    ExpectSameWithoutPass(m, "fold-pointwise");
  };
  check(PointwiseModel(7, 6, {1, 1, 1, 1}, {"c", "a", "d"}), "Conv");  // bias alone in the padding
  check(PointwiseModel(7, 8, unpadded, {"c", "a", "d"}), "Conv");      // more work than before
  check(PointwiseModel(7, 6, unpadded, {"c", "a", "d"}), "Relu");      // fused with the 1x1
  // Before the convolution's part there is one of unknown size.
  TestModel unknown = PointwiseModel(7, 6, unpadded, {"v", "c", "a"});
  unknown.Node("Conv", {"p", "wy"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(unknown, "fold-pointwise"), 0);
  ExpectSameWithoutPass(unknown, "fold-pointwise");
}

TEST(FoldPointwise, LeavesAMissingPartToConcat) {
  TestModel m = PointwiseModel(7, 6, {0, 0, 0, 0}, {"a", "", "c", "d"});
  m.Node("Conv", {"p", "wy"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "fold-pointwise"), 0);
  EXPECT_THROW(m.Load()->InferOutputs(std::vector<Shape>{{1, 3, 8, 8}}), Error);
}

TEST(FoldPointwise, PartsThatDoNotFitTogetherAreAnError) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("wc", {7, 3, 3, 3}).Noise("wa", {5, 3, 1, 1});
  m.Noise("p", {6, 12, 1, 1}).Node("Conv", {"x", "wc"}, {"c"});
  m.Node("GlobalAveragePool", {"x"}, {"g"}).Node("Conv", {"g", "wa"}, {"a"});  // one pixel
  m.Node("Concat", {"c", "a"}, {"ca"}, {{"axis", std::int64_t{1}}});
  m.Node("Conv", {"ca", "p"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "fold-pointwise"), 1);
  EXPECT_THROW(m.Load()->InferOutputs(std::vector<Shape>{{1, 3, 8, 8}}), Error);
}

TEST(FoldPad, ZerosAroundThePicture) {
  const auto model = [](const Ints& pads, float value, const std::string& mode,
                        const std::vector<TestModel::Attribute>& conv) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3}, 0.5f).Ints("pads", pads);
    m.Floats("value", {}, {value});
    m.Node("Pad", {"x", "pads", "value"}, {"p"}, {{"mode", mode}});
    m.Node("Conv", {"p", "w"}, {"y"}, conv).Output("y");
    return m;
  };
  const auto check = [](const TestModel& m, int expected) {
    EXPECT_EQ(Rewrites(m, "fold-pad"), expected);
    ExpectSameWithoutPass(m, "fold-pad");
  };
  const Ints pads{0, 0, 1, 2, 0, 0, 3, 0};
  check(model(pads, 0, "constant", {}), 1);
  check(model(pads, 0, "constant", {{"pads", Ints{1, 0, 0, 2}}}), 1);
  check(model(pads, 0, "constant", {{"auto_pad", "VALID"}, {"strides", Ints{2, 1}}}), 1);
  check(model({0, 0, 7, 0, 0, 0, 0, 9}, 0, "constant", {}), 1);  // windows of nothing but zeros
  check(model(pads, 0, "constant", {{"auto_pad", "SAME_UPPER"}}), 0);
  check(model(pads, 0.5f, "constant", {}), 0);
  check(model(pads, 0, "reflect", {}), 0);
  check(model({0, 0, 1, -1, 0, 0, 1, 1}, 0, "constant", {}), 0);
  check(model({1, 0, 1, 1, 0, 0, 1, 1}, 0, "constant", {}), 0);
  TestModel twice = model(pads, 0, "constant", {});
  twice.Output("p");
  EXPECT_EQ(Rewrites(twice, "fold-pad"), 0);
  // Before opset 11 pads and value were attributes.
  for (const float value : {0.f, 1.f}) {
    TestModel old(10);
    old.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3}, 0.5f);
    old.Node("Pad", {"x"}, {"p"}, {{"pads", pads}, {"value", value}});
    old.Node("Conv", {"p", "w"}, {"y"}).Output("y");
    check(old, value == 0 ? 1 : 0);
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

TEST(FuseActivation, OfSqueezeAndExcitation) {
  TestModel m = ConvModel();
  m.Ints("flat", {0, -1}).Ints("pixel", {0, -1, 1, 1});
  m.Noise("w1", {6, 4}).Noise("b1", {6}).Noise("w2", {4, 6}).Noise("b2", {4});
  m.Node("GlobalAveragePool", {"c"}, {"g"}).Node("Reshape", {"g", "flat"}, {"v"});
  m.Node("Gemm", {"v", "w1", "b1"}, {"h"}, {{"transB", std::int64_t{1}}})
      .Node("Relu", {"h"}, {"r"});
  m.Node("Gemm", {"r", "w2", "b2"}, {"e"}, {{"transB", std::int64_t{1}}});
  m.Node("HardSigmoid", {"e"}, {"s"}, {{"alpha", 0.3f}}).Node("Reshape", {"s", "pixel"}, {"p"});
  m.Node("Mul", {"c", "p"}, {"x1"}).Node("LeakyRelu", {"x1"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "fuse-activation"), 3);
  ExpectSameWithoutPass(m, "fuse-activation");
  m.Output("x1").Output("e");
  EXPECT_EQ(Rewrites(m, "fuse-activation"), 1);
  ExpectSameWithoutPass(m, "fuse-activation");
}

// The Mul of the first is the activation's own, and dead when the second is looked at.
TEST(FuseActivation, OfSilu) {
  TestModel m = ConvModel();
  m.Node("Sigmoid", {"c"}, {"s"}).Node("Mul", {"c", "s"}, {"a"}).Node("Relu", {"a"}, {"y"});
  EXPECT_EQ(Rewrites(m.Output("y"), "fuse-activation"), 1);
  ExpectSameWithoutPass(m, "fuse-activation");
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

// Two maps of one picture, compared pixel by pixel.
TestModel CorrelationModel(const std::vector<std::int64_t>& perm, const Ints& out_shape) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("wk", {20, 3, 2, 2}).Noise("ws", {20, 3, 1, 1});
  m.Ints("matrix", {1, 20, -1}).Ints("map", out_shape);
  m.Node("Conv", {"x", "wk"}, {"k"}, {{"strides", Ints{2, 2}}}).Node("Conv", {"x", "ws"}, {"s"});
  m.Node("Reshape", {"k", "matrix"}, {"km"}).Node("Reshape", {"s", "matrix"}, {"sm"});
  m.Node("Transpose", {"km"}, {"kt"}, {{"perm", perm}}).Node("MatMul", {"kt", "sm"}, {"p"});
  return m.Node("Reshape", {"p", "map"}, {"y"}).Output("y");
}

TEST(FuseCorrelation, OfATemplateAndASearchArea) {
  TestModel m = CorrelationModel({0, 2, 1}, {1, 16, 8, 8});
  EXPECT_EQ(Rewrites(m, "fuse-correlation"), 1);
  ExpectSameWithoutPass(m, "fuse-correlation");
  EXPECT_EQ(CountSteps(m, "MatMul"), 0);
  m.Output("p");
  EXPECT_EQ(Rewrites(m, "fuse-correlation"), 0);
}

TEST(FuseCorrelation, NearMisses) {
  const TestModel other_map = CorrelationModel({0, 2, 1}, {1, 16, 4, 16});
  EXPECT_EQ(Rewrites(other_map, "fuse-correlation"), 0);
  ExpectSameWithoutPass(other_map, "fuse-correlation");
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

TEST(FuseCompare, WithTheCastToFloat) {
  for (const char* type : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) {
    TestModel m(16);
    m.Input("x", {1, 3, -1, -1}).Floats("c", {}, {0.25f});
    m.Node(type, {"x", "c"}, {"e"}).Node("Cast", {"e"}, {"y"}, {{"to", std::int64_t{1}}});
    m.Output("y");
    EXPECT_EQ(Rewrites(m, "fuse-compare"), 1);
    ExpectSameWithoutPass(m, "fuse-compare");
    m.Output("e", onnx::TensorProto::BOOL);
    EXPECT_EQ(Rewrites(m, "fuse-compare"), 0);
  }
}

TEST(FuseMulAdd, WhateverTheOperandsAre) {
  const std::vector<std::string> shifts{"x", "k", "half"};
  for (const bool flip : {false, true}) {
    for (const std::string& shift : shifts) {
      TestModel m;
      m.Input("x", {1, 3, -1, -1}).Noise("k", {3, 1, 1}).Floats("half", {}, {0.5f});
      m.Node("Exp", {"x"}, {"e"});
      m.Node("Mul",
             flip ? std::vector<std::string>{"half", "e"} : std::vector<std::string>{"e", "k"},
             {"p"});
      m.Node("Add",
             flip ? std::vector<std::string>{shift, "p"} : std::vector<std::string>{"p", shift},
             {"y"});
      m.Output("y");
      EXPECT_EQ(Rewrites(m, "fuse-mul-add"), 1);
      ExpectSameWithoutPass(m, "fuse-mul-add");
      m.Output("p");
      EXPECT_EQ(Rewrites(m, "fuse-mul-add"), 0);
    }
  }
  // The sum is larger than the product.
  TestModel larger;
  larger.Input("x", {1, 3, -1, -1}).Floats("half", {}, {0.5f});
  larger.Node("GlobalAveragePool", {"x"}, {"g"}).Node("Mul", {"g", "half"}, {"p"});
  larger.Node("Add", {"p", "x"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(larger, "fuse-mul-add"), 0);
  ExpectSameWithoutPass(larger, "fuse-mul-add");
}

// x enlarged twice by learned pixels, and by Resize.
TestModel UpsampledShortcutModel(const std::string& mode, const std::string& rounding) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {12, 3, 3, 3}, 0.5f).Floats("scales", {4}, {1, 1, 2, 2});
  m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("DepthToSpace", {"c"}, {"d"}, {{"blocksize", std::int64_t{2}}, {"mode", "CRD"}});
  m.Node("Resize", {"x", "", "scales"}, {"r"},
         {{"mode", mode},
          {"nearest_mode", rounding},
          {"coordinate_transformation_mode", "asymmetric"}});
  return m;
}

TEST(FuseUpsampledShortcut, AddsTheSmallImageAtOnce) {
  for (const bool flip : {false, true}) {
    TestModel m = UpsampledShortcutModel("nearest", "floor");
    m.Node("Add", flip ? std::vector<std::string>{"r", "d"} : std::vector<std::string>{"d", "r"},
           {"y"});
    m.Output("y");
    EXPECT_EQ(Rewrites(m, "fuse-upsampled-shortcut"), 1);
    ExpectSameWithoutPass(m, "fuse-upsampled-shortcut");
  }
}

TEST(FuseUpsampledShortcut, NearMisses) {
  for (const auto& [mode, rounding] :
       {std::pair{"linear", "floor"}, {"nearest", "ceil"}, {"nearest", "round_prefer_ceil"}}) {
    TestModel m = UpsampledShortcutModel(mode, rounding);
    m.Node("Add", {"d", "r"}, {"y"}).Output("y");
    EXPECT_EQ(Rewrites(m, "fuse-upsampled-shortcut"), 0) << mode << " " << rounding;
    ExpectSameWithoutPass(m, "fuse-upsampled-shortcut");
  }
  for (const std::string wanted_too : {"d", "r"}) {
    TestModel m = UpsampledShortcutModel("nearest", "floor");
    m.Node("Add", {"d", "r"}, {"y"}).Output("y").Output(wanted_too);
    EXPECT_EQ(Rewrites(m, "fuse-upsampled-shortcut"), 0);
  }
  // Two channels made of eight, and an image of one that is broadcast.
  TestModel broadcast;
  broadcast.Input("x", {1, 3, -1, -1}).Noise("w", {8, 3, 1, 1}).Noise("w1", {1, 3, 1, 1});
  broadcast.Floats("scales", {4}, {1, 1, 2, 2});
  broadcast.Node("Conv", {"x", "w"}, {"c"}).Node("Conv", {"x", "w1"}, {"i"});
  broadcast.Node("DepthToSpace", {"c"}, {"d"}, {{"blocksize", std::int64_t{2}}});
  broadcast.Node("Resize", {"i", "", "scales"}, {"r"}, {{"mode", "nearest"}});
  broadcast.Node("Add", {"d", "r"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(broadcast, "fuse-upsampled-shortcut"), 0);
  ExpectSameWithoutPass(broadcast, "fuse-upsampled-shortcut");
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

TEST(ConcatInPlace, RowMajorTensorsAreAppendedToo) {
  const auto steps = [](std::int64_t axis, const std::string& last, const SessionOptions& options) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Ints("flat", {1, 3, 64, 1}).Ints("square", {1, 3, 8, 8});
    m.Node("Neg", {"x"}, {"a"}).Node("Exp", {"x"}, {"b"}).Node("Sigmoid", {"x"}, {"c"});
    // The sigmoid goes on under another name and is wanted under its own.
    m.Node("Reshape", {"c", "flat"}, {"f"}).Node("Reshape", {"f", "square"}, {"v"});
    m.Node("Concat", {"a", "b", last}, {"abc"}, {{"axis", axis}});
    m.Node("Abs", {"abc"}, {"y"}).Node("Abs", {"c"}, {"z"}).Output("y").Output("z");
    ExpectSameWithoutPass(m, "concat-in-place");
    return CountSteps(m, "Concat", options);
  };
  EXPECT_EQ(steps(1, "c", {}), 0);
  EXPECT_EQ(steps(0, "c", {}), 0);
  EXPECT_EQ(steps(1, "v", {}), 1);
  EXPECT_EQ(steps(2, "c", {}), 1);
  EXPECT_EQ(steps(1, "c", {.disabled_passes = {"concat-in-place"}}), 1);
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

// x of 32 channels, two convolutions that add 16 each, and one that reads all.
TestModel DenseBlock(std::int64_t height) {
  TestModel m;
  const std::vector<TestModel::Attribute> pads = {{"pads", Ints{1, 1, 1, 1}}};
  const std::vector<TestModel::Attribute> channels = {{"axis", std::int64_t{1}}};
  m.Input("x", {1, 32, height, 60}).Noise("w1", {16, 32, 3, 3}, 0.1f);
  m.Noise("w2", {16, 48, 3, 3}, 0.1f).Noise("w3", {24, 64, 3, 3}, 0.1f).Noise("b", {16});
  m.Node("Conv", {"x", "w1", "b"}, {"c1"}, pads).Node("Relu", {"c1"}, {"a"});
  m.Node("Concat", {"x", "a"}, {"xa"}, channels);
  m.Node("Conv", {"xa", "w2", "b"}, {"c2"}, pads).Node("Relu", {"c2"}, {"b2"});
  m.Node("Concat", {"x", "a", "b2"}, {"xab"}, channels);
  m.Node("Conv", {"xab", "w3"}, {"y"}, pads).Output("y");
  return m;
}

TEST(ShareWinogradInput, TransformsEachPartOfADenseBlockOnce) {
  const TestModel m = DenseBlock(62);
  EXPECT_EQ(Rewrites(m, "share-winograd-input", {1, 32, 62, 60}), 3);
  ExpectSameWithoutPass(m, "share-winograd-input", {1, 32, 62, 60});
  const SessionOptions off = {.disabled_passes = {"share-winograd-input"}};
  EXPECT_EQ(CountSteps(m, "WinogradInput", {}, {1, 32, 62, 60}), 3);
  EXPECT_EQ(CountSteps(m, "WinogradInput", off, {1, 32, 62, 60}), 0);
  // Transformed channels are computed in their place, too.
  EXPECT_EQ(CountSteps(m, "Concat", {}, {1, 32, 62, 60}), 0);
}

TEST(ShareWinogradInput, NearMisses) {
  // Too small for F(6x6).
  EXPECT_EQ(Rewrites(DenseBlock(5), "share-winograd-input", {1, 32, 5, 60}), 0);
  // Too large for the cache.
  EXPECT_EQ(Rewrites(DenseBlock(600), "share-winograd-input", {1, 32, 600, 60}), 0);
  // Nobody shares anything.
  TestModel chain;
  chain.Input("x", {1, 32, 60, 60}).Noise("w", {32, 32, 3, 3}, 0.1f);
  chain.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  chain.Node("Conv", {"c", "w"}, {"y"}, {{"pads", Ints{1, 1, 1, 1}}}).Output("y");
  EXPECT_EQ(Rewrites(chain, "share-winograd-input", {1, 32, 60, 60}), 0);
  // Other pads, other strides; parts that are no whole blocks of channels.
  for (const auto& [w, pads, strides] :
       {std::tuple{Ints{16, 32, 3, 3}, Ints{0, 0, 0, 0}, Ints{1, 1}},
        std::tuple{Ints{16, 32, 3, 3}, Ints{1, 1, 1, 1}, Ints{2, 2}},
        std::tuple{Ints{16, 32, 1, 1}, Ints{0, 0, 0, 0}, Ints{1, 1}}}) {
    TestModel m;
    m.Input("x", {1, 32, 60, 60}).Noise("w", w, 0.1f);
    for (const char* out : {"y", "z"}) {
      m.Node("Conv", {"x", "w"}, {out}, {{"pads", pads}, {"strides", strides}}).Output(out);
    }
    EXPECT_EQ(Rewrites(m, "share-winograd-input", {1, 32, 60, 60}), 0);
  }
  TestModel odd;
  odd.Input("x", {1, 17, 60, 60}).Noise("w", {17, 34, 3, 3}, 0.1f);
  odd.Node("Concat", {"x", "x"}, {"xx"}, {{"axis", std::int64_t{1}}});
  for (const char* out : {"y", "z"}) {
    odd.Node("Conv", {"xx", "w"}, {out}, {{"pads", Ints{1, 1, 1, 1}}}).Output(out);
  }
  // Blocks of one channel are always whole.
  EXPECT_EQ(Rewrites(odd, "share-winograd-input", {1, 17, 60, 60}), FloatLanes() == 1 ? 2 : 0);
  ExpectSameWithoutPass(odd, "share-winograd-input", {1, 17, 60, 60});
}

TEST(ShareWinogradInput, ConvolutionsOfOneValueAndOfTheSamePartTwice) {
  TestModel m;
  m.Input("x", {1, 16, 60, 60}).Noise("w", {16, 16, 3, 3}, 0.1f).Noise("w2", {16, 32, 3, 3}, 0.1f);
  m.Node("Concat", {"x", "x"}, {"xx"}, {{"axis", std::int64_t{1}}});
  m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Conv", {"xx", "w2"}, {"d"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Add", {"c", "x"}, {"y"}).Output("y").Output("d");
  EXPECT_EQ(Rewrites(m, "share-winograd-input", {1, 16, 60, 60}), 2);
  ExpectSameWithoutPass(m, "share-winograd-input", {1, 16, 60, 60});
}

// x -> r -> depthwise d -> pointwise y; tests say what follows each.
TestModel SeparableModel() {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w0", {32, 3, 3, 3}, 0.3f).Noise("wd", {32, 1, 3, 3});
  m.Noise("bd", {32}).Noise("wp", {48, 32, 1, 1}, 0.2f);
  m.Node("Conv", {"x", "w0"}, {"r"}, {{"pads", Ints{1, 1, 1, 1}}});
  return m.Node("Conv", {"r", "wd", "bd"}, {"d"},
                {{"pads", Ints{1, 1, 1, 1}}, {"group", std::int64_t{32}}});
}

TEST(StreamDepthwise, WithTheEpiloguesOfBoth) {
  const Shape shape{1, 3, 24, 48};  // rows of whole cache lines on every target
  TestModel m = SeparableModel();
  m.Node("Relu", {"d"}, {"a"}).Node("Conv", {"a", "wp"}, {"p"}).Node("Sigmoid", {"p"}, {"s"});
  m.Node("Mul", {"p", "s"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "stream-depthwise", shape), 0);  // without fuse-activation
  ExpectSameWithoutPass(m, "stream-depthwise", shape);
  TestModel plain = SeparableModel();
  plain.Node("Conv", {"d", "wp"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(plain, "stream-depthwise", shape), 1);
  ExpectSameWithoutPass(plain, "stream-depthwise", shape);
  // A residual: the addend is an input of the pair.
  TestModel residual = SeparableModel();
  residual.Noise("wq", {32, 32, 1, 1}, 0.2f).Node("Conv", {"d", "wq"}, {"q"});
  residual.Node("Add", {"q", "r"}, {"y"}).Output("y");
  ExpectSameWithoutPass(residual, "stream-depthwise", shape);
}

TEST(StreamDepthwise, NearMisses) {
  const Shape shape{1, 3, 24, 40};
  TestModel output = SeparableModel();  // what lies between is wanted
  output.Node("Conv", {"d", "wp"}, {"y"}).Output("y").Output("d");
  EXPECT_EQ(Rewrites(output, "stream-depthwise", shape), 0);
  TestModel slope = SeparableModel();  // the first has an operand of its own
  slope.Noise("s", {32, 1, 1}).Node("PRelu", {"d", "s"}, {"a"}).Node("Conv", {"a", "wp"}, {"y"});
  slope.Output("y");
  ExpectSameWithoutPass(slope, "stream-depthwise", shape);
}

TEST(ViewOnePixel, ChangesTheLayoutInPlace) {
  for (const std::int64_t channels : {20, 32}) {  // with a padded block, and without
    SCOPED_TRACE(channels);
    TestModel m = ConvModel();
    m.Noise("wp", {channels, 4, 1, 1}).Ints("row", {1, 1, -1}).Ints("pixel", {1, -1, 1, 1});
    m.Noise("ws", {channels, channels, 1, 1});
    m.Node("GlobalAveragePool", {"c"}, {"g"}).Node("Conv", {"g", "wp"}, {"p"});
    m.Node("Reshape", {"p", "row"}, {"v"}).Node("Softmax", {"v"}, {"e"});
    m.Node("Reshape", {"e", "pixel"}, {"q"})
        .Node("Conv", {"q", "ws"}, {"y"})
        .Output("y")
        .Output("p");
    const int reorders = FloatLanes() < 3 ? 1 : 0;  // of x, unless it fits in a block
    EXPECT_EQ(CountSteps(m, "Reorder"), reorders);
    EXPECT_GT(CountSteps(m, "Reorder", {.disabled_passes = {"view-one-pixel"}}), reorders);
    ExpectSameWithoutPass(m, "view-one-pixel");
  }
}

TEST(ViewOnePixel, OperandsOfEachChannelStayWithTheirChannels) {
  TestModel m = ConvModel();
  m.Noise("w1", {40, 4, 1, 1}).Noise("slope", {40, 1, 1}).Noise("gamma", {40}).Noise("beta", {40});
  m.Floats("variance", {40}, std::vector<float>(40, 0.5f));
  m.Node("GlobalAveragePool", {"c"}, {"g"}).Node("Conv", {"g", "w1"}, {"p"}).Output("p");
  m.Node("PRelu", {"p", "slope"}, {"y"}).Output("y");
  m.Node("BatchNormalization", {"p", "gamma", "beta", "beta", "variance"}, {"z"}).Output("z");
  ExpectSameWithoutPass(m, "view-one-pixel");
}

// 'a' lies where its view does, so it cannot lie in the Concat's output too.
TEST(ViewOnePixel, IsNotTornApartByConcats) {
  TestModel m = ConvModel();
  m.Noise("w1", {32, 4, 1, 1}).Noise("w2", {64, 64, 1, 1}).Ints("row", {1, 1, -1});
  m.Node("GlobalAveragePool", {"c"}, {"g"});
  m.Node("Conv", {"g", "w1"}, {"a"}).Node("Reshape", {"a", "row"}, {"v"});
  m.Node("Softmax", {"v"}, {"z"}).Output("z").Node("Neg", {"a"}, {"n"});
  m.Node("Concat", {"a", "n"}, {"ab"}, {{"axis", std::int64_t{1}}});
  m.Node("Conv", {"ab", "w2"}, {"y"}).Output("y");
  ExpectSameWithoutPass(m, "view-one-pixel");
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
