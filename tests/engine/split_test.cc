// Session::Split: what one input decides is computed apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/networks.h"
#include "ops/error.h"
#include "tests/engine/test_model.h"
#include "tests/every_target.h"

namespace tessera {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;
using Ints = std::vector<std::int64_t>;

Tensor Noise(const Shape& shape, std::uint32_t seed) {
  return Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), seed));
}

std::vector<std::string> Names(const std::vector<ValueDecl>& decls) {
  std::vector<std::string> names;
  for (const ValueDecl& decl : decls) names.push_back(decl.name);
  return names;
}

std::vector<std::string> StepNames(const RunProfile& profile) {
  std::vector<std::string> names;
  for (const RunProfile::Step& step : profile.steps) names.push_back(step.name);
  return names;
}

// Runs the parts on inputs of the whole, in its order; `input` is the index of the first part's.
std::vector<Tensor> RunParts(const Session::Parts& parts, const Session& whole,
                             const std::vector<Tensor>& inputs, std::size_t input,
                             RunProfile* first_profile = nullptr,
                             RunProfile* rest_profile = nullptr) {
  std::vector<Tensor> cut, outputs;
  parts.first->Run(std::vector<NamedView>{{whole.inputs()[input].name, inputs[input].view()}}, cut,
                   nullptr, first_profile);
  std::vector<NamedView> views;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i != input) views.push_back({whole.inputs()[i].name, inputs[i].view()});
  }
  for (std::size_t i = 0; i < cut.size(); ++i) {
    views.push_back({parts.first->outputs()[i].name, cut[i].view()});
  }
  parts.rest->Run(views, outputs, nullptr, rest_profile);
  return outputs;
}

std::vector<Tensor> RunWhole(Session& session, const std::vector<Tensor>& inputs) {
  std::vector<NamedView> views;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    views.push_back({session.inputs()[i].name, inputs[i].view()});
  }
  std::vector<Tensor> outputs;
  session.Run(views, outputs);
  return outputs;
}

std::vector<Shape> ShapesOf(const std::vector<Tensor>& tensors) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape());
  return shapes;
}

void ExpectEqual(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].shape(), b[i].shape());
    EXPECT_EQ(ToFloats(a[i].view()), ToFloats(b[i].view())) << "output " << i;
  }
}

// Splits, and compares the parts with the whole, to the bit.
Session::Parts ExpectPartsEqualWhole(Session& session, const std::vector<Tensor>& inputs,
                                     std::size_t input) {
  const Session::Parts parts = session.Split(session.inputs()[input].name, ShapesOf(inputs));
  ExpectEqual(RunParts(parts, session, inputs, input), RunWhole(session, inputs));
  return parts;
}

std::shared_ptr<Session> SiameseTwoTower(const SessionOptions& options = {}) {
  SeededWeights weights(5);
  const std::string bytes =
      BuildNetwork(*FindNetwork("siamese-two-tower"), weights).SerializeAsString();
  return Session::LoadFromMemory(std::as_bytes(std::span(bytes)), "siamese.onnx", options);
}

TEST(Split, TowersOfATrackerGiveTheSameBits) {
  std::vector<Tensor> inputs;
  inputs.push_back(Noise({1, 3, 128, 128}, 1));
  inputs.push_back(Noise({1, 3, 256, 256}, 2));
  OnEveryTarget([&] {
    const auto session = SiameseTwoTower();
    ExpectPartsEqualWhole(*session, inputs, 0);
    // Search first would be of no use, but is possible.
    ExpectPartsEqualWhole(*session, inputs, 1);
  });
  ExpectPartsEqualWhole(*SiameseTwoTower({.reference = true}), inputs, 0);
}

TEST(Split, TheFirstPartHasTheTemplateTower) {
  const auto session = SiameseTwoTower();
  std::vector<Tensor> inputs;
  inputs.push_back(Noise({1, 3, 128, 128}, 1));
  inputs.push_back(Noise({1, 3, 256, 256}, 2));
  const Session::Parts parts = session->Split("template", ShapesOf(inputs));
  EXPECT_THAT(Names(parts.first->inputs()), ElementsAre("template"));
  EXPECT_THAT(Names(parts.first->outputs()), ElementsAre("template.neck"));
  EXPECT_THAT(Names(parts.rest->inputs()), ElementsAre("search", "template.neck"));
  EXPECT_THAT(Names(parts.rest->outputs()), ElementsAre("classes", "boxes"));

  RunProfile first, rest;
  RunParts(parts, *session, inputs, 0, &first, &rest);
  // Also the change of the input's layout, where the instruction set wants one.
  EXPECT_THAT(StepNames(first), Each(AnyOf("template", StartsWith("template."))));
  EXPECT_THAT(StepNames(rest), Not(Contains(StartsWith("template."))));
  // As fast as in the whole: the correlation needs no change of layout.
  const auto is_correlation = [](const RunProfile::Step& step) {
    return step.kernel == "pixel_correlation";
  };
  EXPECT_EQ(std::count_if(rest.steps.begin(), rest.steps.end(), is_correlation), 2);
}

