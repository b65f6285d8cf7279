// Models of opsets 1 to 6: what changed until 7.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/session.h"
#include "engine/unsupported.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Ints = std::vector<std::int64_t>;
const auto kOne = std::int64_t{1};

// Output y of a network whose input x holds 1, 2, 3, ...
std::vector<float> Output(const TestModel& model, const Shape& shape) {
  Tensor x(DType::kFloat32, shape);
  float next = 1;
  for (float& v : x.values<float>()) v = next++;
  const auto session = model.Load();
  std::vector<Tensor> outputs;
  session->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
  const std::span<const float> y = outputs[0].values<float>();
  return {y.begin(), y.end()};
}

std::string UnsupportedReason(const TestModel& model) {
  try {
    model.Load();
  } catch (const Unsupported& e) {
    return e.what();
  }
  return "supported";
}

// y = x + w with attributes of opset 6.
TestModel AddModel(const Shape& shape, const Ints& w_dims, const std::vector<float>& w,
                   const std::vector<TestModel::Attribute>& attributes) {
  TestModel m(6);
  m.Input("x", {shape.begin(), shape.end()}).Output("y").Floats("w", w_dims, w);
  m.Node("Add", {"x", "w"}, {"y"}, attributes);
  return m;
}

TEST(OldOpsets, BroadcastAlongAnAxis) {
  EXPECT_THAT(
      Output(AddModel({2, 2, 2}, {2}, {10, 20}, {{"broadcast", kOne}, {"axis", kOne}}), {2, 2, 2}),
      ElementsAre(11, 12, 23, 24, 15, 16, 27, 28));
  EXPECT_THAT(
      Output(AddModel({2, 2, 2}, {2}, {10, 20}, {{"broadcast", kOne}, {"axis", std::int64_t{-3}}}),
             {2, 2, 2}),
      ElementsAre(11, 12, 13, 14, 25, 26, 27, 28));
  EXPECT_THAT(Output(AddModel({2, 2, 2}, {2, 2}, {10, 20, 30, 40},
                              {{"broadcast", kOne}, {"axis", std::int64_t{0}}}),
                     {2, 2, 2}),
              ElementsAre(11, 12, 23, 24, 35, 36, 47, 48));
}

