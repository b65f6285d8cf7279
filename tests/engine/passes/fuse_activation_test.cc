#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

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

}  // namespace
}  // namespace tessera
