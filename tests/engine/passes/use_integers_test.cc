#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/passes/pass_test_util.h"
#include "tests/engine/passes/quantized_model.h"

namespace tessera {
namespace {

constexpr ByteScale kIn{0.02f, 120};
constexpr ByteScale kOut{0.03f, 100};
const Shape kShape{1, 4, 6, 8};

Tensor Run(const TestModel& m, const SessionOptions& options, const Shape& shape = kShape) {
  const Tensor x = Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 9, 2.5f));
  std::vector<Tensor> outputs;
  m.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
  return std::move(outputs[0]);
}

// The largest difference of an element from what plain float operators give. On every target.
double DifferenceFromFloat(const TestModel& m, const Shape& shape = kShape) {
  const Tensor plain = Run(m, {.reference = true}, shape);
  const auto [low, high] = std::ranges::minmax(plain.values<float>());
  EXPECT_LT(low, high);
  double largest = 0;
  OnEveryTarget([&] {
    const Tensor with = Run(m, {}, shape);
    ASSERT_EQ(with.shape(), plain.shape());
    for (std::int64_t i = 0; i < with.size(); ++i) {
      const double d = std::abs(with.data<float>()[i] - plain.data<float>()[i]);
      largest = std::max(largest, std::isnan(d) ? 1e30 : d);
    }
  });
  return largest;
}

// For what rounds once more or less than float operators do.
void ExpectWithinOneStep(const TestModel& m, float step = kOut.scale) {
  EXPECT_LE(DifferenceFromFloat(m), step * 1.001);
}
// For what computes the same numbers.
void ExpectSame(const TestModel& m) { EXPECT_EQ(DifferenceFromFloat(m), 0); }

int Steps(const TestModel& m, const std::string& type) { return CountSteps(m, type, {}, kShape); }

// x -> Q -> DQ -> a.
TestModel Quantized(const ByteScale& s = kIn) {
  TestModel m;
  m.Input("x", {1, 4, -1, -1});
  AddBytes(m, "x", "a", s);
  return m;
}

// v -> Q -> DQ -> y, the output.
TestModel& EndWithBytes(TestModel& m, const std::string& v, const ByteScale& s = kOut) {
  AddBytes(m, v, "y", s);
  return m.Output("y");
}

TestModel& AddConv(TestModel& m, const std::string& in, const std::string& out) {
  AddWeights(m, out + "_w", {4, 4, 3, 3});
  return m.Node("Conv", {in, out + "_w"}, {out}, {{"pads", Ints{1, 1, 1, 1}}});
}

TEST(UseIntegers, Conv) {
  for (const int type : {kUint8Type, kInt8Type}) {
    for (const bool per_channel : {true, false}) {
      for (const int weights : {kInt8Type, kUint8Type}) {
        for (const std::string bias : {"", "float", "int32"}) {
          const int offset = type == kInt8Type ? -128 : 0;
          TestModel m = Quantized({0.02f, 120 + offset, type});
          AddWeights(m, "w", {6, 4, 3, 3}, per_channel, weights);
          std::vector<std::string> inputs = {"a", "w"};
          if (bias == "float") m.Noise("b", {6});
          if (bias == "int32") {
            AddIntegers(m, "b_q", {6}, Integers(6, 3, -9000, 9000), onnx::TensorProto::INT32);
            m.Floats("b_scale", {}, {1e-4f}).Node("DequantizeLinear", {"b_q", "b_scale"}, {"b"});
          }
          if (!bias.empty()) inputs.push_back("b");
          m.Node("Conv", inputs, {"c"}, {{"strides", Ints{2, 1}}});
          EndWithBytes(m, "c", {0.03f, 100 + offset, type});
          SCOPED_TRACE(testing::Message() << type << per_channel << weights << bias);
          EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
          EXPECT_EQ(Steps(m, "Conv") + Steps(m, "FusedConv"), 0);
          EXPECT_EQ(Steps(m, "QuantizeLinear"), 1);
          EXPECT_EQ(Steps(m, "DequantizeLinear"), 1);
          ExpectWithinOneStep(m);
        }
      }
    }
  }
}

