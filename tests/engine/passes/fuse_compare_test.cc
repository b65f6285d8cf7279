#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(FuseCompare, WithTheCastToFloat) {
  for (const char* type : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) {
    TestModel m(16);
    m.Input("x", {1, 3, -1, -1}).Floats("c", {}, {0.25f});
    m.Node(type, {"x", "c"}, {"e"}).Node("Cast", {"e"}, {"y"}, {{"to", std::int64_t{1}}});
    m.Output("y");
    EXPECT_EQ(Rewrites(m, "fuse-compare"), 1);
    ExpectSameWithoutPass(m, "fuse-compare");
    m.Output("e", onnx::TensorProto::BOOL);
    EXPECT_EQ(Rewrites(m, "fuse-compare"), 0);
  }
}

}  // namespace
}  // namespace tessera
