// Graphs at the limits of what becomes integer operators, and beyond.
#include <gtest/gtest.h>

#include <limits>

#include "tests/engine/passes/integer_test_util.h"

namespace tessera {
namespace {

using Names = std::vector<std::string>;

std::vector<float> AsReals(const Tensor& t) {
  std::vector<float> values(static_cast<std::size_t>(t.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = t.dtype() == DType::kFloat32 ? t.data<const float>()[i]
                : t.dtype() == DType::kInt8  ? t.data<const std::int8_t>()[i]
                                             : t.data<const std::uint8_t>()[i];
  }
  return values;
}

// All outputs, whatever their types, are those of plain float operators but for `tolerance`. On
// every target.
void ExpectSameOutputsAsFloat(const TestModel& m, const std::vector<NamedView>& inputs,
                              double tolerance) {
  std::vector<Tensor> plain, with;
  m.Load({.reference = true})->Run(inputs, plain);
  OnEveryTarget([&] {
    m.Load()->Run(inputs, with);
    ASSERT_EQ(with.size(), plain.size());
    for (std::size_t k = 0; k < with.size(); ++k) {
      ASSERT_EQ(with[k].shape(), plain[k].shape()) << k;
      ASSERT_EQ(with[k].dtype(), plain[k].dtype()) << k;
      const std::vector<float> a = AsReals(with[k]), b = AsReals(plain[k]);
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_NEAR(a[i], b[i], tolerance) << k << " " << i;
      }
    }
  });
}

Tensor NoiseTensor(const Shape& shape, float scale = 2.5f) {
  return Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 9, scale));
}

void ExpectSameOutputsAsFloat(const TestModel& m, double tolerance, const Shape& shape = kShape) {
  const Tensor x = NoiseTensor(shape);
  ExpectSameOutputsAsFloat(m, {{"x", x.view()}}, tolerance);
}

// The upper bound wins.
TEST(UseIntegersLimits, ClipOfCrossedBounds) {
  for (const std::string of : {"conv", "function", "add", "addend"}) {
    TestModel m = Quantized();
    m.Floats("low", {}, {2}).Floats("high", {}, {-1});
    AddBytes(m, "x", "b", {0.025f, 90});
    if (of == "conv" || of == "addend") AddConv(m, "a", "c");
    if (of == "add") m.Node("Add", {"a", "b"}, {"c"});
    if (of == "addend") m.Node("Add", {"c", "b"}, {"s"});
    m.Node("Clip", {of == "function" ? "a" : of == "addend" ? "s" : "c", "low", "high"}, {"d"});
    AddBytes(m, "d", "e", kOut);
    m.Node("Add", {"e", "x"}, {"y"}).Output("y");
    SCOPED_TRACE(of);
    ExpectSame(m);
  }
}

TEST(UseIntegersLimits, ClipOfMissingBounds) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& [low, high] : std::vector<std::pair<float, float>>{
           {-inf, inf}, {-1, inf}, {-inf, 1}, {-3e38f, 3e38f}, {0, 6}, {0, inf}, {9, 10}}) {
    for (const bool inputs : {true, false}) {
      for (const bool conv : {true, false}) {
        TestModel m(inputs ? 11 : 10);
        m.Input("x", {1, 4, -1, -1});
        AddBytes(m, "x", "a", kIn);
        if (conv) {
          AddWeights(m, "w", {4, 4, 1, 1}, false);
          m.proto.mutable_graph()->mutable_node()->rbegin()->clear_attribute();
        }
        m.Node(conv ? "Conv" : "Identity", conv ? Names{"a", "w"} : Names{"a"}, {"c"});
        std::vector<std::string> names = {"c"};
        std::vector<TestModel::Attribute> attributes;
        if (inputs) {
          m.Floats("low", {}, {low}).Floats("high", {1}, {high});
          names.push_back(std::isinf(low) ? "" : "low");
          if (!std::isinf(high)) names.push_back("high");
        } else {
          if (!std::isinf(low)) attributes.emplace_back("min", low);
          if (!std::isinf(high)) attributes.emplace_back("max", high);
        }
        m.Node("Clip", names, {"d"}, attributes);
        AddBytes(m, "d", "e", kOut);
        m.Node("Add", {"e", "x"}, {"y"}).Output("y");
        SCOPED_TRACE(testing::Message() << low << " " << high << inputs << conv);
        EXPECT_EQ(Steps(m, "QuantizedConv"), conv ? 1 : 0);
        EXPECT_EQ(Steps(m, "Clip"), 0);
        ExpectWithinOneStep(m);
      }
    }
  }
}