// A bias that was quantised with both scales is used as it is, however large.
TEST(UseIntegers, LargeIntegerBias) {
  TestModel m = Quantized();
  AddWeights(m, "w", {4, 4, 1, 1}, false);
  AddIntegers(m, "b_q", {4}, {1 << 30, (1 << 24) + 1, -(1 << 30), 7}, onnx::TensorProto::INT32);
  m.Floats("b_scale", {}, {0.02f * 0.002f}).Node("DequantizeLinear", {"b_q", "b_scale"}, {"b"});
  m.Node("Conv", {"a", "w", "b"}, {"y"}).Output("y");
  EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
  EXPECT_LE(DifferenceFromFloat(m), 0.01);  // beside 43000
}

TEST(UseIntegers, ConvWithActivation) {
  const std::vector<std::pair<std::string, std::vector<TestModel::Attribute>>> kActivations = {
      {"Relu", {}},
      {"LeakyRelu", {{"alpha", 0.2f}}},
      {"PRelu", {}},
      {"Clip", {}},
      {"HardSwish", {}}};
  for (const auto& [type, attributes] : kActivations) {
    TestModel m = Quantized();
    m.proto.mutable_opset_import(0)->set_version(14);
    AddConv(m, "a", "c").Noise("slope", {4, 1, 1}).Floats("low", {}, {-1}).Floats("high", {}, {2});
    std::vector<std::string> inputs = {"c"};
    if (type == "PRelu") inputs.emplace_back("slope");
    if (type == "Clip") inputs.insert(inputs.end(), {"low", "high"});
    m.Node(type, inputs, {"d"}, attributes);
    EndWithBytes(m, "d");
    SCOPED_TRACE(type);
    EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
    EXPECT_EQ(Steps(m, type), 0);
    EXPECT_EQ(Steps(m, "QuantizeLinear"), 1);
    ExpectWithinOneStep(m);
  }
}

TEST(UseIntegers, ConvWithAddend) {
  for (const bool sum_first : {true, false}) {
    TestModel m = Quantized();
    AddConv(m, "a", "c").Node("Relu", {"c"}, {"d"});
    m.Node("Add",
           sum_first ? std::vector<std::string>{"d", "a"} : std::vector<std::string>{"a", "d"},
           {"e"});
    EndWithBytes(m, "e");
    EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
    EXPECT_EQ(Steps(m, "Add"), 0);
    EXPECT_EQ(Steps(m, "QuantizeLinear"), 1);
    ExpectWithinOneStep(m);
  }
}

TEST(UseIntegers, ConvWithAddendToFloat) {
  TestModel m = Quantized();
  AddConv(m, "a", "c").Node("Add", {"c", "a"}, {"y"}).Output("y");
  EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
  EXPECT_EQ(Steps(m, "Add") + Steps(m, "DequantizeLinear"), 0);
  EXPECT_LE(DifferenceFromFloat(m), 1e-5);
}

// The operator has no activation after its addend.
TEST(UseIntegers, ConvWithAddendThenActivation) {
  for (const std::string type : {"Relu", "HardSwish"}) {
    TestModel m = Quantized();
    m.proto.mutable_opset_import(0)->set_version(14);
    AddConv(m, "a", "c").Node("Add", {"c", "a"}, {"d"}).Node(type, {"d"}, {"e"});
    EndWithBytes(m, "e");
    SCOPED_TRACE(type);
    EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
    EXPECT_EQ(Steps(m, "Add"), 0);
    EXPECT_EQ(Steps(m, "ByteTable"), type == "Relu" ? 1 : 0);
    EXPECT_EQ(Steps(m, "HardSwish"), type == "HardSwish" ? 1 : 0);
    ExpectWithinOneStep(m);
  }
}

TEST(UseIntegers, ConvToFloat) {
  TestModel m = Quantized();
  AddConv(m, "a", "c").Node("Relu", {"c"}, {"d"}).Node("Sigmoid", {"d"}, {"y"}).Output("y");
  EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
  EXPECT_EQ(Steps(m, "Relu"), 0);
  EXPECT_EQ(Steps(m, "Sigmoid"), 1);
  EXPECT_LE(DifferenceFromFloat(m), 1e-5);
}