// The rest reads a as it is, and what is made of it; one output is of a alone.
TEST(Split, InputsAndOutputsMayLieOnTheCut) {
  TestModel m;
  m.Input("a", {1, 2}).Input("b", {1, 2}).Floats("three", {1}, {3});
  m.Node("Mul", {"a", "three"}, {"triple"}).Node("Add", {"a", "b"}, {"sum"});
  m.Node("Sub", {"sum", "triple"}, {"difference"});
  m.Output("difference").Output("triple").Output("sum");
  const auto session = m.Load();
  std::vector<Tensor> inputs;
  inputs.push_back(Tensor::FromVector<float>({1, 2}, {1, 2}));
  inputs.push_back(Tensor::FromVector<float>({1, 2}, {10, 20}));
  const Session::Parts parts = ExpectPartsEqualWhole(*session, inputs, 0);
  EXPECT_THAT(Names(parts.first->outputs()), ElementsAre("a", "triple"));
  EXPECT_THAT(ToFloats(RunParts(parts, *session, inputs, 0)[0].view()), ElementsAre(8, 16));
  ExpectPartsEqualWhole(*session, inputs, 1);
}

// Exporters write the shapes of features as nodes: those are no inputs of the rest.
TEST(Split, ShapesAreConstantsInTheParts) {
  TestModel m;
  m.Input("a", {1, -1, -1, -1}).Input("b", {1, 3, -1, -1});
  m.Node("Relu", {"a"}, {"features"}).Node("Shape", {"features"}, {"shape"});
  m.Node("Reshape", {"b", "shape"}, {"same"}).Node("Add", {"same", "features"}, {"y"}).Output("y");
  std::vector<Tensor> inputs;
  inputs.push_back(Noise({1, 3, 2, 6}, 1));
  inputs.push_back(Noise({1, 3, 4, 3}, 2));
  const auto session = m.Load();
  const Session::Parts parts = ExpectPartsEqualWhole(*session, inputs, 0);
  EXPECT_THAT(Names(parts.rest->inputs()), ElementsAre("b", "features"));

  std::vector<Tensor> outputs;
  const Tensor other = Noise({1, 3, 6, 2}, 3);
  EXPECT_THAT(
      [&] {
        parts.first->Run(std::vector<NamedView>{{"a", other.view()}}, outputs);
      },
      ThrowsMessage<Error>("test.onnx: input 'a' of a part of the network is 1x3x2x6, got "
                           "1x3x6x2"));
}

TEST(Split, PartsAreGoodWithoutTheWhole) {
  TestModel m;
  m.Input("a", {1, 3, 8, 8}).Input("b", {1, 3, 8, 8}).Noise("w", {16, 3, 3, 3});
  m.Node("Conv", {"a", "w"}, {"x"}).Node("Conv", {"b", "w"}, {"z"});
  m.Node("Mul", {"x", "z"}, {"y"}).Output("y");
  std::vector<Tensor> inputs;
  inputs.push_back(Noise({1, 3, 8, 8}, 1));
  inputs.push_back(Noise({1, 3, 8, 8}, 2));
  auto session = m.Load();
  const std::vector<Tensor> expected = RunWhole(*session, inputs);
  const Session::Parts parts = session->Split("a", ShapesOf(inputs));
  std::vector<Tensor> cut, outputs;
  session.reset();
  parts.first->Run(std::vector<NamedView>{{"a", inputs[0].view()}}, cut);
  parts.rest->Run(std::vector<NamedView>{{"b", inputs[1].view()}, {"x", cut[0].view()}}, outputs);
  ExpectEqual(outputs, expected);
}

TEST(Split, Errors) {
  TestModel m;
  m.Input("a", {-1}).Input("b", {-1});
  m.Node("NonZero", {"a"}, {"indices"}).Node("Cast", {"indices"}, {"x"}, {{"to", std::int64_t{1}}});
  m.Node("Add", {"x", "b"}, {"y"}).Output("y");
  const auto session = m.Load();
  const std::vector<Shape> shapes = {{4}, {1}};
  EXPECT_THAT([&] { session->Split("c", shapes); },
              ThrowsMessage<Error>("test.onnx: no input is called 'c' (inputs: a, b)"));
  EXPECT_THAT([&] { session->Split("a", shapes); },
              ThrowsMessage<Error>("test.onnx: cannot be split, as shapes depend on values that "
                                   "only the run knows"));
  EXPECT_THAT([&] { session->Split("a", std::vector<Shape>{{4}}); },
              ThrowsMessage<Error>("test.onnx: 1 inputs given, the model has 2"));
}

}  // namespace
}  // namespace tessera