// Both outputs of the graph are the same bytes.
TEST(UseIntegersLimits, OutputsThatAreOneValue) {
  for (const int type : {kUint8Type, kInt8Type}) {
    TestModel m = Quantized();
    const ByteScale s{0.03f, 5, type};
    AddConv(m, "a", "c");
    AddQuantize(m, "c", "y", s);
    AddQuantize(m, "c", "z", s);
    AddDequantize(m, "y", "d", s);
    AddQuantize(m, "d", "u", s);
    m.Output("y", type).Output("z", type).Output("u", type);
    ExpectSameOutputsAsFloat(m, 1);
  }
}

// An input that is an output is still copied.
TEST(UseIntegersLimits, InputThatIsAnOutput) {
  for (const int type : {kUint8Type, kInt8Type}) {
    TestModel m;
    m.Input("x", {1, 4, -1, -1}, type);
    AddDequantize(m, "x", "a", {0.02f, 7, type});
    AddQuantize(m, "a", "y", {0.02f, 7, type});
    AddQuantize(m, "a", "z", {0.02f, 7, type});
    m.Node("Relu", {"a"}, {"r"});
    AddQuantize(m, "r", "u", {0.02f, 7, type});
    m.Output("y", type).Output("z", type).Output("u", type);
    Tensor x(type == kInt8Type ? DType::kInt8 : DType::kUint8, kShape);
    const std::vector<int> values = Integers(static_cast<std::size_t>(x.size()), 4, 0, 255);
    std::ranges::copy(values, x.data<std::uint8_t>());
    ExpectSameOutputsAsFloat(m, {{"x", x.view()}}, 0);
  }
}

// Whatever is in the middle of a pattern, too.
TEST(UseIntegersLimits, OutputsInsidePatterns) {
  TestModel m = Quantized();
  AddConv(m, "a", "c").Node("Relu", {"c"}, {"d"}).Node("Add", {"d", "a"}, {"e"});
  AddBytes(m, "e", "f", kOut);
  m.Node("Add", {"f", "a"}, {"g"}).Node("Relu", {"g"}, {"h"});
  AddBytes(m, "h", "i", kOut);
  m.Node("MaxPool", {"i"}, {"j"}, {{"kernel_shape", Ints{2, 2}}});
  AddBytes(m, "j", "k", kOut);
  for (const char* name : {"a", "c", "d", "e", "f", "g", "h", "i", "j", "k"}) m.Output(name);
  m.Output("f_q", kUint8Type);
  ExpectSameOutputsAsFloat(m, 1.001);
}

// The values of two inputs have one declared shape, but one of them may be broadcast.
TEST(UseIntegersLimits, AddThatMayBroadcast) {
  for (const bool conv : {true, false}) {
    TestModel m = Quantized();
    m.Input("z", {1, 4, -1, -1});
    AddBytes(m, "z", "b", {0.025f, 90});
    if (conv) AddConv(m, "a", "c");
    m.Node("Add", {conv ? "c" : "a", "b"}, {"d"});
    EndWithBytes(m, "d");
    for (const Shape& shape : {kShape, Shape{1, 4, 1, 1}, Shape{1, 4, 6, 1}}) {
      const Tensor x = NoiseTensor(kShape), z = NoiseTensor(shape, 1);
      SCOPED_TRACE(testing::Message() << conv << shape);
      ExpectSameOutputsAsFloat(m, {{"x", x.view()}, {"z", z.view()}}, kOut.scale * 1.001);
    }
  }
}

