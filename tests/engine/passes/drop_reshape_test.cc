#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(DropReshape, ShapesThatAreThereAlreadyAreNotMade) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {16, 3, 1, 1}).Noise("v", {16, 16, 3, 3});
  m.Ints("same", {1, -1, 8, 8}).Ints("one", {1});
  m.Node("Conv", {"x", "w"}, {"a"}).Node("Reshape", {"a", "same"}, {"b"});
  m.Node("Expand", {"b", "one"}, {"c"}).Node("Conv", {"c", "v"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "drop-reshape"), 2);
  EXPECT_EQ(Rewrites(m, "drop-reshape", {1, 3, 16, 4}), 1);
  ExpectSameWithoutPass(m, "drop-reshape");
}

TEST(DropReshape, OthersStay) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Ints("flat", {1, 3, 64, 1}).Ints("same", {1, 3, 8, 8});
  m.Node("Neg", {"x"}, {"a"}).Node("Reshape", {"a", "flat"}, {"b"}).Node("Abs", {"b"}, {"c"});
  // The graph's own inputs and outputs.
  m.Node("Reshape", {"x", "same"}, {"y"}).Output("c").Output("y");
  EXPECT_EQ(Rewrites(m, "drop-reshape"), 0);
  ExpectSameWithoutPass(m, "drop-reshape");
}

}  // namespace
}  // namespace tessera
