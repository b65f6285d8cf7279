#include "engine/blend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/onnx_export.h"
#include "engine/session.h"
#include "ops/error.h"
#include "tests/engine/ncnn_test_model.h"
#include "tests/engine/test_model.h"
#include "tests/temporary_folder.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

// (1 - t) * a + t * b for two rows of noise.
std::vector<float> Mixed(std::size_t n, std::uint32_t seed, float t) {
  const auto a = TestModel::NoiseValues(n, seed), b = TestModel::NoiseValues(n, seed + 100);
  std::vector<float> mixed(n);
  for (std::size_t i = 0; i < n; ++i) mixed[i] = 0.2f * ((1 - t) * a[i] + t * b[i]);
  return mixed;
}

// A small network whose weights are those of one training at t = 0 and of another at t = 1, with
// other constants that all trainings share. `prefix` is of all names but "x".
TestModel Network(float t, const std::string& prefix = "") {
  const auto name = [&](const char* rest) { return prefix + rest; };
  TestModel m;
  m.Input("x", {1, 3, -1, -1});
  m.Floats(name("w1"), {8, 3, 3, 3}, Mixed(216, 1, t)).Floats(name("b1"), {8}, Mixed(8, 2, t));
  m.Floats(name("slope"), {8, 1, 1}, Mixed(8, 3, t));
  m.Floats(name("w2"), {12, 8, 3, 3}, Mixed(864, 4, t));
  m.Floats(name("scales"), {4}, {1, 1, 2, 2});
  m.Ints(name("axes"), {0}).Ints(name("starts"), {0}).Ints(name("ends"), {1});
  m.Node("Conv", {"x", name("w1"), name("b1")}, {name("c1")}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("PRelu", {name("c1"), name("slope")}, {name("p1")});
  m.Node("Conv", {name("p1"), name("w2")}, {name("c2")}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("DepthToSpace", {name("c2")}, {name("d")}, {{"blocksize", std::int64_t{2}}});
  m.Node("Resize", {"x", "", name("scales")}, {name("r")}, {{"mode", "nearest"}});
  m.Node("Add", {name("d"), name("r")}, {name("sum")});
  m.Node("Slice", {name("sum"), name("starts"), name("ends"), name("axes")}, {name("y")});
  m.Output(name("y"));
  return m;
}

std::shared_ptr<Session> Blend(const std::string& a, const std::string& b, float t) {
  return Session::LoadBlend(ModelBytes{std::as_bytes(std::span(a)), "a.onnx"},
                            ModelBytes{std::as_bytes(std::span(b)), "b.onnx"}, t);
}

std::shared_ptr<Session> Blend(const TestModel& a, const TestModel& b, float t) {
  return Blend(a.Bytes(), b.Bytes(), t);
}

// Output 0 of a network for noise [1, 3, 6, 7].
std::vector<float> Result(Session& session, const Shape& shape = {1, 3, 6, 7}) {
  const Tensor x = Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 9));
  std::vector<Tensor> outputs;
  session.Run(std::vector<NamedView>{{session.inputs()[0].name, x.view()}}, outputs);
  return ToFloats(outputs.at(0).view());
}

void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-5f) << "at " << i;
}

TEST(Blend, IsTheNetworkOfTheMixedWeights) {
  const TestModel a = Network(0), b = Network(1, "other_");
  for (const float t : {0.25f, 0.5f, 0.9f}) {
    SCOPED_TRACE(t);
    ExpectNear(Result(*Blend(a, b, t)), Result(*Network(t).Load()));
  }
}

TEST(Blend, TheEndsAreTheNetworksThemselves) {
  const TestModel a = Network(0), b = Network(1);
  const std::vector<float> of_a = Result(*a.Load()), of_b = Result(*b.Load());
  EXPECT_NE(of_a, of_b);
  EXPECT_EQ(Result(*Blend(a, b, 0)), of_a);
  EXPECT_EQ(Result(*Blend(a, b, 1)), of_b);
  EXPECT_EQ(Result(*Blend(a, a, 0.3f)), of_a);
}

