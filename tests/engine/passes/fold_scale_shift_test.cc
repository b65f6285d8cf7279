#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

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

}  // namespace
}  // namespace tessera
