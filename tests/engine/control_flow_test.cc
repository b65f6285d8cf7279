// If and Loop, and nodes whose output shapes depend on values that only the run has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "engine/graph.h"
#include "engine/infer.h"
#include "engine/onnx_import.h"
#include "ops/error.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Ints = std::vector<std::int64_t>;
constexpr auto kInt64 = onnx::TensorProto::INT64;
constexpr auto kBool = onnx::TensorProto::BOOL;
constexpr auto kHalf = onnx::TensorProto::FLOAT16;

template <typename T>
Tensor Values(const Shape& shape, const std::vector<T>& values) {
  return Tensor::FromVector<T>(shape, values);
}
Tensor Flag(bool value) { return Values<bool>({}, {value}); }
Tensor Number(std::int64_t value) { return Values<std::int64_t>({}, {value}); }

std::vector<Tensor> RunAll(Session& session, const std::vector<NamedView>& inputs) {
  std::vector<Tensor> outputs;
  session.Run(inputs, outputs);
  return outputs;
}

template <typename T>
std::vector<T> ToVector(const Tensor& t) {
  EXPECT_EQ(t.dtype(), DTypeOf<T>());
  return {t.values<const T>().begin(), t.values<const T>().end()};
}

std::string ErrorOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

// y = condition ? x + x : x * x, and the branch's own choice of shape: z = [1] or [2, 3].
TestModel BranchModel() {
  TestModel then, otherwise, m;
  then.Node("Add", {"x", "x"}, {"sum"}).Ints("one", {1}).Output("sum").Output("one", kInt64);
  otherwise.Ints("two", {2, 3}).Node("Mul", {"x", "x"}, {"square"});
  otherwise.Node("Identity", {"two"}, {"both"}).Output("square").Output("both", kInt64);
  m.Input("x", {-1}).Input("condition", {}, kBool);
  m.Node("If", {"condition"}, {"y", "z"});
  m.Body("then_branch", then).Body("else_branch", otherwise);
  m.Output("y").Output("z", kInt64);
  return m;
}

TEST(If, TakesTheBranchOfTheRun) {
  const auto session = BranchModel().Load();
  const Tensor x = Values<float>({3}, {1, 2, 3});
  for (const bool condition : {true, false, true}) {
    const Tensor flag = Flag(condition);
    const auto out = RunAll(*session, {{"x", x.view()}, {"condition", flag.view()}});
    EXPECT_EQ(ToVector<float>(out[0]),
              condition ? std::vector<float>({2, 4, 6}) : std::vector<float>({1, 4, 9}));
    EXPECT_EQ(ToVector<std::int64_t>(out[1]), condition ? Ints({1}) : Ints({2, 3}));
  }
}

TEST(If, NodesAfterItGoOnWithTheShapeThatCame) {
  TestModel m = BranchModel();
  m.Noise("w", {1, 1, 1, 3}).Node("Reshape", {"y", "z"}, {"r"});
  m.Node("Relu", {"r"}, {"last"}).Output("last");
  const auto session = m.Load();
  const Tensor x = Values<float>({6}, {-1, 2, -3, 4, -5, 6}), flag = Flag(false);
  const auto out = RunAll(*session, {{"x", x.view()}, {"condition", flag.view()}});
  EXPECT_EQ(out[2].shape(), (Shape{2, 3}));
  EXPECT_THAT(ToVector<float>(out[2]), ElementsAre(1, 4, 9, 16, 25, 36));
  const Tensor single = Values<float>({1}, {-3}), yes = Flag(true);
  const auto other = RunAll(*session, {{"x", single.view()}, {"condition", yes.view()}});
  EXPECT_THAT(ToVector<float>(other[2]), ElementsAre(0));
}

Graph Import(const TestModel& model) {
  const std::string bytes = model.Bytes();
  return ImportOnnx(std::as_bytes(std::span(bytes)), "test.onnx", {});
}