TEST(UseIntegers, FloatResultThatOthersReadStays) {
  TestModel m = Quantized();
  AddConv(m, "a", "c");
  AddBytes(m, "c", "d", kOut);
  m.Node("Add", {"c", "d"}, {"y"}).Output("y");
  EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
  EXPECT_EQ(Steps(m, "QuantizeLinear"), 2);
  ExpectWithinOneStep(m);
}

TEST(UseIntegers, AllReadersOfBytes) {
  TestModel m = Quantized();
  AddConv(m, "a", "c");
  AddConv(m, "a", "d");
  AddBytes(m, "c", "e", kOut);
  AddBytes(m, "d", "f", kOut);
  m.Node("Sub", {"e", "f"}, {"g"}).Node("Add", {"g", "a"}, {"y"}).Output("y");
  EXPECT_EQ(Steps(m, "QuantizedConv"), 2);
  EXPECT_EQ(Steps(m, "Conv"), 0);
  ExpectWithinOneStep(m, 2 * kOut.scale);
}

TEST(UseIntegers, Functions) {
  for (const std::string type : {"Sigmoid", "HardSwish", "Tanh", "Relu", "Exp"}) {
    TestModel m = Quantized();
    m.proto.mutable_opset_import(0)->set_version(14);
    m.Node(type, {"a"}, {"b"});
    EndWithBytes(m, "b", {0.011f, 30});
    SCOPED_TRACE(type);
    EXPECT_EQ(Steps(m, "ByteTable"), 1);
    EXPECT_EQ(Steps(m, type), 0);
    ExpectSame(m);
  }
}

TEST(UseIntegers, FunctionOfSeveralNodes) {
  TestModel m = Quantized();
  m.Floats("half", {}, {0.5f}).Node("Sigmoid", {"a"}, {"s"}).Node("Mul", {"a", "s"}, {"b"});
  m.Node("Sub", {"b", "half"}, {"c"});
  EndWithBytes(m, "c");
  EXPECT_EQ(Steps(m, "ByteTable"), 1);
  ExpectSame(m);
}

TEST(UseIntegers, NoFunction) {
  TestModel m = Quantized();
  m.Noise("other", {4, 1, 1}).Node("Mul", {"a", "other"}, {"b"});
  EndWithBytes(m, "b");
  EXPECT_EQ(Steps(m, "ByteTable"), 0);
  ExpectSame(m);
}

TEST(UseIntegers, Add) {
  for (const std::string bound : {"", "Relu", "Clip"}) {
    TestModel m = Quantized();
    AddBytes(m, "x", "b", {0.025f, 90});
    m.Floats("low", {}, {-1}).Floats("high", {}, {2}).Node("Add", {"a", "b"}, {"c"});
    if (bound == "Relu") m.Node("Relu", {"c"}, {"d"});
    if (bound == "Clip") m.Node("Clip", {"c", "low", "high"}, {"d"});
    EndWithBytes(m, bound.empty() ? "c" : "d");
    SCOPED_TRACE(bound);
    EXPECT_EQ(Steps(m, "QuantizedAdd"), 1);
    EXPECT_EQ(Steps(m, "Add") + Steps(m, "ByteTable"), 0);
    ExpectWithinOneStep(m);
  }
}

TEST(UseIntegers, AddOfOtherShapesStaysFloat) {
  TestModel m = Quantized();
  m.Node("GlobalMaxPool", {"a"}, {"p"});
  AddBytes(m, "p", "b", kIn);
  m.Node("Add", {"a", "b"}, {"c"});
  EndWithBytes(m, "c");
  EXPECT_EQ(Steps(m, "QuantizedAdd"), 0);
  ExpectSame(m);
}

