// Conv as the engine uses it: shapes, layouts, choice of the kernel, messages. The kernels by
// themselves are in conv_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/conv.h"
#include "simd/cpu_target.h"
#include "tests/ops/conv_test_util.h"

namespace tessera {
namespace {

// Infers, chooses layouts, prepares and runs.
class ConvOp {
 public:
  explicit ConvOp(std::string_view type) : node_{"c", std::string(type), 17, {}} {}

  Attributes& attributes() { return node_.attributes; }
  void AddInput(Tensor t, bool constant) {
    auto shared = std::make_shared<Tensor>(std::move(t));
    infos_.push_back({.present = true,
                      .dtype = shared->dtype(),
                      .shape = shared->shape(),
                      .layout = Layout::kRowMajor,
                      .constant = constant ? shared : nullptr});
    tensors_.push_back(std::move(shared));
  }
  void OmitInput() {
    infos_.push_back({});
    tensors_.push_back(std::make_shared<Tensor>());
  }
  TensorInfo& info(std::size_t i) { return infos_[i]; }

  Shape Infer() {
    outputs_.assign(1, {});
    def_.infer({node_, infos_, outputs_});
    return outputs_[0].shape;
  }
  // Runs it in the layouts that it asks for, or as the plain kernel; the result is row-major.
  Tensor Run(bool reference = false) {
    Infer();
    LayoutChoice choice;
    if (!reference) choice = def_.layouts({node_, infos_, outputs_});
    choice.inputs.resize(infos_.size(), Layout::kRowMajor);
    choice.outputs.resize(1, Layout::kRowMajor);
    std::vector<TensorInfo> infos = infos_;
    std::vector<Tensor> memory;
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      infos[i].layout = choice.inputs[i];
      memory.push_back(infos[i].present ? ToLayout(*tensors_[i], choice.inputs[i]) : Tensor());
      views.push_back(memory.back().view());
    }
    outputs_[0].layout = choice.outputs[0];
    PackCache packs;
    const auto kernel = def_.prepare({node_, infos, outputs_, packs, reference});
    kernel_name_ = kernel->name();
    Tensor out(outputs_[0].dtype, outputs_[0].shape, choice.outputs[0]);
    RunKernel(*kernel, views, out, 2);
    return ToLayout(out, Layout::kRowMajor);
  }
  // The kernel that the last Run took.
  const std::string& kernel_name() const { return kernel_name_; }
  std::optional<SpatialField> Field(std::size_t input) {
    Infer();
    return def_.field({node_, infos_, outputs_}, input);
  }

 private:
  OpNode node_;
  const OpDef& def_ = *FindOp(node_.type);
  std::vector<TensorInfo> infos_;
  std::vector<std::shared_ptr<Tensor>> tensors_;
  std::vector<TensorInfo> outputs_;
  std::string kernel_name_;
};

struct OpCase {
  Shape x, w;
  std::int64_t groups;
  const char* kernel;  // that has to be taken on targets of 16 lanes
  std::vector<std::int64_t> pads = {};
};

class ConvOpTest : public TargetTest {};

TEST_P(ConvOpTest, AgreesWithItsPlainKernelWhateverIsChosen) {
  const OpCase cases[] = {
      {{1, 3, 20, 30}, {64, 3, 3, 3}, 1, "conv3x3_direct", {1, 1, 1, 1}},
      {{2, 64, 20, 30}, {3, 64, 3, 3}, 1, "conv3x3_planar", {1, 1, 1, 1}},
      {{1, 64, 9, 9}, {48, 64, 1, 1}, 1, "conv1x1_direct"},
      {{1, 40, 17, 9}, {40, 1, 5, 5}, 40, "conv5x5_depthwise", {2, 2, 2, 2}},
      {{1, 64, 9, 11}, {32, 32, 3, 3}, 2, "conv3x3_direct", {1, 0, 0, 1}},
      {{1, 12, 9, 11}, {18, 2, 3, 3}, 6, "conv3x3_planar", {1, 1, 1, 1}},
      {{1, 5, 70}, {7, 5, 3}, 1, "conv1x3_planar", {1, 1}},
      {{1, 5, 70}, {40, 5, 3}, 1, "conv1x3_direct", {1, 1}},
      {{1, 6, 33}, {6, 1, 4}, 6, "conv1x4_planar", {0, 2}},
      {{0, 4, 8, 8}, {8, 4, 3, 3}, 1, "conv3x3_planar"},
      {{0, 64, 8, 8}, {64, 64, 1, 1}, 1, "conv1x1_direct"},
      {{0, 64, 8, 8}, {64, 1, 3, 3}, 64, "conv3x3_depthwise"},
      // No tile of it fits into memory.
      {{1, 1, 2, 2}, {1, 1, 2, 2}, 1, "conv_gemm", {1 << 28, 0, 0, 0}},
  };
  for (const OpCase& c : cases) {
    ConvOp op("Conv");
    op.attributes().Set("group", c.groups);
    if (!c.pads.empty()) op.attributes().Set("pads", c.pads);
    if (c.pads.size() == 4 && c.pads[0] == 1 << 28) {
      op.attributes().Set("dilations", std::vector<std::int64_t>{1 << 28, 1});
    }
    op.AddInput(RandomTensor(c.x, random_), false);
    op.AddInput(RandomTensor(c.w, random_), true);
    op.AddInput(RandomTensor({c.w[0]}, random_), true);
    const Tensor got = op.Run();
    if (FloatLanes() == 16) {
      EXPECT_EQ(op.kernel_name(), c.kernel) << c.x << " * " << c.w;
    }
    const Tensor wanted = op.Run(true);
    EXPECT_EQ(op.kernel_name(), "conv_reference");
    ASSERT_EQ(got.shape(), wanted.shape());
    for (std::int64_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4) << c.x << " * " << c.w;
    }
  }
}

