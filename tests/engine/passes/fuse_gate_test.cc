#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(FuseGate, SpansGate) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {3, 3, 3, 3}).Floats("half", {}, {0.5f});
  m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Sigmoid", {"c"}, {"s"}).Node("Sub", {"s", "half"}, {"g"});
  m.Node("Add", {"c", "x"}, {"a"}).Node("Mul", {"a", "g"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(m, "fuse-gate"), 1);
  ExpectSameWithoutPass(m, "fuse-gate");
  TestModel higher_rank = m;
  for (int i = 0; i < 5; ++i)
    higher_rank.proto.mutable_graph()->mutable_initializer(1)->add_dims(1);
  EXPECT_EQ(Rewrites(higher_rank, "fuse-gate"), 0);
  ExpectSameWithoutPass(higher_rank, "fuse-gate");
  m.proto.mutable_graph()->mutable_initializer(1)->set_float_data(0, 0.25f);
  EXPECT_EQ(Rewrites(m, "fuse-gate"), 0);
  ExpectSameWithoutPass(m, "fuse-gate");
}

}  // namespace
}  // namespace tessera