// What exporters write for squeeze(): remove the axis if it is 1.
TEST(If, ABranchChosenByShapesTakesItsPlaceInThePlan) {
  TestModel then, otherwise, m;
  then.Ints("axis", {1}).Node("Squeeze", {"x", "axis"}, {"squeezed"}).Output("squeezed");
  otherwise.Node("Identity", {"x"}, {"same"}).Output("same");
  m.Input("x", {-1, -1, -1}).Ints("at", {1}).Ints("one", {1});
  m.Node("Shape", {"x"}, {"shape"}).Node("Gather", {"shape", "at"}, {"dim"});
  m.Node("Equal", {"dim", "one"}, {"is_one"}).Node("If", {"is_one"}, {"y"});
  m.Body("then_branch", then).Body("else_branch", otherwise);
  m.Node("Relu", {"y"}, {"r"}).Output("r");
  for (const std::int64_t dim : {1, 2}) {
    Graph graph = Import(m);
    InferShapes(graph, std::vector<Shape>{{2, dim, 3}});
    EXPECT_TRUE(ShapesAreKnown(graph));
    for (const Node& node : graph.nodes) {
      EXPECT_TRUE(node.op.type == "Relu" || node.op.type == "Squeeze" || node.op.type == "Identity")
          << node.op.type;
    }
    EXPECT_EQ(m.Load()->InferOutputs(std::vector<Shape>{{2, dim, 3}})[0].shape,
              dim == 1 ? (Shape{2, 3}) : (Shape{2, 2, 3}));
  }
}

TEST(If, AConstantConditionLeavesNoTrace) {
  TestModel m = BranchModel();
  m.proto.mutable_graph()->mutable_input()->RemoveLast();
  auto* t = m.proto.mutable_graph()->add_initializer();
  t->set_name("condition");
  t->set_data_type(kBool);
  t->add_int32_data(1);
  Graph graph = Import(m);
  FoldConstants(graph);
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].op.type, "Add");
  const Tensor x = Values<float>({2}, {5, 7});
  EXPECT_THAT(ToVector<float>(RunAll(*m.Load(), {{"x", x.view()}})[0]), ElementsAre(10, 14));
}

TEST(If, BranchesNestAndReadFromFarOutside) {
  // outer: c ? (d ? x + k : x - k) : x, where k is made next to the outer If.
  TestModel inner_then, inner_else, outer_then, outer_else, m;
  inner_then.Node("Add", {"x", "k"}, {"a"}).Output("a");
  inner_else.Node("Sub", {"x", "k"}, {"s"}).Output("s");
  outer_then.Node("If", {"d"}, {"i"});
  outer_then.Body("then_branch", inner_then).Body("else_branch", inner_else).Output("i");
  outer_else.Node("Identity", {"x"}, {"same"}).Output("same");
  m.Input("x", {2}).Input("c", {}, kBool).Input("d", {}, kBool);
  m.Floats("ten", {}, {10}).Node("Mul", {"ten", "x"}, {"k"}).Node("If", {"c"}, {"y"});
  m.Body("then_branch", outer_then).Body("else_branch", outer_else).Output("y");
  const auto session = m.Load();
  const Tensor x = Values<float>({2}, {1, 2});
  const auto run = [&](bool c, bool d) {
    const Tensor tc = Flag(c), td = Flag(d);
    return ToVector<float>(
        RunAll(*session, {{"x", x.view()}, {"c", tc.view()}, {"d", td.view()}})[0]);
  };
  EXPECT_THAT(run(true, true), ElementsAre(11, 22));
  EXPECT_THAT(run(true, false), ElementsAre(-9, -18));
  EXPECT_THAT(run(false, true), ElementsAre(1, 2));
}

// Float16 around and inside: constants of the body, what it reads and what it gives.
TEST(If, Float16ReachesIntoBranches) {
  TestModel then, otherwise, m;
  auto* half = then.proto.mutable_graph()->add_initializer();
  half->set_name("h");
  half->set_data_type(kHalf);
  half->add_dims(1);
  half->add_int32_data(FloatToHalf(0.5f));
  then.Node("Add", {"x", "h"}, {"a"}).Output("a", kHalf);
  otherwise.Node("Cast", {"i"}, {"f"}, {{"to", std::int64_t{kHalf}}}).Output("f", kHalf);
  m.Input("x", {2}, kHalf).Input("i", {2}, kInt64).Input("c", {}, kBool);
  m.Node("If", {"c"}, {"y"}).Body("then_branch", then).Body("else_branch", otherwise);
  m.Node("Add", {"y", "x"}, {"z"}).Output("z", kHalf);
  const auto session = m.Load();
  const Tensor x = Values<float>({2}, {1, 2}), i = Values<std::int64_t>({2}, {7, 9});
  for (const bool c : {true, false}) {
    const Tensor flag = Flag(c);
    const auto out = RunAll(*session, {{"x", x.view()}, {"i", i.view()}, {"c", flag.view()}});
    ASSERT_EQ(out[0].dtype(), DType::kFloat16);
    EXPECT_EQ(ToFloats(out[0].view()),
              c ? std::vector<float>({2.5f, 4.5f}) : std::vector<float>({8, 11}));
  }
}