// As where the features of one picture are looked for in those of another.
TEST_P(ConvOpTest, WeightsOfDepthwiseLayersMayBeComputed) {
  for (const std::int64_t channels : {3, 40, 96}) {
    for (const std::int64_t batch : {1, 2}) {
      ConvOp op("Conv");
      op.attributes().Set("group", channels);
      op.attributes().Set("pads", std::vector<std::int64_t>{1, 2, 1, 0});
      op.AddInput(RandomTensor({batch, channels, 16, 17}, random_), false);
      op.AddInput(RandomTensor({channels, 1, 4, 4}, random_), false);
      if (channels != 96) op.AddInput(RandomTensor({channels}, random_), true);
      const Tensor got = op.Run();
      EXPECT_EQ(op.kernel_name(), "conv4x4_depthwise");
      const Tensor wanted = op.Run(true);
      ASSERT_EQ(got.shape(), wanted.shape());
      for (std::int64_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4) << channels;
      }
    }
  }
  // A computed bias is for the general kernel.
  ConvOp op("Conv");
  op.attributes().Set("group", std::int64_t{40});
  op.AddInput(RandomTensor({1, 40, 9, 9}, random_), false);
  op.AddInput(RandomTensor({40, 1, 3, 3}, random_), false);
  op.AddInput(RandomTensor({40}, random_), false);
  const Tensor got = op.Run();
  EXPECT_EQ(op.kernel_name(), "conv_gemm");
  const Tensor wanted = op.Run(true);
  for (std::int64_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4);
}

// Few output channels: the input is taken in the layout that it has.
TEST_P(ConvOpTest, TakesBlockedInputOfNarrowLayers) {
  ConvOp op("Conv");
  op.AddInput(RandomTensor({2, 40, 11, 30}, random_), false);
  op.AddInput(RandomTensor({2, 40, 3, 3}, random_), true);
  op.info(0).layout = Layout::kBlocked;
  const Tensor got = op.Run();
  if (FloatLanes() >= 4) {
    EXPECT_EQ(op.kernel_name(), "conv3x3_dot");
  }
  const Tensor wanted = op.Run(true);
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4);
  }
}

TEST_P(ConvOpTest, TakesHalfPrecisionWeights) {
  ConvOp op("Conv");
  Tensor w(DType::kFloat16, {32, 16, 3, 3});
  for (std::int64_t i = 0; i < w.size(); ++i) {
    w.data<std::uint16_t>()[i] = FloatToHalf(static_cast<float>(i % 17) / 16 - 0.5f);
  }
  op.AddInput(RandomTensor({1, 16, 12, 12}, random_), false);
  op.AddInput(std::move(w), true);
  const Tensor got = op.Run(), wanted = op.Run(true);
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-4);
  }
}

