#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

TEST(ConcatInPlace, DenseBlocksAndNestedConcatsAreNotCopied) {
  const Ints pads{1, 1, 1, 1};
  const std::vector<TestModel::Attribute> axis{{"axis", std::int64_t{1}}};
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w0", {32, 3, 3, 3}, 0.3f).Noise("wa", {16, 32, 3, 3}, 0.1f);
  m.Noise("wb", {16, 48, 3, 3}, 0.1f).Noise("wc", {16, 64, 3, 3}, 0.1f).Noise("wd", {5, 80, 1, 1});
  m.Node("Conv", {"x", "w0"}, {"r"}, {{"pads", pads}});
  m.Node("Conv", {"r", "wa"}, {"a"}, {{"pads", pads}});
  m.Node("Concat", {"r", "a"}, {"ra"}, axis);
  m.Node("Conv", {"ra", "wb"}, {"b"}, {{"pads", pads}});
  m.Node("Concat", {"r", "a", "b"}, {"rab"}, axis);
  m.Node("Conv", {"rab", "wc"}, {"c"}, {{"pads", pads}});
  m.Node("Concat", {"rab", "c"}, {"rabc"}, axis);  // nested
  m.Node("Conv", {"rabc", "wd"}, {"y"}).Output("y");
  EXPECT_EQ(CountSteps(m, "Concat"), 0);
  EXPECT_EQ(CountSteps(m, "Concat", {.disabled_passes = {"concat-in-place"}}), 3);
  ExpectSameWithoutPass(m, "concat-in-place");
}

TEST(ConcatInPlace, RowMajorTensorsAreAppendedToo) {
  const auto steps = [](std::int64_t axis, const std::string& last, const SessionOptions& options) {
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Ints("flat", {1, 3, 64, 1}).Ints("square", {1, 3, 8, 8});
    m.Node("Neg", {"x"}, {"a"}).Node("Exp", {"x"}, {"b"}).Node("Sigmoid", {"x"}, {"c"});
    // The sigmoid goes on under another name and is wanted under its own.
    m.Node("Reshape", {"c", "flat"}, {"f"}).Node("Reshape", {"f", "square"}, {"v"});
    m.Node("Concat", {"a", "b", last}, {"abc"}, {{"axis", axis}});
    m.Node("Abs", {"abc"}, {"y"}).Node("Abs", {"c"}, {"z"}).Output("y").Output("z");
    ExpectSameWithoutPass(m, "concat-in-place");
    return CountSteps(m, "Concat", options);
  };
  EXPECT_EQ(steps(1, "c", {}), 0);
  EXPECT_EQ(steps(0, "c", {}), 0);
  EXPECT_EQ(steps(1, "v", {}), 1);
  EXPECT_EQ(steps(2, "c", {}), 1);
  EXPECT_EQ(steps(1, "c", {.disabled_passes = {"concat-in-place"}}), 1);
}

TEST(ConcatInPlace, CopiesWhatCannotLieInTwoPlaces) {
  const std::vector<TestModel::Attribute> axis{{"axis", std::int64_t{1}}};
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {16, 3, 1, 1});
  m.Node("Conv", {"x", "w"}, {"a"}).Node("Relu", {"a"}, {"b"}).Node("Neg", {"a"}, {"c"});
  m.Node("Concat", {"a", "b"}, {"ab"}, axis).Node("Concat", {"c", "a"}, {"ca"}, axis);
  m.Node("Concat", {"c", "c"}, {"cc"}, axis);
  m.Output("ab").Output("ca").Output("cc");
  EXPECT_GE(CountSteps(m, "Concat"), 2);
  ExpectSameWithoutPass(m, "concat-in-place");
}

// 'ab' is wanted at the head of 'abc', and 'a' and 'b' at the head of 'abd'.
TEST(ConcatInPlace, AConcatIsNotMovedOutOfAnother) {
  const std::vector<TestModel::Attribute> axis{{"axis", std::int64_t{1}}};
  TestModel m;
  m.Input("x", {1, 3, -1, -1});
  for (const std::string name : {"a", "b", "c", "d"}) {
    m.Noise("w" + name, {16, 3, 1, 1}).Node("Conv", {"x", "w" + name}, {name});
  }
  m.Node("Concat", {"a", "b"}, {"ab"}, axis).Node("Concat", {"ab", "c"}, {"abc"}, axis);
  m.Node("Concat", {"a", "b", "d"}, {"abd"}, axis).Node("Add", {"abc", "abd"}, {"y"}).Output("y");
  ExpectSameWithoutPass(m, "concat-in-place");
}

// The last reader of 'a' must not write where 'a' lay: 'd' is there already, in the output of the
// second Concat.
TEST(ConcatInPlace, PartsOfConcatsAreNotComputedInPlaceOfEachOther) {
  const std::vector<TestModel::Attribute> axis{{"axis", std::int64_t{1}}};
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w1", {16, 32, 1, 1}).Noise("w2", {16, 32, 1, 1});
  for (const std::string name : {"a", "b", "d"}) {
    m.Noise("w" + name, {16, 3, 1, 1}).Node("Conv", {"x", "w" + name}, {name});
    if (name == "b") {
      m.Node("Concat", {"a", "b"}, {"ab"}, axis).Node("Conv", {"ab", "w1"}, {"first"});
    }
  }
  m.Node("Tanh", {"a"}, {"t"}).Node("Concat", {"d", "t"}, {"dt"}, axis);
  m.Node("Conv", {"dt", "w2"}, {"second"}).Node("Sub", {"first", "second"}, {"y"}).Output("y");
  ExpectSameWithoutPass(m, "concat-in-place");
}

}  // namespace
}  // namespace tessera