TEST(UseIntegers, GateOfChannels) {
  TestModel m = Quantized();
  m.Noise("w", {4, 4, 1, 1}).Node("GlobalAveragePool", {"a"}, {"p"});
  m.Node("Conv", {"p", "w"}, {"c"}).Node("Sigmoid", {"c"}, {"g"}).Node("Mul", {"a", "g"}, {"d"});
  EndWithBytes(m, "d");
  EXPECT_EQ(Steps(m, "QuantizedGlobalAverage"), 1);
  EXPECT_EQ(Steps(m, "QuantizedScale"), 1);
  EXPECT_EQ(Steps(m, "Mul") + Steps(m, "GlobalAveragePool"), 0);
  ExpectWithinOneStep(m);
}

TEST(UseIntegers, GateOfPixelsStaysFloat) {
  TestModel m = Quantized();
  m.Noise("w", {1, 4, 1, 1}).Node("Conv", {"x", "w"}, {"g"}).Node("Mul", {"a", "g"}, {"d"});
  EndWithBytes(m, "d");
  EXPECT_EQ(Steps(m, "QuantizedScale"), 0);
  ExpectWithinOneStep(m);
}

TEST(UseIntegers, Movers) {
  struct Case {
    std::string type;
    std::vector<std::string> operands;
    std::vector<TestModel::Attribute> attributes;
  };
  const Case kCases[] = {
      {"DepthToSpace", {}, {{"blocksize", std::int64_t{2}}}},
      {"MaxPool", {}, {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}},
      {"Resize",
       {"", "sizes"},
       {{"mode", std::string("nearest")},
        {"coordinate_transformation_mode", std::string("asymmetric")},
        {"nearest_mode", std::string("floor")}}},
      {"Transpose", {}, {{"perm", Ints{0, 2, 3, 1}}}},
      {"Reshape", {"shape"}, {}},
      {"Slice", {"starts", "ends", "axes"}, {}},
  };
  for (const Case& c : kCases) {
    for (const ByteScale& out : {kIn, kOut}) {
      TestModel m = Quantized();
      m.Ints("shape", {1, 8, 3, 8}).Ints("starts", {1}).Ints("ends", {5}).Ints("axes", {2});
      m.Floats("sizes", {4}, {1, 1, 2, 2});
      std::vector<std::string> inputs = {"a"};
      inputs.insert(inputs.end(), c.operands.begin(), c.operands.end());
      m.Node(c.type, inputs, {"b"}, c.attributes);
      EndWithBytes(m, "b", out);
      SCOPED_TRACE(c.type);
      EXPECT_EQ(Steps(m, "QuantizeLinear"), 1);
      EXPECT_EQ(Steps(m, "DequantizeLinear"), 1);
      EXPECT_EQ(Steps(m, "ByteTable"), out.scale == kIn.scale ? 0 : 1);
      ExpectSame(m);
    }
  }
}

TEST(UseIntegers, ResizeThatComputesStaysFloat) {
  TestModel m = Quantized();
  m.Floats("sizes", {4}, {1, 1, 2, 2});
  m.Node("Resize", {"a", "", "sizes"}, {"b"}, {{"mode", std::string("linear")}});
  EndWithBytes(m, "b");
  EXPECT_EQ(Steps(m, "QuantizeLinear"), 2);
  ExpectWithinOneStep(m);
}

// Inputs of other parameters get those of the output; a float input is rounded before.
TEST(UseIntegers, Concat) {
  TestModel m = Quantized();
  AddBytes(m, "x", "b", kOut);
  m.Node("Neg", {"x"}, {"n"});
  m.Node("Concat", {"a", "b", "n", "a"}, {"c"}, {{"axis", std::int64_t{1}}});
  EndWithBytes(m, "c");
  EXPECT_EQ(Steps(m, "ByteTable"), 1);
  EXPECT_EQ(Steps(m, "QuantizeLinear"), 3);
  ExpectSame(m);
}

TEST(UseIntegers, Split) {
  TestModel m = Quantized();
  m.Ints("sizes", {1, 3}).Node("Split", {"a", "sizes"}, {"b", "c"}, {{"axis", std::int64_t{1}}});
  AddBytes(m, "b", "d", kIn);
  AddBytes(m, "c", "e", kIn);
  m.Node("Add", {"d", "e"}, {"y"}).Output("y");
  EXPECT_EQ(Steps(m, "Split"), 1);
  EXPECT_EQ(Steps(m, "QuantizeLinear"), 1);
  ExpectSame(m);
}