TEST_P(ConvOpTest, RunsWithWeightsThatAreNoConstants) {
  ConvOp op("Conv");
  op.AddInput(RandomTensor({1, 16, 12, 12}, random_), false);
  op.AddInput(RandomTensor({16, 16, 3, 3}, random_), false);
  const Tensor got = op.Run();
  EXPECT_EQ(op.kernel_name(), "conv_gemm");
  const Tensor wanted = op.Run(true);
  for (std::int64_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got.data<float>()[i], wanted.data<float>()[i], 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ConvOpTest, testing::ValuesIn(AvailableCpuTargets()),
                         [](const auto& test) { return test.param; });

// Shapes and pads by the specification.

ConvParams ReadAutoPad(const char* auto_pad, std::int64_t size, std::int64_t kernel,
                       std::int64_t stride, std::int64_t dilation) {
  OpNode node{"c", "Conv", 17, {}};
  node.attributes.Set("auto_pad", std::string(auto_pad));
  node.attributes.Set("strides", std::vector<std::int64_t>{stride, stride});
  node.attributes.Set("dilations", std::vector<std::int64_t>{dilation, dilation});
  return ReadConvParams(node, {1, 2, size, size}, {4, 2, kernel, kernel});
}

TEST(ConvParams, AutoPad) {
  ConvParams p = ReadAutoPad("SAME_UPPER", 10, 4, 1, 1);
  EXPECT_EQ(p.out_height, 10);
  EXPECT_EQ(p.pad_top, 1);
  EXPECT_EQ(p.pad_bottom, 2);
  p = ReadAutoPad("SAME_LOWER", 10, 4, 1, 1);
  EXPECT_EQ(p.pad_left, 2);
  EXPECT_EQ(p.pad_right, 1);
  p = ReadAutoPad("SAME_UPPER", 9, 3, 2, 1);
  EXPECT_EQ(p.out_width, 5);
  EXPECT_EQ(p.pad_left, 1);
  EXPECT_EQ(p.pad_right, 1);
  p = ReadAutoPad("SAME_UPPER", 10, 3, 2, 1);
  EXPECT_EQ(p.out_width, 5);
  EXPECT_EQ(p.pad_left, 0);
  EXPECT_EQ(p.pad_right, 1);
  p = ReadAutoPad("SAME_UPPER", 10, 3, 1, 3);
  EXPECT_EQ(p.out_width, 10);
  EXPECT_EQ(p.pad_left, 3);
  p = ReadAutoPad("SAME_UPPER", 8, 1, 4, 1);  // nothing to pad
  EXPECT_EQ(p.out_width, 2);
  EXPECT_EQ(p.pad_left + p.pad_right, 0);
  p = ReadAutoPad("VALID", 10, 3, 2, 2);
  EXPECT_EQ(p.out_width, 3);
  EXPECT_EQ(p.pad_left + p.pad_right, 0);
  EXPECT_THROW(ReadAutoPad("SAME", 10, 3, 1, 1), Error);
}

TEST(ConvParams, RefusesWhatTheSpecificationForbids) {
  const auto read = [](const Shape& x, const Shape& w, const char* name = nullptr,
                       Attributes::Value value = std::int64_t{0}) {
    OpNode node{"c", "Conv", 17, {}};
    if (name != nullptr) node.attributes.Set(name, std::move(value));
    return ReadConvParams(node, x, w);
  };
  using Ints = std::vector<std::int64_t>;
  const Shape x = {1, 4, 8, 8}, w = {6, 4, 3, 3};
  EXPECT_EQ(read(x, w).out_height, 6);
  EXPECT_THROW(read({1, 4, 8, 8, 8}, {6, 4, 3, 3, 3}), Error);
  EXPECT_THROW(read({1, 4}, {6, 4}), Error);
  EXPECT_THROW(read(x, {6, 4, 3}), Error);
  EXPECT_THROW(read(x, {6, 3, 3, 3}), Error);
  EXPECT_THROW(read(x, {6, 4, 0, 3}), Error);
  EXPECT_THROW(read(x, {0, 4, 3, 3}), Error);
  EXPECT_THROW(read(x, {6, 4, 9, 3}), Error);
  EXPECT_THROW(read(x, w, "group", std::int64_t{0}), Error);
  EXPECT_THROW(read(x, w, "group", std::int64_t{3}), Error);
  EXPECT_THROW(read(x, {6, 1, 3, 3}, "group", std::int64_t{4}), Error);
  EXPECT_THROW(read(x, w, "kernel_shape", Ints{3, 5}), Error);
  EXPECT_THROW(read(x, w, "strides", Ints{0, 1}), Error);
  EXPECT_THROW(read(x, w, "strides", Ints{1}), Error);
  EXPECT_THROW(read(x, w, "dilations", Ints{1, -1}), Error);
  EXPECT_THROW(read(x, w, "dilations", Ints{std::int64_t{1} << 62, 1}), Error);
  EXPECT_THROW(read(x, w, "pads", Ints{0, 0, 0, -1}), Error);
  EXPECT_THROW(read(x, w, "pads", Ints{0, 0}), Error);
  EXPECT_THROW(read(x, w, "pads", std::string("1 1 1 1")), Error);
  OpNode both{"c", "Conv", 17, {}};
  both.attributes.Set("pads", Ints{1, 1, 1, 1});
  both.attributes.Set("auto_pad", std::string("SAME_UPPER"));
  EXPECT_THROW(ReadConvParams(both, x, w), Error);
}

TEST(ConvOperator, MessagesNameTheShapes) {
  try {
    ReadConvParams({"c", "Conv", 17, {}}, {1, 3, 8, 8}, {6, 4, 3, 3});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(),
                testing::AllOf(testing::HasSubstr("1x3x8x8"), testing::HasSubstr("6x4x3x3")));
  }
}

