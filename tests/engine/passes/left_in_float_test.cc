// Quantised networks that fit no integer operator.
#include <gtest/gtest.h>

#include "tests/engine/passes/integer_test_util.h"

namespace tessera {
namespace {

// What does not fit is computed in float, and right.
class LeftInFloat : public testing::Test {
 protected:
  static void Expect(const TestModel& m, const Shape& shape = kShape) {
    EXPECT_EQ(CountSteps(m, "QuantizedConv", {}, shape), 0);
    EXPECT_LE(DifferenceFromFloat(m, shape), kOut.scale * 1.001);
  }
};

TEST_F(LeftInFloat, WeightsBeyondInt8) {
  TestModel m = Quantized();
  AddIntegers(m, "w_q", {4, 4, 1, 1}, Integers(16, 2, 150, 255), kUint8Type);
  m.Floats("w_scale", {}, {0.002f});
  AddIntegers(m, "w_zero", {}, {0}, kUint8Type);
  m.Node("DequantizeLinear", {"w_q", "w_scale", "w_zero"}, {"w"}).Node("Conv", {"a", "w"}, {"c"});
  Expect(EndWithBytes(m, "c"));
}

// QuantizedConv has plain loops for these.
TEST_F(LeftInFloat, GroupsOfSeveralChannels) {
  TestModel m = Quantized();
  AddIntegers(m, "w_q", {4, 2, 3, 3}, Integers(72, 2, -127, 127), kInt8Type);
  m.Floats("w_scale", {}, {0.002f});
  AddIntegers(m, "w_zero", {}, {0}, kInt8Type);
  m.Node("DequantizeLinear", {"w_q", "w_scale", "w_zero"}, {"w"});
  m.Node("Conv", {"a", "w"}, {"c"}, {{"group", std::int64_t{2}}});
  Expect(EndWithBytes(m, "c"));
}

TEST_F(LeftInFloat, FloatWeights) {
  TestModel m = Quantized();
  m.Noise("w", {4, 4, 1, 1}).Node("Conv", {"a", "w"}, {"c"});
  Expect(EndWithBytes(m, "c"));
}

TEST_F(LeftInFloat, WeightsAlongAnotherAxis) {
  TestModel m = Quantized();
  AddIntegers(m, "w_q", {4, 4, 1, 1}, Integers(16, 2, -127, 127), kInt8Type);
  m.Floats("w_scale", {4}, {0.002f, 0.003f, 0.004f, 0.005f});
  AddIntegers(m, "w_zero", {4}, {0, 0, 0, 0}, kInt8Type);
  m.Node("DequantizeLinear", {"w_q", "w_scale", "w_zero"}, {"w"}, {{"axis", std::int64_t{1}}});
  m.Node("Conv", {"a", "w"}, {"c"});
  Expect(EndWithBytes(m, "c"));
}

TEST_F(LeftInFloat, ActivationsPerChannel) {
  TestModel m;
  m.Input("x", {1, 4, -1, -1}).Floats("scale", {4}, {0.02f, 0.03f, 0.04f, 0.05f});
  AddIntegers(m, "zero", {4}, {100, 110, 120, 130}, kUint8Type);
  m.Node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
  m.Node("DequantizeLinear", {"q", "scale", "zero"}, {"a"});
  AddConv(m, "a", "c");
  Expect(EndWithBytes(m, "c"));
}

TEST_F(LeftInFloat, SixteenBits) {
  TestModel m(21);
  m.Input("x", {1, 4, -1, -1});
  AddBytes(m, "x", "a", {0.0001f, 30000, onnx::TensorProto::UINT16});
  AddConv(m, "a", "c");
  Expect(EndWithBytes(m, "c"));
}

TEST_F(LeftInFloat, OneDimension) {
  TestModel m;
  m.Input("x", {1, 4, -1});
  AddBytes(m, "x", "a", kIn);
  AddWeights(m, "w", {4, 4, 3});
  m.Node("Conv", {"a", "w"}, {"c"});
  Expect(EndWithBytes(m, "c"), {1, 4, 20});
}

TEST_F(LeftInFloat, PassSwitchedOff) {
  TestModel m = Quantized();
  AddConv(m, "a", "c");
  EndWithBytes(m, "c");
  EXPECT_EQ(CountSteps(m, "QuantizedConv", {.disabled_passes = {"use-integers"}}, kShape), 0);
  EXPECT_EQ(CountSteps(m, "QuantizedConv", {.reference = true}, kShape), 0);
  EXPECT_EQ(CountSteps(m, "QuantizedConv", {}, kShape), 1);
}

}  // namespace
}  // namespace tessera