TEST(UseIntegers, DepthToSpaceWithShortcut) {
  TestModel m;
  m.Input("x", {1, 4, -1, -1}).Floats("sizes", {4}, {1, 1, 2, 2});
  AddBytes(m, "x", "a", kIn);
  AddWeights(m, "w", {16, 4, 3, 3});
  m.Node("Conv", {"a", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  AddBytes(m, "c", "d", kOut);
  m.Node("DepthToSpace", {"d"}, {"e"}, {{"blocksize", std::int64_t{2}}});
  m.Node("Resize", {"x", "", "sizes"}, {"f"},
         {{"mode", std::string("nearest")},
          {"coordinate_transformation_mode", std::string("asymmetric")},
          {"nearest_mode", std::string("floor")}});
  m.Node("Add", {"e", "f"}, {"y"}).Output("y");
  EXPECT_EQ(Steps(m, "QuantizedDepthToSpace"), 1);
  EXPECT_EQ(Steps(m, "Add") + Steps(m, "Resize") + Steps(m, "DequantizeLinear"), 0);
  ExpectWithinOneStep(m);
}

TEST(UseIntegers, MatMul) {
  TestModel m = Quantized();
  m.Node("Transpose", {"x"}, {"t"}, {{"perm", Ints{0, 1, 3, 2}}});
  AddBytes(m, "t", "b", kIn);
  m.Node("MatMul", {"a", "b"}, {"c"});
  EndWithBytes(m, "c", {0.2f, 128});
  EXPECT_EQ(Steps(m, "QLinearMatMul"), 1);
  EXPECT_EQ(Steps(m, "MatMul"), 0);
  ExpectWithinOneStep(m, 0.2f);
}

// Bounds between the values of bytes, and such that others read as float.
TEST(UseIntegers, ReluReadAsFloat) {
  TestModel m = Quantized();
  m.Node("Relu", {"a"}, {"r"}).Node("GlobalAveragePool", {"r"}, {"p"});
  m.Node("Mul", {"r", "p"}, {"b"});
  EndWithBytes(m, "b");
  EXPECT_EQ(Steps(m, "QuantizedGlobalAverage"), 1);
  EXPECT_EQ(Steps(m, "QuantizedScale"), 1);
  EXPECT_EQ(Steps(m, "Relu"), 0);
  ExpectWithinOneStep(m);
}

TEST(UseIntegers, QLinearConv) {
  for (const int type : {kUint8Type, kInt8Type}) {
    const int offset = type == kInt8Type ? -128 : 0;
    TestModel m;
    m.Input("x", {1, 4, -1, -1});
    const ByteScale in{0.02f, 120 + offset, type}, out{0.03f, 100 + offset, type};
    AddQuantize(m, "x", "a", in);
    AddIntegers(m, "w", {4, 1, 3, 3}, Integers(36, 5, -127, 127), kInt8Type);
    m.Floats("ws", {4}, {0.01f, 0.011f, 0.012f, 0.013f});
    AddIntegers(m, "wz", {4}, {0, 0, 0, 0}, kInt8Type);
    AddIntegers(m, "b", {4}, {100, -2000, 30, 7}, onnx::TensorProto::INT32);
    std::vector<std::string> inputs = AddParameters(m, "a", "in", in);
    for (const char* name : {"w", "ws", "wz"}) inputs.emplace_back(name);
    for (const std::string& name : AddParameters(m, "", "out", out)) {
      if (!name.empty()) inputs.push_back(name);
    }
    inputs.emplace_back("b");
    m.Node("QLinearConv", inputs, {"c"}, {{"group", std::int64_t{4}}, {"pads", Ints{1, 1, 1, 1}}});
    m.Node("MaxPool", {"c"}, {"d"}, {{"kernel_shape", Ints{2, 2}}});
    AddDequantize(m, "d", "y", out);
    m.Output("y");
    EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
    EXPECT_EQ(Steps(m, "QuantizeLinear"), 1);
    ExpectSame(m);
  }
}

// Of int8 inputs and outputs.
TEST(UseIntegers, SignedEnds) {
  TestModel m;
  m.Input("x", {1, 4, 6, 8}, kInt8Type).Output("y", kInt8Type);
  AddDequantize(m, "x", "a", {0.02f, -8, kInt8Type});
  AddConv(m, "a", "c");
  AddQuantize(m, "c", "y", {0.03f, -28, kInt8Type});
  Tensor x(DType::kInt8, kShape);
  const std::vector<int> values = Integers(static_cast<std::size_t>(x.size()), 4, -128, 127);
  std::ranges::copy(values, x.data<std::int8_t>());
  const auto run = [&](const SessionOptions& options, RunProfile* profile) {
    std::vector<Tensor> outputs;
    m.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs, nullptr, profile);
    return std::move(outputs[0]);
  };
  RunProfile profile;
  const Tensor with = run({}, &profile), plain = run({.reference = true}, nullptr);
  EXPECT_EQ(std::ranges::count(profile.steps, "QuantizedConv", &RunProfile::Step::type), 1);
  for (std::int64_t i = 0; i < with.size(); ++i) {
    EXPECT_LE(std::abs(with.data<std::int8_t>()[i] - plain.data<std::int8_t>()[i]), 1) << i;
  }
}

// Tiles need as much of the input as before.
TEST(UseIntegers, ReceptiveFieldStays) {
  TestModel m = Quantized();
  AddConv(m, "a", "c").Node("Relu", {"c"}, {"d"});
  AddBytes(m, "d", "e", kOut);
  AddConv(m, "e", "f").Node("Add", {"f", "a"}, {"g"});
  AddBytes(m, "g", "h", kOut);
  m.Node("Sigmoid", {"h"}, {"i"}).Node("Add", {"h", "a"}, {"j"});
  AddBytes(m, "i", "k", kOut);
  AddBytes(m, "j", "l", kOut);
  m.Node("Concat", {"k", "l"}, {"n"}, {{"axis", std::int64_t{1}}});
  AddBytes(m, "n", "o", kOut);
  m.Node("DepthToSpace", {"o"}, {"y"}, {{"blocksize", std::int64_t{2}}}).Output("y");
  const std::vector<Shape> shapes = {{1, 4, 32, 32}};
  const auto field = m.Load()->FindReceptiveField(shapes);
  const auto plain = m.Load({.reference = true})->FindReceptiveField(shapes);
  ASSERT_TRUE(field && plain);
  EXPECT_EQ(Steps(m, "QuantizedDepthToSpace"), 1);
  EXPECT_EQ(Steps(m, "QuantizedAdd"), 1);
  for (const auto axis : {&ReceptiveField::height, &ReceptiveField::width}) {
    const auto &a = (*field).*axis, &b = (*plain).*axis;
    EXPECT_EQ(a.scale_num, b.scale_num);
    EXPECT_EQ(a.scale_den, b.scale_den);
    EXPECT_EQ(a.before, b.before);
    EXPECT_EQ(a.after, b.after);
    EXPECT_EQ(a.alignment, b.alignment);
  }
}

// A left out operand is an error, not the end of the program.
TEST(UseIntegers, MissingOperand) {
  TestModel m = Quantized();
  m.Node("Concat", {"a", ""}, {"b"}, {{"axis", std::int64_t{1}}});
  EndWithBytes(m, "b");
  EXPECT_THROW(Steps(m, "Concat"), Error);
}

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

// Of an input that was 0 for all samples, for which quantisers write a tiny scale.
TEST_F(LeftInFloat, BiasBeyondInt32) {
  TestModel m = Quantized({1e-12f, 120});
  AddWeights(m, "w", {4, 4, 1, 1});
  m.Noise("b", {4}).Node("Conv", {"a", "w", "b"}, {"y"}).Output("y");
  Expect(m);
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