// x + w, w of one element type.
TestModel AddModel(int type, const std::vector<std::uint16_t>& halves,
                   const std::vector<float>& floats) {
  TestModel m;
  m.Input("x", {static_cast<std::int64_t>(halves.size() + floats.size())}, type);
  if (type == onnx::TensorProto::FLOAT16) {
    auto* w = m.proto.mutable_graph()->add_initializer();
    w->set_name("w");
    w->set_data_type(type);
    w->add_dims(static_cast<std::int64_t>(halves.size()));
    for (std::uint16_t half : halves) w->add_int32_data(half);
  } else {
    m.Floats("w", {static_cast<std::int64_t>(floats.size())}, floats);
  }
  m.Node("Add", {"x", "w"}, {"y"}).Output("y", type);
  return m;
}

// The result for x = 0: the weights.
std::vector<float> Weights(Session& session, std::int64_t count) {
  const Tensor x = Tensor::FromVector<float>(
      {count}, std::vector<float>(static_cast<std::size_t>(count), -0.0f));
  std::vector<Tensor> outputs;
  session.Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
  return ToFloats(outputs.at(0).view());
}

TEST(Blend, HalvesAreMixedInFloatAndRounded) {
  const std::vector<float> a{1, 0.333f, -2, 60000}, b{2, 7, 0.001f, 65504};
  std::vector<std::uint16_t> halves_a, halves_b;
  for (float v : a) halves_a.push_back(FloatToHalf(v));
  for (float v : b) halves_b.push_back(FloatToHalf(v));
  const auto half = onnx::TensorProto::FLOAT16;
  const auto session = Blend(AddModel(half, halves_a, {}), AddModel(half, halves_b, {}), 0.3f);
  const std::vector<float> weights = Weights(*session, 4);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float exact = 0.7f * HalfToFloat(halves_a[i]) + 0.3f * HalfToFloat(halves_b[i]);
    EXPECT_EQ(weights[i], HalfToFloat(FloatToHalf(exact))) << "at " << i;
  }
}

TEST(Blend, ValuesThatAreEqualStayExact) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto type = onnx::TensorProto::FLOAT;
  const TestModel a = AddModel(type, {}, {0.1f, kInfinity, -kInfinity, 1});
  const TestModel b = AddModel(type, {}, {0.1f, kInfinity, -kInfinity, 2});
  EXPECT_EQ(Weights(*Blend(a, b, 0.3f), 4),
            (std::vector<float>{0.1f, kInfinity, -kInfinity, std::lerp(1.0f, 2.0f, 0.3f)}));
  // The ends hold for values that cannot be mixed, too.
  const TestModel c = AddModel(type, {}, {kInfinity, 1, 2, 3});
  EXPECT_EQ(Weights(*Blend(a, c, 0), 4), Weights(*a.Load(), 4));
  EXPECT_EQ(Weights(*Blend(a, c, 1), 4), Weights(*c.Load(), 4));
}

// if (mean(x) > 0) x * w else x + w; w is a weight of the bodies.
TestModel BranchModel(float weight) {
  const auto body = [&](const char* type) {
    TestModel b;
    b.Floats("w", {1}, {weight}).Node(type, {"x", "w"}, {"z"}).Output("z");
    return b;
  };
  TestModel m;
  m.Input("x", {2}).Floats("zero", {}, {0});
  m.Node("ReduceMean", {"x"}, {"mean"}, {{"keepdims", std::int64_t{0}}});
  m.Node("Greater", {"mean", "zero"}, {"positive"});
  m.Node("If", {"positive"}, {"y"}).Body("then_branch", body("Mul"));
  m.Body("else_branch", body("Add")).Output("y");
  return m;
}

TEST(Blend, WeightsInsideBranchesAreMixed) {
  const auto session = Blend(BranchModel(2), BranchModel(4), 0.5f);
  for (const float x : {1.0f, -1.0f}) {
    const Tensor in = Tensor::FromVector<float>({2}, {x, x});
    std::vector<Tensor> outputs;
    session->Run(std::vector<NamedView>{{"x", in.view()}}, outputs);
    EXPECT_EQ(outputs.at(0).data<float>()[0], x > 0 ? 3 * x : 3 + x);
  }
}

NcnnTestModel NcnnNetwork(float t) {
  NcnnTestModel m;
  m.Input("x", {3, 6, 7});
  m.Layer("Convolution conv 1 1 x c 0=4 1=3 4=1 5=1 6=108");
  m.Weights(Mixed(108, 1, t)).Floats(Mixed(4, 2, t));
  m.Layer("PReLU relu 1 1 c p 0=4").Floats(Mixed(4, 3, t));
  m.Layer("PixelShuffle shuffle 1 1 p y 0=2");
  return m;
}

