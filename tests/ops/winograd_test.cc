#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ops/conv.h"
#include "simd/cpu_target.h"
#include "tests/ops/conv_test_util.h"

namespace tessera {
namespace {

using Random = std::mt19937;

std::vector<float> RandomFloats(std::int64_t n, Random& random, float scale = 1) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) v = normal(random);
  return values;
}

std::int64_t Uniform(std::int64_t lowest, std::int64_t highest, Random& random) {
  return std::uniform_int_distribution<std::int64_t>(lowest, highest)(random);
}

// A tensor in the blocked layout with guard floats around it and NaN wherever no value lies.
class GuardedTensor {
 public:
  explicit GuardedTensor(const Shape& shape)
      : shape_(shape),
        layout_(shape),
        memory_(static_cast<std::size_t>(layout_.NumFloats() + 2 * kGuard) * sizeof(float)) {
    std::fill_n(memory_.As<float>(), kGuard, kGuardValue);
    std::fill_n(begin(), layout_.NumFloats(), std::numeric_limits<float>::quiet_NaN());
    std::fill_n(begin() + layout_.NumFloats(), kGuard, kGuardValue);
  }
  GuardedTensor(const Shape& shape, const std::vector<float>& values) : GuardedTensor(shape) {
    std::size_t i = 0;
    ForEach([&](float& value) { value = values[i++]; });
  }

  TensorView view() const { return {DType::kFloat32, Layout::kBlocked, shape_, begin()}; }

  std::vector<float> Values() const {
    std::vector<float> values;
    ForEach([&](float& value) { values.push_back(value); });
    return values;
  }

  bool GuardsAreIntact() const {
    const auto intact = [](const float* p) {
      return std::all_of(p, p + kGuard, [](float v) { return v == kGuardValue; });
    };
    return intact(memory_.As<float>()) && intact(begin() + layout_.NumFloats());
  }

 private:
  static constexpr std::int64_t kGuard = 1024;
  static constexpr float kGuardValue = 123456.0f;

  float* begin() const { return memory_.As<float>() + kGuard; }

  // In row-major order.
  template <typename Body>
  void ForEach(const Body& body) const {
    const BlockedLayout& l = layout_;
    for (std::int64_t n = 0; n < l.images; ++n) {
      for (std::int64_t c = 0; c < l.channels; ++c) {
        for (std::int64_t y = 0; y < l.height; ++y) {
          for (std::int64_t x = 0; x < l.width; ++x) {
            body(begin()[n * l.image_stride + c / l.lanes * l.plane_stride + y * l.row_stride +
                         x * l.lanes + c % l.lanes]);
          }
        }
      }
    }
  }

  Shape shape_;
  BlockedLayout layout_;
  AlignedBuffer memory_;
};

// A layer with random data.
struct Layer {
  ConvParams params;
  ConvConstants constants;
  std::vector<float> input, addend;

  Shape InputShape() const {
    return {params.batch, params.in_channels, params.in_height, params.in_width};
  }
  Shape OutputShape() const {
    return {params.batch, params.out_channels, params.out_height, params.out_width};
  }
};

struct Pads {
  std::int64_t top = 1, left = 1, bottom = 1, right = 1;
};

Layer MakeLayer(std::int64_t in_channels, std::int64_t out_channels, std::int64_t height,
                std::int64_t width, const Pads& pads, const Epilogue& epilogue, Random& random,
                std::int64_t batch = 1) {
  Layer layer;
  layer.params = {.batch = batch,
                  .in_channels = in_channels,
                  .in_height = height,
                  .in_width = width,
                  .out_channels = out_channels,
                  .out_height = height + pads.top + pads.bottom - 2,
                  .out_width = width + pads.left + pads.right - 2,
                  .kernel_h = 3,
                  .kernel_w = 3,
                  .stride_h = 1,
                  .stride_w = 1,
                  .dilation_h = 1,
                  .dilation_w = 1,
                  .pad_top = pads.top,
                  .pad_left = pads.left,
                  .pad_bottom = pads.bottom,
                  .pad_right = pads.right,
                  .groups = 1,
                  .epilogue = epilogue};
  const auto constant = [&](const Shape& shape, float scale) {
    return std::make_shared<const Tensor>(
        Tensor::FromVector(shape, RandomFloats(shape.NumElements(), random, scale)));
  };
  layer.constants.weights = constant({out_channels, in_channels, 3, 3},
                                     1 / std::sqrt(9 * static_cast<float>(in_channels)));
  layer.constants.bias = constant({out_channels}, 0.1f);
  layer.constants.slope = constant({out_channels}, 0.3f);
  layer.input = RandomFloats(layer.InputShape().NumElements(), random);
  layer.addend = RandomFloats(layer.OutputShape().NumElements(), random);
  return layer;
}

