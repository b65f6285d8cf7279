#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

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

}  // namespace
}  // namespace tessera