// Writes NAME.param and NAME.bin.
void WriteNcnn(const TemporaryFolder& folder, const std::string& name, const NcnnTestModel& model) {
  WriteBytes(folder / (name + ".param"), model.Text());
  WriteBytes(folder / (name + ".bin"), model.bin());
}

TEST(Blend, NcnnNetworksAreMixedWithEachOtherAndWithOnnx) {
  const TemporaryFolder folder;
  WriteNcnn(folder, "a", NcnnNetwork(0));
  WriteNcnn(folder, "b", NcnnNetwork(1));
  const std::vector<float> expected = Result(*NcnnNetwork(0.25f).Load());
  ExpectNear(Result(*Session::LoadBlend(folder / "a.param", folder / "b.bin", 0.25f)), expected);

  WriteBytes(folder / "c.onnx", ExportOnnx(NcnnNetwork(1).Import()));
  ExpectNear(Result(*Session::LoadBlend(folder / "a", folder / "c.onnx", 0.25f)), expected);
  ExpectNear(Result(*Session::LoadBlend(folder / "c.onnx", folder / "a", 0.75f)), expected);
}

std::string Refusal(const std::function<void()>& load) {
  try {
    load();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

std::string Refusal(const TestModel& a, const TestModel& b, float t = 0.5f) {
  return Refusal([&] { Blend(a, b, t); });
}

// Another network of the same weights as Network(0), as `change` makes it.
std::string RefusalOf(const std::function<void(onnx::GraphProto&)>& change) {
  TestModel b = Network(1);
  change(*b.proto.mutable_graph());
  const std::string refusal = Refusal(Network(0), b);
  EXPECT_THAT(refusal, HasSubstr("a.onnx and b.onnx cannot be blended: ")) << refusal;
  return refusal;
}

TEST(Blend, NetworksThatDifferAreRefusedWithTheFirstDifference) {
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) {
                auto& w = *g.mutable_initializer(0);  // 8 x 3 x 3 x 3
                w.set_dims(2, 1);
                w.mutable_float_data()->Truncate(72);
              }),
              HasSubstr("node 'Conv_c1' (Conv): input 1 is a constant float32 8x3x3x3 in one and a "
                        "constant float32 8x3x1x3 in the other"));
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) { g.mutable_node(5)->set_op_type("Mul"); }),
              HasSubstr("node 'Add_sum' (Add) is node 'Add_sum' (Mul) in the other"));
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) {
                g.mutable_node(2)->mutable_attribute(0)->set_ints(0, 2);
              }),
              HasSubstr("node 'Conv_c2' (Conv): attribute 'pads' is different"));
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) {
                auto* a = g.mutable_node(2)->add_attribute();
                a->set_name("group");
                a->set_type(onnx::AttributeProto::INT);
                a->set_i(1);
              }),
              HasSubstr("node 'Conv_c2' (Conv): attribute 'group' is different"));
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) { g.mutable_node(5)->set_input(0, "r"); }),
              HasSubstr("node 'Add_sum' (Add): input 0 is another value"));
  EXPECT_THAT(
      RefusalOf([](onnx::GraphProto& g) { g.mutable_node(0)->mutable_input()->RemoveLast(); }),
      HasSubstr("node 'Conv_c1' (Conv): has 3 and 2 inputs"));
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) { g.mutable_node(5)->set_input(1, "scales"); }),
              HasSubstr("input 1 is computed in one and a constant float32 4 in the other"));
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) {
                auto* node = g.add_node();
                node->set_op_type("Relu");
                node->add_input("y");
                node->add_output("z");
                g.mutable_output(0)->set_name("z");
              }),
              HasSubstr("they have 7 and 8 nodes"));
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) { *g.add_output() = g.output(0); }),
              HasSubstr("they have 1 and 2 outputs"));
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) { g.mutable_output(0)->set_name("sum"); }),
              HasSubstr("output 0 is another value"));
  EXPECT_THAT(RefusalOf([](onnx::GraphProto& g) {
                auto* input = g.add_input();
                *input = g.input(0);
                input->set_name("x2");
              }),
              HasSubstr("they have 1 and 2 inputs"));
}