TEST(OldOpsets, BroadcastOfTheLastAxes) {
  EXPECT_THAT(Output(AddModel({2, 2}, {2}, {10, 20}, {{"broadcast", kOne}}), {2, 2}),
              ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(
      Output(AddModel({2, 2}, {2}, {10, 20}, {{"broadcast", kOne}, {"axis", kOne}}), {2, 2}),
      ElementsAre(11, 22, 13, 24));
  EXPECT_THAT(Output(AddModel({2}, {2}, {10, 20}, {}), {2}), ElementsAre(11, 22));
}

TEST(OldOpsets, RanksAreFollowedThroughTheNetwork) {
  TestModel m(6);
  m.Input("x", {1, 2, -1, -1}).Output("y").Floats("w", {2, 2, 1, 1}, {1, 0, 0, 1});
  m.Floats("b", {2}, {10, 20})
      .Node("Conv", {"x", "w"}, {"c"})
      .Node("Relu", {"c"}, {"r"})
      .Node("Mul", {"r", "b"}, {"y"}, {{"broadcast", kOne}, {"axis", kOne}});
  EXPECT_THAT(Output(m, {1, 2, 1, 2}), ElementsAre(10, 20, 60, 80));
}

TEST(OldOpsets, SlopesOfPReluAreThoseOfChannels) {
  TestModel m(6);
  m.Input("x", {1, 2, 2}).Output("y").Floats("s", {2}, {0.5f, 0.25f});
  m.Node("Neg", {"x"}, {"n"}).Node("PRelu", {"n", "s"}, {"y"});
  EXPECT_THAT(Output(m, {1, 2, 2}), ElementsAre(-0.5f, -1, -0.75f, -1));
  TestModel one(6);
  one.Input("x", {1, 2, 2}).Output("y").Floats("s", {1}, {0.5f});
  one.Node("Neg", {"x"}, {"n"}).Node("PRelu", {"n", "s"}, {"y"});
  EXPECT_THAT(Output(one, {1, 2, 2}), ElementsAre(-0.5f, -1, -1.5f, -2));
}

TEST(OldOpsets, InputsThatWereOverwrittenAreOfNoConcern) {
  TestModel m(1);
  m.Input("x", {2}).Output("y").Node("Neg", {"x"}, {"y"}, {{"consumed_inputs", Ints{0}}});
  EXPECT_THAT(Output(m, {2}), ElementsAre(-1, -2));
}

TEST(OldOpsets, BatchNormalizationOfTheWholeBatch) {
  const auto model = [](const std::vector<TestModel::Attribute>& attributes) {
    TestModel m(6);
    m.Input("x", {1, 1, 1, 2}).Output("y").Floats("one", {1}, {1}).Floats("mean", {1}, {3});
    m.Node("BatchNormalization", {"x", "one", "one", "mean", "one"}, {"y"}, attributes);
    return m;
  };
  const std::vector<float> y = Output(model({{"is_test", kOne}, {"epsilon", 0.0f}}), {1, 1, 1, 2});
  EXPECT_THAT(y, testing::Pointwise(testing::FloatNear(1e-6f), {-1.0f, 0.0f}));
  EXPECT_THAT(UnsupportedReason(model({})), HasSubstr("training"));
}

TEST(OldOpsets, DropoutIsOfTrainingUnlessItSaysOtherwise) {
  const auto model = [](const std::vector<TestModel::Attribute>& attributes) {
    TestModel m(6);
    m.Input("x", {2}).Output("y").Node("Dropout", {"x"}, {"y"}, attributes);
    return m;
  };
  EXPECT_THAT(Output(model({{"is_test", kOne}}), {2}), ElementsAre(1, 2));
  EXPECT_THAT(UnsupportedReason(model({})), AllOf(HasSubstr("'Dropout_y' (Dropout), opset 6"),
                                                  HasSubstr("training is not supported")));
}

TEST(OldOpsets, NodesWithoutOutputsAreRefused) {
  TestModel m(6);
  m.Input("x", {2}).Output("y").Node("Relu", {"x"}, {"y"});
  onnx::NodeProto& node = *m.proto.mutable_graph()->add_node();
  node.set_op_type("PRelu");
  node.add_input("x");
  node.add_input("nowhere");
  try {
    m.Load();
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("a node (PRelu) has no output"));
  }
}

TEST(OldOpsets, OtherInputsAreRefused) {
  TestModel m(4);
  m.Input("x", {2}).Output("y").Node("Reshape", {"x"}, {"y"}, {{"shape", Ints{1, 2}}});
  EXPECT_THAT(UnsupportedReason(m),
              AllOf(HasSubstr("test.onnx: node 'Reshape_y'"), HasSubstr("from opset 5 on")));
  TestModel unknown_rank(6);
  unknown_rank.Input("x", {2, 2}).Output("y").Ints("s", {2, 2}).Floats("w", {2}, {10, 20});
  unknown_rank.Node("Reshape", {"x", "s"}, {"r"})
      .Node("Add", {"r", "w"}, {"y"}, {{"broadcast", kOne}, {"axis", std::int64_t{0}}});
  EXPECT_THAT(UnsupportedReason(unknown_rank), HasSubstr("the rank of 'r'"));
}

TEST(OldOpsets, NewOperatorsMeanTheSame) {
  TestModel m(7);  // stays as it is: opset 7 has no such attribute
  m.Input("x", {2, 2}).Output("y").Floats("w", {2}, {10, 20}).Node("Add", {"x", "w"}, {"y"});
  EXPECT_THAT(Output(m, {2, 2}), ElementsAre(11, 22, 13, 24));
}

}  // namespace
}  // namespace tessera