// In place, the output takes the memory of the addend.
std::vector<float> RunWinograd(const Layer& layer, Parallel& parallel, bool in_place = false) {
  PackCache packs;
  const auto kernel = MakeWinogradConv(layer.params, layer.constants, packs);
  EXPECT_NE(kernel, nullptr);
  if (!kernel) return {};
  const GuardedTensor input(layer.InputShape(), layer.input);
  const GuardedTensor addend(layer.OutputShape(), layer.addend);
  const GuardedTensor separate(layer.OutputShape());
  const GuardedTensor& output = in_place ? addend : separate;
  const TensorView inputs[] = {input.view(), {}, {}, {}, addend.view()};
  const TensorView outputs[] = {output.view()};
  const std::size_t stride = RoundUp(kernel->ScratchBytesPerThread(), kAlignment);
  const std::size_t used = stride * static_cast<std::size_t>(parallel.num_threads());
  const AlignedBuffer scratch(used + kAlignment);
  std::fill_n(scratch.data(), scratch.size(), std::byte{0xFF});  // NaN
  kernel->Run({inputs, outputs, parallel, scratch.data(), stride});
  EXPECT_TRUE(std::all_of(scratch.data() + used, scratch.data() + scratch.size(),
                          [](std::byte b) { return b == std::byte{0xFF}; }));
  EXPECT_TRUE(input.GuardsAreIntact());
  EXPECT_TRUE(addend.GuardsAreIntact());
  EXPECT_TRUE(output.GuardsAreIntact());
  return output.Values();
}

std::vector<float> RunReference(const Layer& layer) {
  const Tensor input = Tensor::FromVector(layer.InputShape(), layer.input);
  const Tensor addend = Tensor::FromVector(layer.OutputShape(), layer.addend);
  const Tensor output(DType::kFloat32, layer.OutputShape());
  const TensorView inputs[] = {input.view(), layer.constants.weights->view(),
                               layer.constants.bias->view(), layer.constants.slope->view(),
                               addend.view()};
  const TensorView outputs[] = {output.view()};
  SerialParallel serial;
  MakeReferenceConv(layer.params)->Run({inputs, outputs, serial, nullptr, 0});
  return {output.data<float>(), output.data<float>() + output.size()};
}

float LargestDifference(const std::vector<float>& got, const std::vector<float>& wanted) {
  EXPECT_EQ(got.size(), wanted.size());
  float largest = 0;
  for (std::size_t i = 0; i < wanted.size() && i < got.size(); ++i) {
    const float difference = std::abs(got[i] - wanted[i]);
    if (!(difference <= largest)) largest = difference;  // NaN stays
  }
  return largest;
}

// Values are about N(0, 1): some units of 2^-24 for the direct form, ten times that for F(6x6).
constexpr float kTolerance = 6e-5f;

class WinogradConvTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(ForceCpuTarget(GetParam())); }
  void TearDown() override { ForceCpuTarget(AvailableCpuTargets().front()); }
  Random random_{20240607};
  SerialParallel serial_;
};

INSTANTIATE_TEST_SUITE_P(Targets, WinogradConvTest, testing::ValuesIn(AvailableCpuTargets()),
                         [](const auto& info) { return info.param; });

