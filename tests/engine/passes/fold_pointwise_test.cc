#include "ops/error.h"
#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

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

}  // namespace
}  // namespace tessera
