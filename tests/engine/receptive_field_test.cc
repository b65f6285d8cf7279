#include <gtest/gtest.h>

#include "engine/session.h"
#include "ops/error.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;

std::optional<ReceptiveField> Field(const TestModel& m, const Shape& shape) {
  return m.Load()->FindReceptiveField(std::vector<Shape>{shape});
}

TEST(ReceptiveField, StackedConvolutionsAddUp) {
  TestModel m;
  m.Input("x", {1, 1, -1, -1}).Noise("w", {1, 1, 3, 5});
  m.Node("Conv", {"x", "w"}, {"a"}, {{"pads", Ints{1, 2, 1, 2}}});
  m.Node("Relu", {"a"}, {"b"});
  m.Node("Conv", {"b", "w"}, {"y"}, {{"pads", Ints{2, 4, 2, 4}}, {"dilations", Ints{2, 2}}});
  m.Output("y");
  const auto field = Field(m, {1, 1, 16, 16});
  ASSERT_TRUE(field);
  EXPECT_EQ(field->height.before, 1 + 2);
  EXPECT_EQ(field->height.after, 1 + 2);
  EXPECT_EQ(field->width.before, 2 + 4);
  EXPECT_EQ(field->width.after, 2 + 4);
  EXPECT_EQ(field->height.scale_num, 1);
  EXPECT_EQ(field->height.scale_den, 1);
  EXPECT_EQ(field->height.alignment, 1);
}

// Winograd kernels compute blocks of six pixels; they need channels enough.
TEST(ReceptiveField, BlocksOfPixelsWidenTheExactField) {
  for (const std::int64_t channels : {1, 16}) {
    TestModel m;
    m.Input("x", {1, channels, -1, -1}).Noise("w", {channels, channels, 3, 3});
    m.Noise("p", {channels, channels, 1, 1});
    m.Node("Conv", {"x", "w"}, {"a"}, {{"pads", Ints{1, 1, 1, 1}}});
    m.Node("Relu", {"a"}, {"b"});
    m.Node("Conv", {"b", "p"}, {"c"});
    m.Node("Relu", {"c"}, {"d"});
    m.Node("Conv", {"d", "w"}, {"y"}, {{"pads", Ints{1, 1, 1, 1}}}).Output("y");
    const auto field = Field(m, {1, channels, 32, 32});
    ASSERT_TRUE(field);
    EXPECT_EQ(field->width.before, 2);
    EXPECT_EQ(field->height.after, 2);
    const int exact = channels == 1 ? 2 : 2 * 6;
    EXPECT_EQ(field->width.exact_before, exact);
    EXPECT_EQ(field->width.exact_after, exact);
    EXPECT_EQ(field->height.exact_before, exact);
    EXPECT_EQ(field->height.exact_after, exact);
  }
}

