#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

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

}  // namespace
}  // namespace tessera