// v = v * 2 and a scan of i + k, while v < 100, at most `m` times.
TestModel DoublingModel() {
  TestModel body, m;
  body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("v", {-1});
  body.Floats("two", {}, {2}).Floats("limit", {1}, {100}).Ints("zero", {0});
  body.Node("Mul", {"v", "two"}, {"doubled"});
  body.Node("Gather", {"doubled", "zero"}, {"first"}, {{"axis", std::int64_t{0}}});
  body.Node("Less", {"first", "limit"}, {"again"});
  body.Node("Add", {"i", "k"}, {"counted"});
  body.Output("again", kBool).Output("doubled").Output("counted", kInt64);
  m.Input("m", {}, kInt64).Input("x", {-1}).Ints("k", {1000});
  m.Node("Loop", {"m", "", "x"}, {"y", "scan"}).Body("body", body);
  m.Output("y").Output("scan", kInt64);
  return m;
}

TEST(Loop, EndsByTripCountOrCondition) {
  const auto session = DoublingModel().Load();
  const Tensor x = Values<float>({2}, {1, 3});
  const auto run = [&](std::int64_t trips) {
    const Tensor m = Number(trips);
    return RunAll(*session, {{"m", m.view()}, {"x", x.view()}});
  };
  const auto three = run(3);
  EXPECT_THAT(ToVector<float>(three[0]), ElementsAre(8, 24));
  EXPECT_EQ(three[1].shape(), (Shape{3, 1}));
  EXPECT_THAT(ToVector<std::int64_t>(three[1]), ElementsAre(1000, 1001, 1002));
  EXPECT_THAT(ToVector<float>(run(50)[0]), ElementsAre(128, 384));  // the 7th reaches 100
  const auto none = run(0);
  EXPECT_THAT(ToVector<float>(none[0]), ElementsAre(1, 3));
  EXPECT_EQ(none[1].shape(), (Shape{0, 1}));
  EXPECT_EQ(none[1].dtype(), DType::kInt64);
  EXPECT_EQ(run(-5)[1].shape(), (Shape{0, 1}));
}

// Shapes may change on the way: v = concat(v, v[i:i+1]).
TEST(Loop, CarriedValuesMayGrow) {
  TestModel body, m;
  body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("v", {-1});
  body.Ints("zero", {0}).Ints("one", {1});
  body.Node("Add", {"i", "zero"}, {"from"}).Node("Add", {"i", "one"}, {"to"});
  body.Node("Slice", {"v", "from", "to"}, {"part"});
  body.Node("Concat", {"v", "part"}, {"longer"}, {{"axis", std::int64_t{0}}});
  body.Output("go", kBool).Output("longer");
  m.Input("m", {}, kInt64).Input("x", {-1}).Node("Loop", {"m", "", "x"}, {"y"});
  m.Body("body", body).Output("y");
  const Tensor x = Values<float>({2}, {1, 2}), trips = Number(3);
  EXPECT_THAT(ToVector<float>(RunAll(*m.Load(), {{"m", trips.view()}, {"x", x.view()}})[0]),
              ElementsAre(1, 2, 1, 2, 1));
}

TEST(Loop, OfConstantsIsFolded) {
  TestModel m = DoublingModel();
  m.proto.mutable_graph()->clear_input();
  m.Ints("m", {4}).Floats("x", {1}, {1});
  Graph graph = Import(m);
  FoldConstants(graph);
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_THAT(ToVector<float>(RunAll(*m.Load(), {})[0]), ElementsAre(16));
}

