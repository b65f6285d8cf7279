#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

// x enlarged twice by learned pixels, and by Resize.
TestModel UpsampledShortcutModel(const std::string& mode, const std::string& rounding) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {12, 3, 3, 3}, 0.5f).Floats("scales", {4}, {1, 1, 2, 2});
  m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("DepthToSpace", {"c"}, {"d"}, {{"blocksize", std::int64_t{2}}, {"mode", "CRD"}});
  m.Node("Resize", {"x", "", "scales"}, {"r"},
         {{"mode", mode},
          {"nearest_mode", rounding},
          {"coordinate_transformation_mode", "asymmetric"}});
  return m;
}

TEST(FuseUpsampledShortcut, AddsTheSmallImageAtOnce) {
  for (const bool flip : {false, true}) {
    TestModel m = UpsampledShortcutModel("nearest", "floor");
    m.Node("Add", flip ? std::vector<std::string>{"r", "d"} : std::vector<std::string>{"d", "r"},
           {"y"});
    m.Output("y");
    EXPECT_EQ(Rewrites(m, "fuse-upsampled-shortcut"), 1);
    ExpectSameWithoutPass(m, "fuse-upsampled-shortcut");
  }
}

TEST(FuseUpsampledShortcut, NearMisses) {
  for (const auto& [mode, rounding] :
       {std::pair{"linear", "floor"}, {"nearest", "ceil"}, {"nearest", "round_prefer_ceil"}}) {
    TestModel m = UpsampledShortcutModel(mode, rounding);
    m.Node("Add", {"d", "r"}, {"y"}).Output("y");
    EXPECT_EQ(Rewrites(m, "fuse-upsampled-shortcut"), 0) << mode << " " << rounding;
    ExpectSameWithoutPass(m, "fuse-upsampled-shortcut");
  }
  for (const std::string wanted_too : {"d", "r"}) {
    TestModel m = UpsampledShortcutModel("nearest", "floor");
    m.Node("Add", {"d", "r"}, {"y"}).Output("y").Output(wanted_too);
    EXPECT_EQ(Rewrites(m, "fuse-upsampled-shortcut"), 0);
  }
  // Two channels made of eight, and an image of one that is broadcast.
  TestModel broadcast;
  broadcast.Input("x", {1, 3, -1, -1}).Noise("w", {8, 3, 1, 1}).Noise("w1", {1, 3, 1, 1});
  broadcast.Floats("scales", {4}, {1, 1, 2, 2});
  broadcast.Node("Conv", {"x", "w"}, {"c"}).Node("Conv", {"x", "w1"}, {"i"});
  broadcast.Node("DepthToSpace", {"c"}, {"d"}, {{"blocksize", std::int64_t{2}}});
  broadcast.Node("Resize", {"i", "", "scales"}, {"r"}, {{"mode", "nearest"}});
  broadcast.Node("Add", {"d", "r"}, {"y"}).Output("y");
  EXPECT_EQ(Rewrites(broadcast, "fuse-upsampled-shortcut"), 0);
  ExpectSameWithoutPass(broadcast, "fuse-upsampled-shortcut");
}

}  // namespace
}  // namespace tessera
