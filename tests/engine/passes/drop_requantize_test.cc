#include <gtest/gtest.h>

#include "tests/engine/passes/pass_test_util.h"
#include "tests/engine/passes/quantized_model.h"

namespace tessera {
namespace {

constexpr ByteScale kBytes{0.02f, 120}, kFromZero{0.02f, 0};
const Shape kShape{1, 4, 6, 8};

int Tables(const TestModel& m) { return CountSteps(m, "ByteTable", {}, kShape); }

// Exactly what there is without this pass and, but for one step, what float operators give.
void ExpectSameWithout(const TestModel& m) {
  const Tensor x = Tensor::FromVector<float>(kShape, TestModel::NoiseValues(192, 9, 2.5f));
  const auto run = [&](const SessionOptions& options) {
    std::vector<Tensor> outputs;
    m.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
    return std::move(outputs[0]);
  };
  const Tensor plain = run({.reference = true});
  OnEveryTarget([&] {
    const Tensor with = run({}), without = run({.disabled_passes = {"drop-requantize"}});
    for (std::int64_t i = 0; i < with.size(); ++i) {
      ASSERT_EQ(with.data<float>()[i], without.data<float>()[i]) << i;
      ASSERT_NEAR(with.data<float>()[i], plain.data<float>()[i], 0.0201f) << i;
    }
  });
}

// x -> Q -> DQ -> function -> Q -> DQ -> y.
TestModel Between(const std::string& type, const ByteScale& in, const ByteScale& out) {
  TestModel m;
  m.Input("x", {1, 4, -1, -1}).Output("y");
  AddBytes(m, "x", "a", in);
  if (!type.empty()) m.Node(type, {"a"}, {"b"});
  AddBytes(m, type.empty() ? "a" : "b", "y", out);
  return m;
}

// A convolution to bytes, a function, and bytes again.
TestModel AfterConv(const std::string& type, const ByteScale& in, const ByteScale& out) {
  TestModel m;
  m.Input("x", {1, 4, -1, -1}).Output("y").Floats("low", {}, {-0.5f}).Floats("high", {}, {0.5f});
  AddBytes(m, "x", "a", kBytes);
  AddWeights(m, "w", {4, 4, 1, 1});
  m.Node("Conv", {"a", "w"}, {"c"});
  AddBytes(m, "c", "d", in);
  std::vector<std::string> inputs = {"d"};
  if (type == "Clip") inputs.insert(inputs.end(), {"low", "high"});
  m.Node(type, inputs, {"e"});
  AddBytes(m, "e", "y", out);
  return m;
}

TEST(DropRequantize, EqualParametersVanish) {
  for (const TestModel& m : {Between("", kBytes, kBytes), Between("Relu", kFromZero, kFromZero)}) {
    EXPECT_EQ(Tables(m), 0);
    EXPECT_EQ(CountSteps(m, "ByteTable", {.disabled_passes = {"drop-requantize"}}, kShape), 1);
    EXPECT_EQ(CountSteps(m, "QuantizeLinear", {}, kShape), 1);
    ExpectSameWithout(m);
  }
}

TEST(DropRequantize, WhatChangesBytesStays) {
  for (const TestModel& m :
       {Between("", kBytes, {0.021f, 120}), Between("", kBytes, {0.02f, 121}),
        Between("Relu", kBytes, kBytes), Between("Sigmoid", kFromZero, kFromZero)}) {
    EXPECT_EQ(Tables(m), 1);
    ExpectSameWithout(m);
  }
}

TEST(DropRequantize, BoundsGoIntoTheConvolution) {
  for (const std::string type : {"Relu", "Clip"}) {
    const TestModel m = AfterConv(type, kBytes, kBytes);
    EXPECT_EQ(Tables(m), 0) << type;
    EXPECT_EQ(CountSteps(m, "ByteTable", {.disabled_passes = {"drop-requantize"}}, kShape), 1);
    ExpectSameWithout(m);
  }
  EXPECT_EQ(Tables(AfterConv("Relu", kBytes, {0.021f, 120})), 1);
  EXPECT_EQ(Tables(AfterConv("Sigmoid", kBytes, kBytes)), 1);
}

TEST(DropRequantize, BytesThatOthersReadKeepTheirBounds) {
  TestModel m = AfterConv("Relu", kBytes, kBytes);
  m.Node("Neg", {"d"}, {"z"}).Output("z");
  EXPECT_EQ(Tables(m), 1);
  ExpectSameWithout(m);
}

TEST(DropRequantize, InputThatIsOutputIsCopied) {
  TestModel m;
  m.Input("x", {1, 4, 6, 8}, kUint8Type).Output("y", kUint8Type);
  AddDequantize(m, "x", "a", kBytes);
  AddQuantize(m, "a", "y", kBytes);
  const Tensor x = Tensor::FromVector<std::uint8_t>(kShape, std::vector<std::uint8_t>(192, 77));
  std::vector<Tensor> outputs;
  m.Load()->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
  EXPECT_EQ(outputs[0].data<std::uint8_t>()[191], 77);
}

}  // namespace
}  // namespace tessera