// A channel of (almost) no weight has units in which its bias is beyond int32.
TEST(UseIntegersLimits, BiasBeyondInt32) {
  for (const std::string type : {"float", "int32"}) {
    TestModel m = Quantized();
    AddIntegers(m, "w_q", {4, 4, 1, 1}, Integers(16, 2, -127, 127), kInt8Type);
    m.Floats("w_scale", {4}, {0.002f, 1e-12f, 3e-9f, 1e-30f});
    AddIntegers(m, "w_zero", {4}, {0, 0, 0, 0}, kInt8Type);
    m.Node("DequantizeLinear", {"w_q", "w_scale", "w_zero"}, {"w"}, {{"axis", std::int64_t{0}}});
    if (type == "float") {
      m.Floats("b", {4}, {0.3f, 0.5f, -0.25f, 1});
    } else {
      AddIntegers(m, "b_q", {4}, {7, 2147483647, -2147483647, 30}, onnx::TensorProto::INT32);
      m.Floats("b_scale", {4}, {0.02f * 0.002f, 0.02f * 1e-12f, 0.02f * 3e-9f, 0.02f * 1e-30f});
      m.Node("DequantizeLinear", {"b_q", "b_scale"}, {"b"}, {{"axis", std::int64_t{0}}});
    }
    m.Node("Conv", {"a", "w", "b"}, {"y"}).Output("y");
    SCOPED_TRACE(type);
    EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
    EXPECT_LE(DifferenceFromFloat(m), 1e-5);
  }
}

TEST(UseIntegersLimits, MatMulOfVectors) {
  for (const bool left : {true, false}) {
    TestModel m;
    m.Input("x", {4});
    AddBytes(m, "x", "a", kIn);
    m.Noise("n", {4, 4}).Node("Mul", {"x", "n"}, {"t"});
    AddBytes(m, "t", "b", kIn);
    m.Node("MatMul", left ? Names{"a", "b"} : Names{"b", "a"}, {"c"});
    EndWithBytes(m, "c", {0.2f, 128});
    ExpectSameOutputsAsFloat(m, 0.2001, {4});
  }
}

// Exporters write parameters in many ways.
TEST(UseIntegersLimits, ParametersThatNodesMake) {
  for (const std::string how : {"Identity", "Cast", "Constant", "vector"}) {
    TestModel m;
    m.Input("x", {1, 4, -1, -1});
    const Ints one = how == "vector" ? Ints{1} : Ints{};
    m.Floats("s0", one, {0.02f});
    AddIntegers(m, "z0", one, {120}, how == "Cast" ? onnx::TensorProto::INT32 : kUint8Type);
    std::string scale = "s0", zero = "z0";
    if (how == "Identity") {
      m.Node("Identity", {"s0"}, {"s"}).Node("Identity", {"z0"}, {"z"});
      scale = "s", zero = "z";
    }
    if (how == "Cast") {
      m.Node("Cast", {"z0"}, {"z"}, {{"to", std::int64_t{kUint8Type}}});
      zero = "z";
    }
    if (how == "Constant") {
      m.Node("Constant", {}, {"s"}, {{"value_float", 0.02f}});
      scale = "s";
    }
    m.Node("QuantizeLinear", {"x", scale, zero}, {"q"});
    m.Node("DequantizeLinear", {"q", scale, zero}, {"a"});
    AddConv(m, "a", "c");
    EndWithBytes(m, "c");
    SCOPED_TRACE(how);
    EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
    EXPECT_EQ(Steps(m, "QuantizeLinear"), 1);
    ExpectWithinOneStep(m);
  }
}

