#include <tuple>

#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

// x of 32 channels, two convolutions that add 16 each, and one that reads all.
TestModel DenseBlock(std::int64_t height) {
  TestModel m;
  const std::vector<TestModel::Attribute> pads = {{"pads", Ints{1, 1, 1, 1}}};
  const std::vector<TestModel::Attribute> channels = {{"axis", std::int64_t{1}}};
  m.Input("x", {1, 32, height, 60}).Noise("w1", {16, 32, 3, 3}, 0.1f);
  m.Noise("w2", {16, 48, 3, 3}, 0.1f).Noise("w3", {24, 64, 3, 3}, 0.1f).Noise("b", {16});
  m.Node("Conv", {"x", "w1", "b"}, {"c1"}, pads).Node("Relu", {"c1"}, {"a"});
  m.Node("Concat", {"x", "a"}, {"xa"}, channels);
  m.Node("Conv", {"xa", "w2", "b"}, {"c2"}, pads).Node("Relu", {"c2"}, {"b2"});
  m.Node("Concat", {"x", "a", "b2"}, {"xab"}, channels);
  m.Node("Conv", {"xab", "w3"}, {"y"}, pads).Output("y");
  return m;
}

TEST(ShareWinogradInput, TransformsEachPartOfADenseBlockOnce) {
  const TestModel m = DenseBlock(62);
  EXPECT_EQ(Rewrites(m, "share-winograd-input", {1, 32, 62, 60}), 3);
  ExpectSameWithoutPass(m, "share-winograd-input", {1, 32, 62, 60});
  const SessionOptions off = {.disabled_passes = {"share-winograd-input"}};
  EXPECT_EQ(CountSteps(m, "WinogradInput", {}, {1, 32, 62, 60}), 3);
  EXPECT_EQ(CountSteps(m, "WinogradInput", off, {1, 32, 62, 60}), 0);
  // Transformed channels are computed in their place, too.
  EXPECT_EQ(CountSteps(m, "Concat", {}, {1, 32, 62, 60}), 0);
}

TEST(ShareWinogradInput, NearMisses) {
  // Too small for F(6x6).
  EXPECT_EQ(Rewrites(DenseBlock(5), "share-winograd-input", {1, 32, 5, 60}), 0);
  // Too large for the cache.
  EXPECT_EQ(Rewrites(DenseBlock(600), "share-winograd-input", {1, 32, 600, 60}), 0);
  // Nobody shares anything.
  TestModel chain;
  chain.Input("x", {1, 32, 60, 60}).Noise("w", {32, 32, 3, 3}, 0.1f);
  chain.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  chain.Node("Conv", {"c", "w"}, {"y"}, {{"pads", Ints{1, 1, 1, 1}}}).Output("y");
  EXPECT_EQ(Rewrites(chain, "share-winograd-input", {1, 32, 60, 60}), 0);
  // Other pads, other strides; parts that are no whole blocks of channels.
  for (const auto& [w, pads, strides] :
       {std::tuple{Ints{16, 32, 3, 3}, Ints{0, 0, 0, 0}, Ints{1, 1}},
        std::tuple{Ints{16, 32, 3, 3}, Ints{1, 1, 1, 1}, Ints{2, 2}},
        std::tuple{Ints{16, 32, 1, 1}, Ints{0, 0, 0, 0}, Ints{1, 1}}}) {
    TestModel m;
    m.Input("x", {1, 32, 60, 60}).Noise("w", w, 0.1f);
    for (const char* out : {"y", "z"}) {
      m.Node("Conv", {"x", "w"}, {out}, {{"pads", pads}, {"strides", strides}}).Output(out);
    }
    EXPECT_EQ(Rewrites(m, "share-winograd-input", {1, 32, 60, 60}), 0);
  }
  TestModel odd;
  odd.Input("x", {1, 17, 60, 60}).Noise("w", {17, 34, 3, 3}, 0.1f);
  odd.Node("Concat", {"x", "x"}, {"xx"}, {{"axis", std::int64_t{1}}});
  for (const char* out : {"y", "z"}) {
    odd.Node("Conv", {"xx", "w"}, {out}, {{"pads", Ints{1, 1, 1, 1}}}).Output(out);
  }
  // Blocks of one channel are always whole.
  EXPECT_EQ(Rewrites(odd, "share-winograd-input", {1, 17, 60, 60}), FloatLanes() == 1 ? 2 : 0);
  ExpectSameWithoutPass(odd, "share-winograd-input", {1, 17, 60, 60});
}

TEST(ShareWinogradInput, ConvolutionsOfOneValueAndOfTheSamePartTwice) {
  TestModel m;
  m.Input("x", {1, 16, 60, 60}).Noise("w", {16, 16, 3, 3}, 0.1f).Noise("w2", {16, 32, 3, 3}, 0.1f);
  m.Node("Concat", {"x", "x"}, {"xx"}, {{"axis", std::int64_t{1}}});
  m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Conv", {"xx", "w2"}, {"d"}, {{"pads", Ints{1, 1, 1, 1}}});
  m.Node("Add", {"c", "x"}, {"y"}).Output("y").Output("d");
  EXPECT_EQ(Rewrites(m, "share-winograd-input", {1, 16, 60, 60}), 2);
  ExpectSameWithoutPass(m, "share-winograd-input", {1, 16, 60, 60});
}

}  // namespace
}  // namespace tessera
