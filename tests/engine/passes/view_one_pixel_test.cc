#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

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

}  // namespace
}  // namespace tessera