TEST_P(WinogradConvTest, AgreesWithTheReferenceOnRandomShapes) {
  std::set<std::string> names;
  for (int round = 0; round < 30; ++round) {
    // Both sizes of tiles: the large ones are for large maps.
    const bool large = round % 2 == 1;
    const std::int64_t channels = large ? 24 : 70, lowest = large ? 54 : 10,
                       highest = large ? 66 : 20;
    const Pads pads{Uniform(0, 1, random_), Uniform(0, 1, random_), Uniform(0, 1, random_),
                    Uniform(0, 1, random_)};
    const Layer layer =
        MakeLayer(Uniform(8, channels, random_), Uniform(8, channels, random_),
                  Uniform(lowest, highest, random_), Uniform(lowest, highest, random_), pads,
                  {.activation = Activation::kPRelu}, random_, Uniform(1, 2, random_));
    SCOPED_TRACE(testing::Message() << layer.InputShape() << " -> " << layer.OutputShape());
    PackCache packs;
    names.emplace(MakeWinogradConv(layer.params, layer.constants, packs)->name());
    EXPECT_LE(LargestDifference(RunWinograd(layer, serial_), RunReference(layer)), kTolerance);
  }
  EXPECT_THAT(names, testing::ElementsAre("conv3x3_winograd_f4", "conv3x3_winograd_f6"));
}

// Every remainder of the tile size and every border; many images, since single ones of this size
// are left to the direct kernels.
TEST_P(WinogradConvTest, AgreesWithTheReferenceForEverySmallMap) {
  for (std::int64_t height = 3; height <= 14; ++height) {
    for (std::int64_t width = 3; width <= 14; ++width) {
      const Layer layer = MakeLayer(9, 11, height, width, {}, {}, random_, 12);
      SCOPED_TRACE(testing::Message() << height << "x" << width);
      EXPECT_LE(LargestDifference(RunWinograd(layer, serial_), RunReference(layer)), kTolerance);
    }
  }
}

// Layers that exceed the cache fetch pixels ahead; every other test here is smaller.
TEST_P(WinogradConvTest, AgreesWithTheReferenceOnALargeMap) {
  const Layer layer = MakeLayer(17, 16, 256, 260, {}, {}, random_);
  EXPECT_LE(LargestDifference(RunWinograd(layer, serial_), RunReference(layer)), kTolerance);
}

TEST_P(WinogradConvTest, AppliesEveryEpilogue) {
  for (Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kLeakyRelu, Activation::kPRelu}) {
    for (Combine combine : {Combine::kNone, Combine::kAdd}) {
      const Layer layer = MakeLayer(16, 37, 21, 17, {},
                                    {.activation = activation,
                                     .alpha = 0.2f,
                                     .beta = 0.7f,
                                     .combine = combine,
                                     .scale = 0.3f},
                                    random_);
      SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(activation)
                                      << " combine " << static_cast<int>(combine));
      EXPECT_LE(LargestDifference(RunWinograd(layer, serial_), RunReference(layer)), kTolerance);
    }
  }
}

TEST_P(WinogradConvTest, OverwritesTheAddendWhereAllowed) {
  const Layer layer = MakeLayer(16, 37, 21, 17, {}, {.combine = Combine::kGate}, random_);
  PackCache packs;
  const auto kernel = MakeWinogradConv(layer.params, layer.constants, packs);
  EXPECT_TRUE(kernel->CanOverwriteInput(kConvAddend));
  EXPECT_FALSE(kernel->CanOverwriteInput(0));
  EXPECT_EQ(RunWinograd(layer, serial_, true), RunWinograd(layer, serial_, false));
}

TEST_P(WinogradConvTest, BytesDoNotDependOnTheThreads) {
  TestThreads three(3);
  for (std::int64_t size : {8, 13, 50}) {
    const Layer layer = MakeLayer(24, 40, size, size + 3, {}, {}, random_, 2);
    EXPECT_EQ(RunWinograd(layer, serial_), RunWinograd(layer, three)) << size;
  }
}

