// Tensors of bytes that lie channels-last in plans: between operators that take them so and those
// that do not, as outputs of the graph, and in tensors of one pixel.
#include <cstring>

#include "tests/engine/passes/pass_test_util.h"

namespace tessera {
namespace {

using Attribute = TestModel::Attribute;

TestModel& Byte(TestModel& m, const std::string& name, int value) {
  auto* t = m.proto.mutable_graph()->add_initializer();
  t->set_name(name);
  t->set_data_type(onnx::TensorProto::UINT8);
  t->add_int32_data(value);
  return m;
}

// x -> Conv -> c, QuantizeLinear -> q (uint8); 3 to `channels` channels. Scale "s" and zero point
// "z".
TestModel ByteModel(std::int64_t channels) {
  TestModel m;
  m.Input("x", {1, 3, -1, -1}).Noise("w", {channels, 3, 3, 3}, 0.5f).Floats("s", {}, {0.02f});
  m.Node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  Byte(m, "z", 131);
  return std::move(m.Node("QuantizeLinear", {"c", "s", "z"}, {"q"}));
}

TestModel& ByteOutput(TestModel& m, const std::string& name) {
  return m.Output(name, onnx::TensorProto::UINT8);
}

// The bytes of plain kernels, but for a step where the float convolution before lies near a tie.
void ExpectBytes(const std::vector<Tensor>& actual, const std::vector<Tensor>& plain, float step) {
  ASSERT_EQ(actual.size(), plain.size());
  for (std::size_t k = 0; k < plain.size(); ++k) {
    ASSERT_EQ(actual[k].shape(), plain[k].shape());
    ASSERT_EQ(actual[k].dtype(), plain[k].dtype());
    const bool bytes = plain[k].dtype() == DType::kUint8;
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < plain[k].size(); ++i) {
      const float a = bytes ? actual[k].data<std::uint8_t>()[i] : actual[k].data<float>()[i];
      const float b = bytes ? plain[k].data<std::uint8_t>()[i] : plain[k].data<float>()[i];
      ASSERT_NEAR(a, b, (bytes ? 1 : step) * 1.001f) << "output " << k << " at " << i;
      different += std::abs(a - b) > 1e-5f ? 1 : 0;
    }
    EXPECT_LE(different, 1 + plain[k].size() / 1000) << "output " << k;
  }
}

// Like plain kernels on every target, and the same without what the planner does in place.
void ExpectLikePlain(const TestModel& m, const Shape& shape = {1, 3, 8, 8}, float step = 0.02f) {
  const Tensor x = Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 9));
  const std::vector<NamedView> inputs = {{"x", x.view()}};
  std::vector<Tensor> plain;
  m.Load({.reference = true})->Run(inputs, plain);
  OnEveryTarget([&] {
    std::vector<Tensor> outputs, apart;
    m.Load()->Run(inputs, outputs);
    ExpectBytes(outputs, plain, step);
    m.Load({.disabled_passes = {"view-one-pixel", "concat-in-place"}})->Run(inputs, apart);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      EXPECT_EQ(std::memcmp(outputs[k].view().bytes, apart[k].view().bytes, apart[k].bytes()), 0);
    }
  });
}

TEST(ChannelsLast, GraphOutputsAndReadersOfOtherLayouts) {
  for (const std::int64_t channels : {3, 20, 32}) {
    SCOPED_TRACE(channels);
    TestModel m = ByteModel(channels);
    ByteOutput(m, "q");
    m.Node("Transpose", {"q"}, {"t"}, {{"perm", Ints{0, 3, 1, 2}}});
    ByteOutput(m, "t");
    m.Node("MaxPool", {"q"}, {"p"}, {{"kernel_shape", Ints{2, 2}}});
    ByteOutput(m, "p");
    m.Node("DequantizeLinear", {"p", "s", "z"}, {"y"}).Output("y");
    m.Ints("flat", {1, -1}).Node("Reshape", {"q", "flat"}, {"f"});
    ByteOutput(m, "f");
    ExpectLikePlain(m);
    // q is reordered once for its three readers.
    TestModel one = ByteModel(channels);
    ByteOutput(one, "q");
    one.Node("Transpose", {"q"}, {"t"}, {{"perm", Ints{0, 3, 1, 2}}});
    ByteOutput(one, "t");
    one.Node("Slice", {"q", "begin", "end"}, {"r"});
    one.Ints("begin", {0, 1, 1, 1}).Ints("end", {1, 3, 4, 5});
    ByteOutput(one, "r");
    EXPECT_EQ(CountSteps(one, "Reorder"), FloatLanes() < 3 ? 2 : 1);  // that of x
    ExpectLikePlain(one);
  }
}