// Before version 4 of the format, initialisers are inputs, too.
TEST(UseIntegersLimits, InitialisersAmongTheInputs) {
  TestModel m = Quantized();
  m.proto.set_ir_version(3);
  AddConv(m, "a", "c");
  EndWithBytes(m, "c");
  for (const auto& t : m.proto.graph().initializer()) {
    auto* input = m.proto.mutable_graph()->add_input();
    input->set_name(t.name());
    input->mutable_type()->mutable_tensor_type()->set_elem_type(t.data_type());
    for (const std::int64_t d : t.dims()) {
      input->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(d);
    }
  }
  EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
  ExpectWithinOneStep(m);
}

TEST(UseIntegersLimits, AttributesOfConv) {
  const std::vector<std::vector<TestModel::Attribute>> kCases = {
      {{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}},
      {{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2, 2}}},
      {{"auto_pad", std::string("VALID")}},
      {{"dilations", Ints{2, 1}}, {"pads", Ints{0, 1, 2, 0}}},
      {{"group", std::int64_t{2}}, {"kernel_shape", Ints{3, 3}}},
      {{"group", std::int64_t{4}}, {"dilations", Ints{1, 2}}, {"pads", Ints{1, 2, 1, 2}}},
  };
  for (const auto& attributes : kCases) {
    std::int64_t groups = 1;
    for (const auto& [name, value] : attributes) {
      if (name == "group") groups = std::get<std::int64_t>(value);
    }
    for (const bool to_float : {true, false}) {
      TestModel m = Quantized();
      AddWeights(m, "w", {8, 4 / groups, 3, 3});
      m.Node("Conv", {"a", "w"}, {to_float ? "y" : "c"}, attributes);
      if (to_float) {
        m.Output("y");
      } else {
        EndWithBytes(m, "c");
      }
      EXPECT_EQ(Steps(m, "QuantizedConv"), groups == 1 ? 1 : 0);
      ExpectWithinOneStep(m, to_float ? 1e-5f : kOut.scale);
    }
  }
}

TEST(UseIntegersLimits, SlopesOfPRelu) {
  const Shape square{1, 4, 4, 4};
  for (const Ints& dims : {Ints{}, Ints{1}, Ints{4, 1, 1}, Ints{1, 4, 1, 1}, Ints{4}, Ints{4, 1},
                           Ints{1, 1, 4}, Ints{4, 4, 4}}) {
    for (const bool conv : {true, false}) {
      TestModel m = Quantized();
      if (conv) AddConv(m, "a", "c");
      m.Noise("slope", dims).Node("PRelu", {conv ? "c" : "a", "slope"}, {"d"});
      EndWithBytes(m, "d");
      SCOPED_TRACE(testing::PrintToString(dims));
      ExpectSameOutputsAsFloat(m, kOut.scale * 1.001, square);
    }
  }
}