// A crop that starts at a multiple of the tile gives the same bytes where the border is far: tiles
// of a picture cannot be seen.
TEST_P(WinogradConvTest, BytesDependOnlyOnThePlaceInTheTileGrid) {
  constexpr std::int64_t kChannels = 16, kSize = 96, kCrop = 84, kStart = 12;
  const Layer whole = MakeLayer(kChannels, kChannels, kSize, kSize, {}, {}, random_);
  Layer crop = MakeLayer(kChannels, kChannels, kCrop, kCrop, {}, {}, random_);
  crop.constants = whole.constants;
  for (std::int64_t i = 0; i < kChannels * kCrop * kCrop; ++i) {
    const std::int64_t c = i / (kCrop * kCrop), y = i / kCrop % kCrop, x = i % kCrop;
    crop.input[i] = whole.input[(c * kSize + y + kStart) * kSize + x + kStart];
  }
  const std::vector<float> a = RunWinograd(whole, serial_), b = RunWinograd(crop, serial_);
  for (std::int64_t c = 0; c < kChannels; ++c) {
    for (std::int64_t y = 1; y < kCrop; ++y) {
      for (std::int64_t x = 1; x < kCrop; ++x) {
        ASSERT_EQ(a[(c * kSize + y + kStart) * kSize + x + kStart], b[(c * kCrop + y) * kCrop + x])
            << y << " " << x;
      }
    }
  }
}

// In two steps, with the input transformed on its own: the same bytes.
TEST_P(WinogradConvTest, TransformsTheInputOnItsOwn) {
  TestThreads three(3);
  for (int round = 0; round < 6; ++round) {
    const Layer layer =
        MakeLayer(Uniform(8, 70, random_), Uniform(9, 40, random_), 6 * Uniform(9, 11, random_),
                  6 * Uniform(9, 11, random_), {},
                  {.activation = Activation::kPRelu, .combine = Combine::kAdd}, random_);
    SCOPED_TRACE(testing::Message() << layer.InputShape() << " -> " << layer.OutputShape());
    ASSERT_TRUE(CanShareWinogradInput(layer.params));
    const GuardedTensor input(layer.InputShape(), layer.input);
    const GuardedTensor transformed(WinogradInputShape(layer.InputShape()));
    const GuardedTensor addend(layer.OutputShape(), layer.addend);
    const GuardedTensor output(layer.OutputShape());
    PackCache packs;
    const auto run = [&](const Kernel& kernel, const std::vector<TensorView>& inputs,
                         const TensorView& out) {
      const std::size_t stride = RoundUp(kernel.ScratchBytesPerThread(), kAlignment);
      const AlignedBuffer scratch(stride * 3 + 1);
      std::fill_n(scratch.data(), scratch.size(), std::byte{0xFF});
      kernel.Run({inputs, std::span(&out, 1), three, scratch.data(), stride});
    };
    run(*MakeWinogradInput(layer.InputShape()), {input.view()}, transformed.view());
    run(*MakeWinogradProduct(layer.params, layer.constants, packs),
        {transformed.view(), {}, {}, {}, addend.view()}, output.view());
    EXPECT_TRUE(transformed.GuardsAreIntact());
    EXPECT_TRUE(output.GuardsAreIntact());
    EXPECT_EQ(output.Values(), RunWinograd(layer, serial_));
  }
}

TEST(WinogradConv, LeavesOtherConvolutionsAlone) {
  Random random(1);
  PackCache packs;
  const Layer layer = MakeLayer(16, 16, 20, 20, {}, {}, random);
  const auto applies = [&](auto change) {
    ConvParams params = layer.params;
    change(params);
    return MakeWinogradConv(params, layer.constants, packs) != nullptr;
  };
  EXPECT_TRUE(applies([](ConvParams&) {}));
  EXPECT_FALSE(applies([](ConvParams& p) { p.stride_w = 2; }));
  EXPECT_FALSE(applies([](ConvParams& p) { p.dilation_h = 2; }));
  EXPECT_FALSE(applies([](ConvParams& p) { p.pad_left = 2; }));
  EXPECT_FALSE(applies([](ConvParams& p) { p.groups = 2; }));
  EXPECT_FALSE(applies([](ConvParams& p) { p.kernel_h = 1; }));
  EXPECT_FALSE(applies([](ConvParams& p) { p.in_channels = 3; }));
  EXPECT_FALSE(applies([](ConvParams& p) { p.in_height = p.out_height = 1; }));
}

}  // namespace
}  // namespace tessera
