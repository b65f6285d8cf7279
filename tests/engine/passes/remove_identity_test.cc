#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(RemoveIdentity, LeavesThoseBetweenInputAndOutput) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Node("Identity", {"x"}, {"a"}).Node("Relu", {"a"}, {"b"});
  m.Node("Dropout", {"b"}, {"c"}).Node("Identity", {"c"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "remove-identity"), 3);
  ExpectSameWithoutPass(m, "remove-identity");
  TestModel copy;
  copy.Input("x", {1, 3, -1, -1}).Node("Identity", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(copy, "remove-identity"), 0);
  ExpectSameWithoutPass(copy, "remove-identity");
}

}  // namespace
}  // namespace tessera
