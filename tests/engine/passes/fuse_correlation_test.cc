#include "tests/engine/passes/pass_test_util.h"
#include "tests/engine/passes/quantized_model.h"

namespace tessera {
namespace {

// Two maps of one picture, compared pixel by pixel; the product is `p`.
TestModel ProductModel(const std::vector<std::int64_t>& perm, const Ints& out_shape) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("wk", {20, 3, 2, 2}).Noise("ws", {20, 3, 1, 1});
  m.Ints("matrix", {1, 20, -1}).Ints("map", out_shape);
  m.Node("Conv", {"x", "wk"}, {"k"}, {{"strides", Ints{2, 2}}}).Node("Conv", {"x", "ws"}, {"s"});
  m.Node("Reshape", {"k", "matrix"}, {"km"}).Node("Reshape", {"s", "matrix"}, {"sm"});
  m.Node("Transpose", {"km"}, {"kt"}, {{"perm", perm}}).Node("MatMul", {"kt", "sm"}, {"p"});
  return m;
}

TestModel CorrelationModel(const std::vector<std::int64_t>& perm, const Ints& out_shape) {
  return ProductModel(perm, out_shape).Node("Reshape", {"p", "map"}, {"y"}).Output("y");
}

TEST(FuseCorrelation, OfATemplateAndASearchArea) {
  TestModel m = CorrelationModel({0, 2, 1}, {1, 16, 8, 8});
  EXPECT_EQ(Rewrites(m, "fuse-correlation"), 1);
  ExpectSameWithoutPass(m, "fuse-correlation");
  EXPECT_EQ(CountSteps(m, "MatMul"), 0);
  m.Output("p");
  EXPECT_EQ(Rewrites(m, "fuse-correlation"), 0);
}

TEST(FuseCorrelation, QuantisedBeforeItIsReshaped) {
  const ByteScale scale{0.05f, 120};
  TestModel m = ProductModel({0, 2, 1}, {1, 16, 8, 8});
  AddBytes(m, "p", "pb", scale);
  m.Node("Reshape", {"pb", "map"}, {"r"});
  AddBytes(m, "r", "y", scale);
  m.Output("y");
  ExpectSameWithoutPass(m, "fuse-correlation");
  EXPECT_EQ(CountSteps(m, "MatMul"), 0);  // once use-integers has moved the Reshape to bytes
  EXPECT_EQ(CountSteps(m, "MatMul", {.disabled_passes = {"use-integers"}}), 1);
}

TEST(FuseCorrelation, NearMisses) {
  const TestModel other_map = CorrelationModel({0, 2, 1}, {1, 16, 4, 16});
  EXPECT_EQ(Rewrites(other_map, "fuse-correlation"), 0);
  ExpectSameWithoutPass(other_map, "fuse-correlation");
}

}  // namespace
}  // namespace tessera
