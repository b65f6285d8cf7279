#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(FoldPad, ZerosAroundThePicture) {
  const auto model = [](const Ints& pads, float value, const std::string& mode,
                        const std::vector<TestModel::Attribute>& conv) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3}, 0.5f).Ints("pads", pads);
    m.Floats("value", {}, {value});
    m.Node("Pad", {"x", "pads", "value"}, {"p"}, {{"mode", mode}});
    m.Node("Conv", {"p", "w"}, {"y"}, conv).Output("y");
    return m;
  };
  const auto check = [](const TestModel& m, int expected) {
    EXPECT_EQ(Rewrites(m, "fold-pad"), expected);
    ExpectSameWithoutPass(m, "fold-pad");
  };
  const Ints pads{0, 0, 1, 2, 0, 0, 3, 0};
  check(model(pads, 0, "constant", {}), 1);
  check(model(pads, 0, "constant", {{"pads", Ints{1, 0, 0, 2}}}), 1);
  check(model(pads, 0, "constant", {{"auto_pad", "VALID"}, {"strides", Ints{2, 1}}}), 1);
  check(model({0, 0, 7, 0, 0, 0, 0, 9}, 0, "constant", {}), 1);  // windows of nothing but zeros
  check(model(pads, 0, "constant", {{"auto_pad", "SAME_UPPER"}}), 0);
  check(model(pads, 0.5f, "constant", {}), 0);
  check(model(pads, 0, "reflect", {}), 0);
  check(model({0, 0, 1, -1, 0, 0, 1, 1}, 0, "constant", {}), 0);
  check(model({1, 0, 1, 1, 0, 0, 1, 1}, 0, "constant", {}), 0);
  TestModel twice = model(pads, 0, "constant", {});
  twice.Output("p");
  EXPECT_EQ(Rewrites(twice, "fold-pad"), 0);
  // Before opset 11 pads and value were attributes.
  for (const float value : {0.f, 1.f}) {
    TestModel old(10);
    old.Input("x", {1, 3, -1, -1}).Noise("w", {4, 3, 3, 3}, 0.5f);
    old.Node("Pad", {"x"}, {"p"}, {{"pads", pads}, {"value", value}});
    old.Node("Conv", {"p", "w"}, {"y"}).Output("y");
    check(old, value == 0 ? 1 : 0);
  }
}

}  // namespace
}  // namespace tessera