TEST(ConvOperator, RefusesOperandsThatDoNotFit) {
  std::mt19937 random(1);
  const auto infer = [&](const Shape& bias, const Shape& slope, const Shape& addend,
                         DType type = DType::kFloat32) {
    ConvOp op("FusedConv");
    WriteEpilogue({.activation = Activation::kPRelu, .combine = Combine::kAdd}, op.attributes());
    op.AddInput(Tensor(type, {1, 4, 8, 8}), false);
    op.AddInput(Tensor(type, {6, 4, 3, 3}), true);
    op.AddInput(RandomTensor(bias, random), true);
    op.AddInput(RandomTensor(slope, random), true);
    op.AddInput(RandomTensor(addend, random), false);
    return op.Infer();
  };
  EXPECT_EQ(infer({6}, {6, 1, 1}, {1, 6, 6, 6}), Shape({1, 6, 6, 6}));
  EXPECT_EQ(infer({6}, {1}, {1, 6, 6, 6}), Shape({1, 6, 6, 6}));
  EXPECT_THROW(infer({5}, {6}, {1, 6, 6, 6}), Error);
  EXPECT_THROW(infer({6}, {4}, {1, 6, 6, 6}), Error);
  EXPECT_THROW(infer({6}, {6}, {1, 6, 1, 1}), Error);
  EXPECT_THROW(infer({6}, {6}, {1, 6, 6, 6}, DType::kInt32), Error);
  ConvOp mixed("Conv");
  mixed.AddInput(Tensor(DType::kFloat64, {1, 4, 8, 8}), false);
  mixed.AddInput(Tensor(DType::kFloat32, {6, 4, 3, 3}), true);
  EXPECT_THROW(mixed.Infer(), Error);
}

TEST(ConvOperator, FieldCoversExactlyTheTaps) {
  ConvOp op("FusedConv");
  WriteEpilogue({.combine = Combine::kAdd}, op.attributes());
  op.attributes().Set("strides", std::vector<std::int64_t>{2, 1});
  op.attributes().Set("dilations", std::vector<std::int64_t>{1, 2});
  op.attributes().Set("pads", std::vector<std::int64_t>{1, 2, 0, 2});
  op.AddInput(Tensor(DType::kFloat32, {1, 4, 9, 8}), false);
  op.AddInput(Tensor(DType::kFloat32, {6, 4, 3, 3}), true);
  op.OmitInput();
  op.OmitInput();
  op.AddInput(Tensor(DType::kFloat32, {1, 6, 4, 8}), false);
  const auto field = op.Field(0);
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ((*field)[0].num, 1);
  EXPECT_EQ((*field)[0].den, 2);
  EXPECT_EQ((*field)[0].lo, -1);
  EXPECT_EQ((*field)[0].hi, 1);
  EXPECT_EQ((*field)[1].den, 1);
  EXPECT_EQ((*field)[1].lo, -2);
  EXPECT_EQ((*field)[1].hi, 2);
  const auto addend = op.Field(kConvAddend);
  ASSERT_TRUE(addend.has_value());
  EXPECT_EQ((*addend)[0].den, 1);
  EXPECT_EQ((*addend)[0].hi, 0);
  EXPECT_FALSE(op.Field(1).has_value());

  // SAME pads by the size of the input if the stride is not 1: a tile would see other pads.
  ConvOp same("Conv");
  same.attributes().Set("auto_pad", std::string("SAME_UPPER"));
  same.attributes().Set("strides", std::vector<std::int64_t>{2, 2});
  same.AddInput(Tensor(DType::kFloat32, {1, 4, 9, 8}), false);
  same.AddInput(Tensor(DType::kFloat32, {6, 4, 3, 3}), true);
  EXPECT_FALSE(same.Field(0).has_value());
}

}  // namespace
}  // namespace tessera
