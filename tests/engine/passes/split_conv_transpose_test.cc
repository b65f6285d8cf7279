#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(SplitConvTranspose, ComputesEveryPhase) {
  struct Case {
    std::int64_t in, out, kernel_h, kernel_w, stride_h, stride_w;
    Ints pads, output_padding, dilations;
    std::int64_t groups;
  };
  const Case cases[] = {
      {3, 1, 9, 9, 3, 3, {4, 4, 4, 4}, {2, 2}, {1, 1}, 1},    // FSRCNN
      {3, 16, 4, 4, 2, 2, {1, 1, 1, 1}, {0, 0}, {1, 1}, 1},   // U-Net
      {40, 48, 4, 4, 2, 2, {1, 1, 1, 1}, {0, 0}, {1, 1}, 1},  // Winograd
      {3, 3, 2, 2, 2, 2, {0, 0, 0, 0}, {0, 0}, {1, 1}, 1},    //
      {3, 20, 3, 3, 2, 2, {1, 1, 1, 1}, {1, 1}, {1, 1}, 1},   //
      {3, 5, 3, 3, 1, 1, {1, 1, 1, 1}, {0, 0}, {2, 1}, 1},    // no phases
      {3, 3, 1, 3, 4, 1, {0, 0, 0, 2}, {3, 0}, {1, 3}, 1},    // phases without taps
      {3, 2, 5, 2, 2, 3, {3, 0, 2, 1}, {1, 2}, {2, 2}, 1},    // dilations
      {4, 6, 3, 4, 2, 2, {0, 1, 2, 0}, {0, 1}, {1, 1}, 2},    //
      {4, 4, 4, 4, 2, 2, {1, 1, 1, 1}, {0, 0}, {1, 1}, 4},    // depthwise
      {3, 2, 3, 3, 2, 2, {7, 0, 0, 6}, {0, 0}, {1, 1}, 1},    // pads beyond the kernel
  };
  for (const Case& c : cases) {
    TestModel m;
    m.Input("x", {1, c.in, -1, -1}).Noise("b", {c.out});
    m.Noise("w", {c.in, c.out / c.groups, c.kernel_h, c.kernel_w}, 0.2f);
    m.Node("ConvTranspose", {"x", "w", "b"}, {"t"},
           {{"strides", Ints{c.stride_h, c.stride_w}},
            {"pads", c.pads},
            {"output_padding", c.output_padding},
            {"dilations", c.dilations},
            {"group", c.groups}});
    m.Noise("gamma", {c.out}).Noise("mean", {c.out}).Noise("slope", {c.out, 1, 1});
    m.Floats("var", {c.out}, std::vector<float>(static_cast<std::size_t>(c.out), 2.f));
    m.Node("BatchNormalization", {"t", "gamma", "b", "mean", "var"}, {"n"});
    m.Node("PRelu", {"n", "slope"}, {"y"}).Output("y");
    EXPECT_EQ(Rewrites(m, "split-conv-transpose"), 1);
    ExpectSameWithoutPass(m, "split-conv-transpose", {1, c.in, 8, 9});
    ExpectSameWithoutPass(m, "split-conv-transpose", {2, c.in, 13, 7});
  }
}

TEST(SplitConvTranspose, LetsActivationsFuse) {
  const auto steps = [](bool output, const std::string& type) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Noise("w", {3, 16, 4, 4});
    m.Node("ConvTranspose", {"x", "w"}, {"t"},
           {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
    m.Node("LeakyRelu", {"t"}, {"y"}).Output("y");
    if (output) m.Output("t");
    ExpectSameWithoutPass(m, "split-conv-transpose");
    return CountSteps(m, type);
  };
  EXPECT_EQ(steps(false, "FusedConv"), 1);
  EXPECT_EQ(steps(false, "LeakyRelu"), 0);
  EXPECT_EQ(steps(true, "FusedConv"), 0);
  EXPECT_EQ(steps(true, "LeakyRelu"), 1);
}

TEST(SplitConvTranspose, KnowsWhatItCannotDo) {
  const auto rewrites = [](const Ints& output_shape, const std::string& auto_pad, bool constant) {
    TestModel m;
    m.Input("x", {1, 3, 8, 8});
    constant ? m.Noise("w", {3, 2, 3, 3}) : m.Input("w", {3, 2, 3, 3});
    std::vector<TestModel::Attribute> attributes = {{"strides", Ints{2, 2}},
                                                    {"auto_pad", auto_pad}};
    if (!output_shape.empty()) attributes.push_back({"output_shape", output_shape});
    m.Node("ConvTranspose", {"x", "w"}, {"y"}, attributes).Output("y");
    if (constant) ExpectSameWithoutPass(m, "split-conv-transpose");
    return Rewrites(m, "split-conv-transpose");
  };
  EXPECT_EQ(rewrites({}, "SAME_UPPER", true), 1);
  EXPECT_EQ(rewrites({}, "SAME_LOWER", true), 1);
  EXPECT_EQ(rewrites({}, "VALID", true), 1);
  EXPECT_EQ(rewrites({16, 15}, "NOTSET", true), 0);
  EXPECT_EQ(rewrites({}, "NOTSET", false), 0);
}

}  // namespace
}  // namespace tessera