TEST(ReceptiveField, PixelShuffleAndShortcutGiveTheScale) {
  TestModel m;
  m.Input("x", {1, 1, -1, -1}).Noise("w", {4, 1, 3, 3}).Floats("s", {4}, {1, 1, 2, 2});
  m.Node("Conv", {"x", "w"}, {"a"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("DepthToSpace", {"a"}, {"b"}, {{"blocksize", std::int64_t{2}}});
  m.Node("Resize", {"x", "", "s"}, {"c"},
         {{"coordinate_transformation_mode", "asymmetric"},
          {"mode", "nearest"},
          {"nearest_mode", "floor"}});
  m.Node("Add", {"b", "c"}, {"y"}).Output("y");
  const auto field = Field(m, {1, 1, 8, 8});
  ASSERT_TRUE(field);
  EXPECT_EQ(field->width.scale_num, 2);
  EXPECT_EQ(field->width.scale_den, 1);
  EXPECT_EQ(field->width.before, 1);
  EXPECT_EQ(field->width.after, 1);
}

TEST(ReceptiveField, TransposedConvolutionsGiveTheScale) {
  for (const bool split : {true, false}) {
    TestModel m;
    m.Input("x", {1, 2, -1, -1}).Noise("w", {2, 1, 9, 9});
    m.Node("ConvTranspose", {"x", "w"}, {"y"},
           {{"strides", Ints{3, 3}}, {"pads", Ints{4, 4, 4, 4}}, {"output_padding", Ints{2, 2}}});
    m.Output("y");
    SessionOptions options;
    if (!split) options.disabled_passes = {"split-conv-transpose"};
    const auto field = m.Load(options)->FindReceptiveField(std::vector<Shape>{{1, 2, 8, 8}});
    ASSERT_TRUE(field);
    EXPECT_EQ(field->width.scale_num, 3);
    EXPECT_EQ(field->width.scale_den, 1);
    // Output pixel 3 p reads p - 1 to p + 1, and 3 p + 2 reads p to p + 2.
    EXPECT_EQ(field->width.before, 1);
    EXPECT_EQ(field->width.after, 2);
  }
}

TEST(ReceptiveField, StridesAlignAndMultiply) {
  TestModel m;
  m.Input("x", {1, 1, -1, -1}).Noise("w", {1, 1, 3, 3}).Noise("w4", {16, 1, 3, 3});
  m.Node("Conv", {"x", "w"}, {"a"}, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  m.Node("Conv", {"a", "w4"}, {"b"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("DepthToSpace", {"b"}, {"y"}, {{"blocksize", std::int64_t{4}}}).Output("y");
  const auto field = Field(m, {1, 1, 16, 16});
  ASSERT_TRUE(field);
  EXPECT_EQ(field->height.scale_num, 2);
  EXPECT_EQ(field->height.scale_den, 1);
  EXPECT_EQ(field->height.alignment, 2);
  // Half-size pixel p sees input 2p-1..2p+1; the second convolution p-1..p+1 of those: an aligned
  // block [0, 2) needs -3..3.
  EXPECT_EQ(field->height.before, 3);
  EXPECT_EQ(field->height.after, 2);
}

TEST(ReceptiveField, AbsurdScalesAndFieldsHaveNone) {
  TestModel scaled;
  scaled.Input("x0", {1, 1, -1, -1}).Floats("s", {4}, {1, 1, 255.0f / 256, 255.0f / 256});
  for (int i = 0; i < 9; ++i) {
    scaled.Node("Resize", {StrCat("x", i), "", "s"}, {StrCat("x", i + 1)},
                {{"coordinate_transformation_mode", "asymmetric"}});
  }
  scaled.Output("x9");
  EXPECT_FALSE(Field(scaled, {1, 1, 64, 64}));

  const std::int64_t far = std::int64_t{1} << 30;
  TestModel wide;
  wide.Input("x0", {1, 1, -1, -1}).Noise("w", {1, 1, 1, 3});
  for (int i = 0; i < 3; ++i) {
    wide.Node("Conv", {StrCat("x", i), "w"}, {StrCat("x", i + 1)},
              {{"dilations", Ints{1, far}}, {"pads", Ints{0, far, 0, far}}});
  }
  wide.Output("x3");
  EXPECT_FALSE(Field(wide, {1, 1, 8, 8}));
}

// Sizes that are computed as a multiple of the input's have a field; others have none.
TEST(ReceptiveField, SizesCountIfTheyFollowTheInput) {
  const auto resized = [](std::int64_t times, std::int64_t over) {
    TestModel m;
    m.Input("x", {1, 1, -1, -1}).Ints("from", {2}).Ints("to", {4}).Ints("axis", {0});
    m.Ints("times", {times}).Ints("over", {over}).Ints("head", {1, 1});
    m.Node("Shape", {"x"}, {"shape"}).Node("Slice", {"shape", "from", "to", "axis"}, {"size"});
    m.Node("Div", {"size", "over"}, {"part"}).Node("Mul", {"part", "times"}, {"new_size"});
    m.Node("Concat", {"head", "new_size"}, {"sizes"}, {{"axis", std::int64_t{0}}});
    m.Node("Resize", {"x", "", "", "sizes"}, {"y"}, {{"mode", "linear"}}).Output("y");
    return Field(m, {1, 1, 64, 96});
  };
  const auto doubled = resized(2, 1);
  ASSERT_TRUE(doubled);
  EXPECT_EQ(doubled->width.scale_num, 2);
  EXPECT_EQ(doubled->height.scale_den, 1);
  EXPECT_EQ(doubled->width.before, 1);
  const auto halved = resized(1, 2);
  ASSERT_TRUE(halved);
  EXPECT_EQ(halved->width.scale_den, 2);
  EXPECT_EQ(halved->width.alignment, 2);
  // Cut to a multiple of 32.
  EXPECT_FALSE(resized(32, 32));

  TestModel constant;
  constant.Input("x", {1, 1, -1, -1}).Ints("sizes", {1, 1, 128, 192});
  constant.Node("Resize", {"x", "", "", "sizes"}, {"y"}, {{"mode", "linear"}}).Output("y");
  EXPECT_FALSE(Field(constant, {1, 1, 64, 96}));
}

TEST(ReceptiveField, GlobalOperatorsHaveNone) {
  TestModel m;
  m.Input("x", {1, 2, -1, -1});
  m.Node("GlobalAveragePool", {"x"}, {"a"}).Node("Mul", {"x", "a"}, {"y"}).Output("y");
  EXPECT_FALSE(Field(m, {1, 2, 8, 8}));
}

}  // namespace
}  // namespace tessera