TEST(ChannelsLast, ConcatsAlternateTheirChannels) {
  for (const std::int64_t channels : {16, 20}) {
    SCOPED_TRACE(channels);
    TestModel m = ByteModel(channels);
    Byte(m, "z2", 90);
    m.Node("QuantizeLinear", {"c", "s", "z2"}, {"r"});
    m.Node("Concat", {"q", "r"}, {"qr"}, {{"axis", std::int64_t{1}}});
    m.Node("Concat", {"qr", "r"}, {"y"}, {{"axis", std::int64_t{1}}});
    ByteOutput(m, "y");
    ExpectLikePlain(m);
    EXPECT_EQ(CountSteps(m, "Concat"), 2);
    TestModel rows = ByteModel(channels);
    rows.Node("Neg", {"c"}, {"n"}).Node("QuantizeLinear", {"n", "s", "z"}, {"r"});
    rows.Node("Concat", {"q", "r"}, {"y"}, {{"axis", std::int64_t{2}}});
    ByteOutput(rows, "y");
    ExpectLikePlain(rows);
  }
}

TEST(ChannelsLast, OnePixelChangesItsLayoutInPlace) {
  for (const std::int64_t channels : {3, 20, 32}) {
    SCOPED_TRACE(channels);
    TestModel m;
    m.Input("x", {1, 3, -1, -1}).Noise("w", {channels, 3, 1, 1}).Floats("s", {}, {0.02f});
    Byte(m, "z", 131);
    m.Node("GlobalAveragePool", {"x"}, {"g"}).Node("Conv", {"g", "w"}, {"c"});
    m.Node("QuantizeLinear", {"c", "s", "z"}, {"q"});
    m.Ints("row", {1, -1}).Ints("pixel", {1, -1, 1, 1});
    m.Node("Reshape", {"q", "row"}, {"f"})
        .Node("Concat", {"f", "f"}, {"ff"}, {{"axis", std::int64_t{1}}});
    m.Node("Reshape", {"ff", "pixel"}, {"p"});
    m.Node("MaxPool", {"p"}, {"k"}, {{"kernel_shape", Ints{1, 1}}});
    m.Node("DequantizeLinear", {"q", "s", "z"}, {"d"}).Output("d");
    ByteOutput(m, "k");
    ExpectLikePlain(m);
    EXPECT_EQ(CountSteps(m, "Reorder"), 0);
    EXPECT_GT(CountSteps(m, "Reorder", {.disabled_passes = {"view-one-pixel"}}), 0);
  }
}

// Two pixels of a channel each: not the order of one pixel with two channels.
TEST(ChannelsLast, SeveralPixelsAndImagesAreReordered) {
  TestModel m;
  m.Input("x", {-1, 3, -1, -1}).Noise("w", {5, 3, 1, 1}).Floats("s", {}, {0.02f});
  Byte(m, "z", 131);
  m.Node("GlobalAveragePool", {"x"}, {"g"}).Node("Conv", {"g", "w"}, {"c"});
  m.Node("QuantizeLinear", {"c", "s", "z"}, {"q"});
  m.Ints("flat", {1, 1, 1, -1}).Node("Reshape", {"q", "flat"}, {"f"});
  ByteOutput(m, "f");
  ExpectLikePlain(m, {3, 3, 4, 4});
}

TEST(ChannelsLast, ConstantsAreReorderedToo) {
  TestModel m = ByteModel(20);
  auto* t = m.proto.mutable_graph()->add_initializer();
  t->set_name("k");
  t->set_data_type(onnx::TensorProto::UINT8);
  for (const int d : {1, 5, 8, 8}) t->add_dims(d);
  for (int i = 0; i < 5 * 64; ++i) t->add_int32_data(i * 37 % 256);
  m.Node("Concat", {"q", "k"}, {"y"}, {{"axis", std::int64_t{1}}});
  ByteOutput(m, "y");
  ExpectLikePlain(m);
}

}  // namespace
}  // namespace tessera
