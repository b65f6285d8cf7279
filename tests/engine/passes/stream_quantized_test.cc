#include <gtest/gtest.h>

#include "tests/engine/passes/pass_test_util.h"
#include "tests/engine/passes/quantized_model.h"

namespace tessera {
namespace {

constexpr ByteScale kBytes{0.02f, 120}, kFromZero{0.02f, 0};
const Shape kShape{1, 24, 16, 32};
const Ints kPads = {1, 1, 1, 1};

// from -> convolution -> Relu -> bytes.
void AddConv(TestModel& m, const std::string& from, const std::string& to,
             const std::vector<std::int64_t>& weights, std::int64_t group,
             std::int64_t stride = 1) {
  AddWeights(m, to + "_w", weights);
  m.Node("Conv", {from, to + "_w"}, {to + "_c"},
         {{"pads", weights[2] == 1 ? Ints{0, 0, 0, 0} : kPads},
          {"group", group},
          {"strides", Ints{stride, stride}}});
  m.Node("Relu", {to + "_c"}, {to + "_r"});
  AddBytes(m, to + "_r", to, kFromZero);
}

TestModel Start() {
  TestModel m;
  m.Input("x", {1, 24, -1, -1});
  AddBytes(m, "x", "a", kBytes);
  return m;
}

// Pointwise, depthwise and pointwise.
TestModel Bottleneck(std::int64_t stride) {
  TestModel m = Start();
  AddConv(m, "a", "b", {72, 24, 1, 1}, 1);
  AddConv(m, "b", "c", {72, 1, 3, 3}, 72, stride);
  AddConv(m, "c", "y", {24, 72, 1, 1}, 1);
  m.Output("y");
  return m;
}

bool HasVectors() { return FloatLanes() > 1; }
int Chains(const TestModel& m) { return CountSteps(m, "QuantizedConvChain", {}, kShape); }
int Convs(const TestModel& m) { return CountSteps(m, "QuantizedConv", {}, kShape); }

// The same bytes with and without the pass.
void ExpectSameBytes(const TestModel& m, const Shape& shape = kShape) {
  const Tensor x = Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 9, 2.0f));
  const auto run = [&](const SessionOptions& options) {
    std::vector<Tensor> outputs;
    m.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
    return outputs;
  };
  OnEveryTarget([&] {
    const std::vector<Tensor> with = run({});
    const std::vector<Tensor> without = run({.disabled_passes = {"stream-quantized"}});
    ASSERT_EQ(with.size(), without.size());
    for (std::size_t k = 0; k < with.size(); ++k) {
      for (std::int64_t i = 0; i < with[k].size(); ++i) {
        ASSERT_EQ(with[k].data<float>()[i], without[k].data<float>()[i]) << k << ' ' << i;
      }
    }
  });
}

TEST(StreamQuantized, InvertedBottleneck) {
  for (const std::int64_t stride : {1, 2}) {
    const TestModel m = Bottleneck(stride);
    EXPECT_EQ(Chains(m), HasVectors() ? 1 : 0);
    EXPECT_EQ(Convs(m), !HasVectors() ? 3 : stride == 1 ? 0 : 1);
    EXPECT_EQ(CountSteps(m, "QuantizedConv", {.disabled_passes = {"stream-quantized"}}, kShape), 3);
    ExpectSameBytes(m);
  }
}

TEST(StreamQuantized, DepthwiseThenPointwise) {
  // Only where what lies between is large.
  const Shape large{1, 24, 64, 160};
  TestModel m = Start();
  AddConv(m, "a", "b", {24, 1, 3, 3}, 24);
  AddConv(m, "b", "y", {40, 24, 1, 1}, 1);
  m.Output("y");
  EXPECT_EQ(Chains(m), 0);
  EXPECT_EQ(CountSteps(m, "QuantizedConvChain", {}, large), HasVectors() ? 1 : 0);
  ExpectSameBytes(m, large);
}

TEST(StreamQuantized, PointwiseThenDepthwise) {
  TestModel first = Start();
  AddConv(first, "a", "b", {48, 24, 1, 1}, 1);
  AddConv(first, "b", "y", {48, 1, 3, 3}, 48);
  first.Output("y");
  EXPECT_EQ(Chains(first), HasVectors() ? 1 : 0);
  ExpectSameBytes(first);
}

TEST(StreamQuantized, EachConvolutionIsInOneChain) {
  TestModel m = Start();
  AddConv(m, "a", "b", {48, 24, 1, 1}, 1);
  AddConv(m, "b", "c", {48, 1, 3, 3}, 48);
  AddConv(m, "c", "d", {40, 48, 1, 1}, 1);  // the last of one chain, or the first of the next
  AddConv(m, "d", "e", {40, 1, 3, 3}, 40);
  AddConv(m, "e", "y", {24, 40, 1, 1}, 1);
  m.Output("y");
  EXPECT_EQ(Chains(m), HasVectors() ? 2 : 0);
  EXPECT_EQ(Convs(m), HasVectors() ? 0 : 5);
  ExpectSameBytes(m);
}

TEST(StreamQuantized, WithAShortcut) {
  TestModel m = Start();
  AddConv(m, "a", "b", {72, 24, 1, 1}, 1);
  AddConv(m, "b", "c", {72, 1, 3, 3}, 72);
  AddWeights(m, "w", {24, 72, 1, 1});
  m.Node("Conv", {"c", "w"}, {"d"}).Node("Add", {"d", "a"}, {"e"});
  AddBytes(m, "e", "y", kBytes);
  m.Output("y");
  EXPECT_EQ(Chains(m), HasVectors() ? 1 : 0);
  ExpectSameBytes(m);
}

TEST(StreamQuantized, WhatOthersReadStays) {
  TestModel m = Start();  // the wide tensor is read twice, the narrow one is an output
  AddConv(m, "a", "b", {48, 24, 1, 1}, 1);
  AddConv(m, "b", "c", {48, 1, 3, 3}, 48);
  AddConv(m, "c", "d", {24, 48, 1, 1}, 1);
  AddConv(m, "b", "y", {24, 48, 1, 1}, 1);
  m.Output("c").Output("d").Output("y");
  EXPECT_EQ(Chains(m), 0);
  ExpectSameBytes(m);
}

TEST(StreamQuantized, OtherConvolutionsStay) {
  TestModel m = Start();
  AddConv(m, "a", "b", {48, 24, 3, 3}, 1);  // not pointwise
  AddConv(m, "b", "c", {48, 1, 3, 3}, 48);
  AddConv(m, "c", "y", {24, 48, 3, 3}, 1);
  m.Output("y");
  EXPECT_EQ(Chains(m), 0);
  ExpectSameBytes(m);
}

}  // namespace
}  // namespace tessera