TEST(UseIntegersLimits, EveryMover) {
  struct Case {
    std::string type;
    std::vector<std::string> operands;
    std::vector<TestModel::Attribute> attributes;
    int opset = 13;
  };
  const std::int64_t one = 1;
  const Case kCases[] = {
      {"Expand", {"wide"}, {}},
      {"Tile", {"repeats"}, {}},
      {"Flatten", {}, {{"axis", one * 2}}},
      {"Flatten", {}, {{"axis", -one}}},
      {"Gather", {"rows"}, {{"axis", one * 2}}},
      {"SpaceToDepth", {}, {{"blocksize", one * 2}}},
      {"DepthToSpace", {}, {{"blocksize", one * 2}, {"mode", std::string("CRD")}}},
      {"DepthToSpace", {}, {{"blocksize", one * 2}}, 11},
      {"Squeeze", {"first"}, {}},
      {"Squeeze", {}, {{"axes", Ints{0}}}, 11},
      {"Unsqueeze", {"first"}, {}},
      {"Unsqueeze", {}, {{"axes", Ints{0}}}, 11},
      {"Upsample", {"scales"}, {{"mode", std::string("nearest")}}, 9},
      {"Resize", {"scales"}, {{"mode", std::string("nearest")}}, 10},
      {"Resize", {"", "scales"}, {}, 13},
      {"Resize", {"", "scales"}, {}, 19},
      {"Slice", {"first", "rows", "first", "rows2"}, {}},
      {"Transpose", {}, {}},
      {"Concat", {"a"}, {{"axis", -one}}},
      {"MaxPool", {}, {{"kernel_shape", Ints{2, 2}}, {"ceil_mode", one}, {"strides", Ints{3, 3}}}},
      {"MaxPool", {}, {{"kernel_shape", Ints{2, 2}}}, 11},
      {"MaxPool",
       {},
       {{"kernel_shape", Ints{3, 3}},
        {"auto_pad", std::string("SAME_LOWER")},
        {"dilations", Ints{2, 2}}}},
  };
  for (const Case& c : kCases) {
    for (const bool is_signed : {true, false}) {
      for (const bool inner : {true, false}) {  // between DQ and Q, or of bytes themselves
        if (c.opset < 10 || (inner && c.type == "MaxPool" && c.opset < 12)) continue;
        TestModel m(c.opset);
        m.Input("x", {1, 4, -1, -1});
        const ByteScale s{0.02f, is_signed ? -8 : 120, is_signed ? kInt8Type : kUint8Type};
        m.Ints("wide", {2, 4, 6, 8}).Ints("repeats", {1, 2, 1, 3}).Ints("first", {0});
        m.Ints("rows", {1}).Ints("rows2", {1}).Floats("scales", {4}, {1, 1, 2, 2});
        std::vector<std::string> inputs = {inner ? "a_q" : "a"};
        for (const std::string& name : c.operands) inputs.push_back(name == "a" ? inputs[0] : name);
        AddQuantize(m, "x", "a_q", s);
        if (inner) {
          m.Node(c.type, inputs, {"b"}, c.attributes);
          AddDequantize(m, "b", "y", s);
          m.Output("y");
        } else {
          AddDequantize(m, "a_q", "a", s);
          m.Node(c.type, inputs, {"b"}, c.attributes);
          EndWithBytes(m, "b", s);
        }
        SCOPED_TRACE(testing::Message() << c.type << c.opset << is_signed << inner);
        ExpectSameOutputsAsFloat(m, 0);
      }
    }
  }
}

TEST(UseIntegersLimits, NoImages) {
  TestModel m = Quantized();
  AddConv(m, "a", "c").Node("Relu", {"c"}, {"d"}).Node("Add", {"d", "a"}, {"e"});
  AddBytes(m, "e", "f", kOut);
  m.Node("Sigmoid", {"f"}, {"g"}).Node("Add", {"f", "a"}, {"h"});
  AddBytes(m, "h", "i", kOut);
  AddBytes(m, "g", "j", kOut);
  m.Node("Concat", {"i", "j"}, {"y"}, {{"axis", std::int64_t{1}}}).Output("y");
  m.proto.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("n");
  ExpectSameOutputsAsFloat(m, 0, {0, 4, 6, 8});
}

// A constant of one dimension gives a scalar one.
TEST(UseIntegersLimits, FunctionOfAScalar) {
  TestModel m;
  m.Input("x", {}).Floats("half", {1}, {0.5f});
  AddBytes(m, "x", "a", kIn);
  m.Node("Mul", {"a", "half"}, {"b"});
  EndWithBytes(m, "b");
  ExpectSameOutputsAsFloat(m, 0, {});
}