TEST(Loop, ThatNeverEndsIsStopped) {
  TestModel body, m;
  body.Input("i", {}, kInt64).Input("go", {}, kBool).Input("v", {});
  body.Node("Identity", {"v"}, {"same"}).Output("go", kBool).Output("same");
  m.Input("x", {}).Node("Loop", {"", "", "x"}, {"y"}).Body("body", body).Output("y");
  const Tensor x = Values<float>({}, {1});
  const auto session = m.Load();
  EXPECT_THAT(ErrorOf([&] {
                RunAll(*session, {{"x", x.view()}});
              }),
              AllOf(HasSubstr("test.onnx: node 'Loop_y' (Loop)"), HasSubstr("does not end")));
}

TEST(ControlFlow, BodiesHaveToFitTheirNodes) {
  TestModel body, m;
  body.Input("i", {}, kInt64).Input("go", {}, kBool);
  body.Output("go", kBool);
  m.Input("x", {1}).Node("Loop", {"", "", "x"}, {"y"}).Body("body", body).Output("y");
  EXPECT_THAT(ErrorOf([&] { m.Load(); }),
              AllOf(HasSubstr("'Loop_y'"), HasSubstr("'body' has 2 inputs instead of 3")));
  TestModel empty;
  empty.Input("c", {}, kBool).Node("If", {"c"}, {"y"}).Output("y");
  EXPECT_THAT(ErrorOf([&] { empty.Load(); }), HasSubstr("has no graph 'then_branch'"));
  TestModel few = BranchModel();
  few.proto.mutable_graph()->mutable_node(0)->add_output("third");
  EXPECT_THAT(ErrorOf([&] { few.Load(); }), HasSubstr("has 2 outputs instead of 3"));
}

TEST(ControlFlow, UnsupportedOperatorsOfBodiesAreNamedWithTheOthers) {
  TestModel then, otherwise, m;
  then.Node("FirstUnknown", {"x"}, {"a"}).Output("a");
  otherwise.Node("SecondUnknown", {"x"}, {"b"}).Output("b");
  m.Input("x", {1}).Input("c", {}, kBool).Node("If", {"c"}, {"y"});
  m.Body("then_branch", then).Body("else_branch", otherwise);
  m.Node("ThirdUnknown", {"y"}, {"z"}).Output("z");
  EXPECT_THAT(
      ErrorOf([&] { m.Load(); }),
      AllOf(HasSubstr("FirstUnknown"), HasSubstr("SecondUnknown"), HasSubstr("ThirdUnknown")));
}

// A network between two nodes whose shapes come with the run.
TestModel LateModel() {
  TestModel m;
  m.Input("x", {-1}).Input("shape", {4}, kInt64).Input("ends", {1}, kInt64);
  m.Noise("w", {8, 2, 3, 3}).Ints("zero", {0}).Ints("axis", {1}).Ints("minus", {-1});
  m.Node("Reshape", {"x", "shape"}, {"image"});
  m.Node("Conv", {"image", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}}).Node("Relu", {"c"}, {"r"});
  m.Node("Slice", {"r", "zero", "ends", "axis"}, {"s"}).Node("Neg", {"s"}, {"y"});
  m.Output("y").Output("r").Output("shape", kInt64).Output("y");
  return m;
}

TEST(LateShapes, FastAndReferenceAgree) {
  SessionOptions reference;
  reference.reference = true;
  const auto fast = LateModel().Load(), plain = LateModel().Load(reference);
  for (const auto& [height, channels] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{5, 3}, {7, 8}, {5, 1}, {5, 0}}) {
    const Shape x_shape{2 * height * 6};
    const Tensor x = Tensor::FromVector<float>(
        x_shape, TestModel::NoiseValues(static_cast<std::size_t>(x_shape[0]), 5));
    const Tensor shape = Values<std::int64_t>({4}, {1, 2, height, 6});
    const Tensor ends = Values<std::int64_t>({1}, {channels});
    const std::vector<NamedView> inputs{
        {"x", x.view()}, {"shape", shape.view()}, {"ends", ends.view()}};
    const auto a = RunAll(*fast, inputs), b = RunAll(*plain, inputs);
    EXPECT_EQ(a[0].shape(), (Shape{1, channels, height, 6}));
    EXPECT_EQ(ToVector<std::int64_t>(a[2]), Ints({1, 2, height, 6}));
    for (const std::size_t i : {0, 1, 3}) {
      const auto fast_values = ToVector<float>(a[i]), plain_values = ToVector<float>(b[i]);
      ASSERT_EQ(fast_values.size(), plain_values.size());
      for (std::size_t k = 0; k < fast_values.size(); ++k) {
        ASSERT_NEAR(fast_values[k], plain_values[k], 1e-5);
      }
    }
    EXPECT_EQ(ToVector<float>(a[0]), ToVector<float>(a[3]));
  }
}