TEST(Blend, NumbersThatAreNoWeightsMustBeEqual) {
  // scales, then starts
  EXPECT_THAT(
      RefusalOf([](onnx::GraphProto& g) { g.mutable_initializer(4)->set_float_data(2, 3); }),
      HasSubstr("node 'Resize_r' (Resize): input 2, a constant float32 4, has other values"));
  EXPECT_THAT(
      RefusalOf([](onnx::GraphProto& g) { g.mutable_initializer(6)->set_int64_data(0, -1); }),
      HasSubstr("node 'Slice_y' (Slice): input 1, a constant int64 1, has other values"));
}

TEST(Blend, QuantisedWeightsMustBeEqual) {
  const auto network = [](std::int32_t weight) {
    TestModel m;
    m.Input("x", {2}).Floats("scale", {}, {0.5f});
    auto* w = m.proto.mutable_graph()->add_initializer();
    w->set_name("w");
    w->set_data_type(onnx::TensorProto::INT8);
    w->add_dims(2);
    w->add_int32_data(weight);
    w->add_int32_data(3);
    m.Node("DequantizeLinear", {"w", "scale"}, {"f"}).Node("Add", {"x", "f"}, {"y"}).Output("y");
    return m;
  };
  EXPECT_EQ(Weights(*Blend(network(4), network(4), 0.5f), 2), (std::vector<float>{2, 1.5f}));
  EXPECT_THAT(Refusal(network(4), network(5)),
              HasSubstr("input 0, a constant int8 2, has other values: only floating-point weights "
                        "can be blended"));
}

TEST(Blend, TypesAndOpsetsMustBeEqual) {
  const TestModel floats = AddModel(onnx::TensorProto::FLOAT, {}, {1});
  EXPECT_THAT(Refusal(floats, AddModel(onnx::TensorProto::FLOAT16, {0}, {})),
              HasSubstr("input 0 is float32 in one and float16 in the other"));
  TestModel later = floats;
  later.proto.mutable_opset_import(0)->set_version(14);
  EXPECT_THAT(Refusal(floats, later), HasSubstr("is of opset 13 in one and 14 in the other"));
}

// x * w + v; w and v may be one constant.
TEST(Blend, WeightsThatOneNetworkSharesMustBeEqualInTheOther) {
  const auto network = [](float w, float v, bool shared) {
    TestModel m;
    m.Input("x", {1}).Floats("w", {1}, {w}).Floats("v", {1}, {v});
    m.Node("Mul", {"x", "w"}, {"m"}).Node("Add", {"m", shared ? "w" : "v"}, {"y"}).Output("y");
    return m;
  };
  const TestModel shared = network(1, 1, true);
  EXPECT_EQ(Weights(*Blend(shared, network(3, 3, false), 0.5f), 1), (std::vector<float>{2}));
  EXPECT_EQ(Weights(*Blend(network(3, 5, false), shared, 0.5f), 1), (std::vector<float>{3}));
  EXPECT_THAT(Refusal(shared, network(3, 4, false)),
              HasSubstr("is used elsewhere, too, in one network but not in the other"));
}

TEST(Blend, WeightsOutsideTheirRangeAreRefused) {
  const TestModel a = Network(0), b = Network(1);
  for (const float t : {-0.01f, 1.01f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(Refusal(a, b, t), HasSubstr("is not between 0 and 1"));
  }
}

TEST(Blend, FilesThatCannotBeReadAreNamed) {
  const TemporaryFolder folder;
  WriteBytes(folder / "a.onnx", Network(0).Bytes());
  WriteBytes(folder / "broken.onnx", "no model");
  const auto refusal = [&](const char* a, const char* b) {
    return Refusal([&] { Session::LoadBlend(folder / a, folder / b, 0.5f); });
  };
  EXPECT_THAT(refusal("a.onnx", "none.onnx"), AllOf(HasSubstr("none.onnx"), HasSubstr("no such")));
  EXPECT_THAT(refusal("none.onnx", "a.onnx"), AllOf(HasSubstr("none.onnx"), HasSubstr("no such")));
  EXPECT_THAT(refusal("a.onnx", "broken.onnx"), HasSubstr("broken.onnx"));
}

}  // namespace
}  // namespace tessera