TEST(UseIntegersLimits, EveryOpset) {
  for (const int opset : {10, 11, 12, 13, 16, 17, 18, 19, 20, 21}) {
    TestModel m(opset);
    m.Input("x", {1, 4, -1, -1});
    AddBytes(m, "x", "a", kIn);
    AddIntegers(m, "w_q", {4, 4, 3, 3}, Integers(144, 2, -127, 127), kInt8Type);
    m.Floats("w_scale", {}, {0.002f});
    AddIntegers(m, "w_zero", {}, {0}, kInt8Type);
    m.Node("DequantizeLinear", {"w_q", "w_scale", "w_zero"}, {"w"});
    m.Node("Conv", {"a", "w"}, {"c"}).Node("Relu", {"c"}, {"d"});
    AddBytes(m, "d", "e", kOut);
    m.Node("Sigmoid", {"e"}, {"f"}).Node("Mul", {"e", "f"}, {"g"});
    EndWithBytes(m, "g");
    SCOPED_TRACE(opset);
    EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
    EXPECT_EQ(Steps(m, "ByteTable"), 1);
    EXPECT_EQ(Steps(m, "QuantizeLinear"), 1);
    ExpectWithinOneStep(m);
  }
}

// Without a zero point bytes are unsigned.
TEST(UseIntegersLimits, NoZeroPoint) {
  TestModel m;
  m.Input("x", {1, 4, -1, -1}).Floats("s", {}, {0.02f});
  m.Node("QuantizeLinear", {"x", "s"}, {"q"}).Node("DequantizeLinear", {"q", "s"}, {"a"});
  AddConv(m, "a", "c");
  EndWithBytes(m, "c");
  ExpectWithinOneStep(m);
}

// Bytes of the graph around a branch, and a whole pattern inside of one.
TEST(UseIntegersLimits, Branches) {
  TestModel then, otherwise, m = Quantized();
  AddConv(then, "a", "tc");
  AddBytes(then, "tc", "td", kOut);
  then.Output("td");
  otherwise.Node("Sub", {"a", "d"}, {"od"}).Output("od");
  m.Input("condition", {}, onnx::TensorProto::BOOL);
  AddConv(m, "a", "c").Node("Relu", {"c"}, {"r"});
  AddBytes(m, "r", "d", kOut);
  m.Node("If", {"condition"}, {"i"}).Body("then_branch", then).Body("else_branch", otherwise);
  EndWithBytes(m, "i");
  const Tensor x = NoiseTensor(kShape);
  for (const bool condition : {true, false}) {
    const Tensor flag = Tensor::FromVector<bool>({}, {condition});
    ExpectSameOutputsAsFloat(m, {{"x", x.view()}, {"condition", flag.view()}},
                             2 * kOut.scale * 1.001);
  }
}

// Sixteen bits of float on both sides, as opset 19 has them.
TEST(UseIntegersLimits, Float16) {
  constexpr int kHalf = onnx::TensorProto::FLOAT16;
  TestModel m(19);
  m.Input("x", {1, 4, -1, -1});
  m.Node("Cast", {"x"}, {"h"}, {{"to", std::int64_t{kHalf}}});
  AddIntegers(m, "s", {}, {0x251f}, kHalf);  // 0.02
  AddIntegers(m, "z", {}, {120}, kUint8Type);
  m.Node("QuantizeLinear", {"h", "s", "z"}, {"q"}).Node("DequantizeLinear", {"q", "s", "z"}, {"a"});
  AddIntegers(m, "w_q", {4, 4, 3, 3}, Integers(144, 2, -127, 127), kInt8Type);
  AddIntegers(m, "w_s", {}, {0x1819}, kHalf);  // 0.002
  m.Node("DequantizeLinear", {"w_q", "w_s"}, {"w"}).Node("Conv", {"a", "w"}, {"c"});
  m.Node("QuantizeLinear", {"c", "s", "z"}, {"cq"});
  m.Node("DequantizeLinear", {"cq", "s", "z"}, {"d"});
  m.Node("Cast", {"d"}, {"y"}, {{"to", std::int64_t{1}}}).Output("y");
  EXPECT_EQ(Steps(m, "QuantizedConv"), 1);
  ExpectWithinOneStep(m, 0.021f);
}

}  // namespace
}  // namespace tessera