TEST(LateShapes, OutputsWithoutThemAreRefusedByName) {
  const auto session = LateModel().Load();
  EXPECT_THAT(ErrorOf([&] {
                session->InferOutputs(std::vector<Shape>{{60}, {4}, {1}});
              }),
              AllOf(HasSubstr("test.onnx"), HasSubstr("Reshape_image")));
}

TEST(LateShapes, ErrorsNameTheNodeAndItsShapes) {
  const auto session = LateModel().Load();
  const Tensor x = Values<float>({5}, {1, 2, 3, 4, 5});
  const Tensor shape = Values<std::int64_t>({4}, {1, 2, 5, 6}),
               ends = Values<std::int64_t>({1}, {1});
  EXPECT_THAT(ErrorOf([&] {
                RunAll(*session, {{"x", x.view()}, {"shape", shape.view()}, {"ends", ends.view()}});
              }),
              AllOf(HasSubstr("test.onnx: node 'Reshape_image' (Reshape)"),
                    HasSubstr("[inputs: float32 5, int64 4]")));
}

TEST(LateShapes, ManyThreadsMayRunThem) {
  const auto session = LateModel().Load();
  std::vector<std::thread> threads;
  std::vector<std::string> errors(4);
  for (std::size_t t = 0; t < errors.size(); ++t) {
    threads.emplace_back([&, t] {
      errors[t] = ErrorOf([&] {
        for (int i = 0; i < 20; ++i) {
          const std::int64_t height = 2 + (i + static_cast<int>(t)) % 3;
          const Tensor x(DType::kFloat32, {2 * height * 6});
          std::fill_n(x.data<float>(), x.size(), static_cast<float>(height));
          const Tensor shape = Values<std::int64_t>({4}, {1, 2, height, 6});
          const Tensor ends = Values<std::int64_t>({1}, {2});
          const auto out =
              RunAll(*session, {{"x", x.view()}, {"shape", shape.view()}, {"ends", ends.view()}});
          Require(out[0].shape() == Shape{1, 2, height, 6}, "wrong shape ", out[0].shape());
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ(error, "no error");
}

TEST(LateShapes, OutputsKeepTheirDeclaredType) {
  TestModel m;
  m.Input("x", {4}).Input("shape", {-1}, kInt64);
  m.Node("Reshape", {"x", "shape"}, {"y"}).Output("y", kInt64);
  const auto session = m.Load();
  const Tensor x = Values<float>({4}, {1, 2, 3, 4}), shape = Values<std::int64_t>({2}, {2, 2});
  EXPECT_THAT(ErrorOf([&] {
                RunAll(*session, {{"x", x.view()}, {"shape", shape.view()}});
              }),
              HasSubstr("output 'y' is float32, declared as int64"));
}

TEST(LateShapes, AProfileHoldsEveryStage) {
  const auto session = LateModel().Load();
  const Tensor x(DType::kFloat32, {60});
  std::fill_n(x.data<float>(), x.size(), 1.0f);
  const Tensor shape = Values<std::int64_t>({4}, {1, 2, 5, 6}),
               ends = Values<std::int64_t>({1}, {3});
  std::vector<Tensor> outputs;
  RunProfile profile;
  session->Run(
      std::vector<NamedView>{{"x", x.view()}, {"shape", shape.view()}, {"ends", ends.view()}},
      outputs, nullptr, &profile);
  std::vector<std::string> types;
  double end = 0;
  for (const auto& step : profile.steps) {
    if (step.type != "Reorder" && step.type != "Copy") types.push_back(step.type);
    EXPECT_GE(step.start_ms, end);
    EXPECT_GE(step.end_ms, step.start_ms);
    end = step.end_ms;
  }
  EXPECT_THAT(types, ElementsAre("Reshape", "FusedConv", "Slice", "Neg"));
}

}  // namespace
}  // namespace tessera
