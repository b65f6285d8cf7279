// The convolution as a product of pixels against plain loops, on every target.
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ops/quantize.h"
#include "ops/quantized/quantized_conv.h"
#include "tests/every_target.h"
#include "tests/ops/byte_tensors.h"
#include "tests/ops/conv_test_util.h"
#include "tests/ops/quantized/guarded_tensor.h"
#include "tests/ops/quantized/quantized_conv_cases.h"

namespace tessera {
namespace {

struct Layer {
  std::int64_t batch, channels, height, width, out_channels, kernel_h, kernel_w;
  std::int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

class QuantizedGemmConvTest : public testing::Test {
 protected:
  template <typename T>
  T Pick(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  std::int64_t UpTo(std::int64_t n) { return static_cast<std::int64_t>(random_() % n) + 1; }

  Layer RandomLayer() {
    Layer l{};
    l.batch = Pick({1, 1, 1, 2});
    l.kernel_h = Pick({1, 1, 2, 3, 3, 5});
    l.kernel_w = Pick({true, true, false}) ? l.kernel_h : UpTo(4);
    l.stride_h = Pick({1, 1, 2});
    l.stride_w = Pick({1, 1, 2, 3});
    const bool dilates = Pick({true, false, false}), has_pads = Pick({true, true, false});
    l.dilation_h = dilates ? UpTo(2) : 1;
    l.dilation_w = dilates ? UpTo(3) : 1;
    for (std::int64_t* pad : {&l.pad_top, &l.pad_left, &l.pad_bottom, &l.pad_right}) {
      *pad = has_pads ? UpTo(3) - 1 : 0;
    }
    l.channels = Pick({UpTo(4), UpTo(20), UpTo(200), std::int64_t{64}, std::int64_t{16}});
    l.out_channels =
        Pick({UpTo(4), UpTo(20), UpTo(100), UpTo(200), std::int64_t{64}, std::int64_t{48}});
    l.height = (l.kernel_h - 1) * l.dilation_h + UpTo(9);
    l.width = (l.kernel_w - 1) * l.dilation_w + UpTo(Pick({6, 30}));
    // The reference takes a nanosecond and more a product.
    const std::int64_t rest =
        l.batch * l.height * l.width * l.out_channels * l.kernel_h * l.kernel_w;
    while (l.channels > 4 && rest * l.channels > 700'000) l.channels /= 2;
    return l;
  }

  // With random operands, activation, addend and type of the output.
  QuantizedConvCase MakeCase(const Layer& l) {
    ConvParams p{};
    p.batch = l.batch;
    p.in_channels = l.channels;
    p.in_height = l.height;
    p.in_width = l.width;
    p.out_channels = l.out_channels;
    p.kernel_h = l.kernel_h;
    p.kernel_w = l.kernel_w;
    p.stride_h = l.stride_h;
    p.stride_w = l.stride_w;
    p.dilation_h = l.dilation_h;
    p.dilation_w = l.dilation_w;
    p.pad_top = l.pad_top;
    p.pad_left = l.pad_left;
    p.pad_bottom = l.pad_bottom;
    p.pad_right = l.pad_right;
    p.groups = 1;
    return MakeQuantizedConvCase(p, random_);
  }

  // Runs `c` on every target, on tensors with nothing behind them.
  void Check(const QuantizedConvCase& c) {
    SCOPED_TRACE(ToString(c));
    const Tensor expected = ReferenceResult(c);
    const GuardedTensor x(ToChannelsLast(c.x));
    const GuardedTensor addend(c.params.has_addend ? ToChannelsLast(c.addend) : c.x.Clone());
    const Layout layout =
        !c.params.to_float ? Layout::kChannelsLast : Pick({Layout::kBlocked, Layout::kRowMajor});
    OnEveryTarget([&] {
      PackCache packs;
      const auto kernel = MakeQuantizedGemmConv(c.params, c.constants, layout, packs);
      for (const int threads : {1, 3}) {
        const GuardedTensor y(expected.dtype(), expected.shape(), layout, 0x5A);
        Run(*kernel,
            QuantizedConvInputs(x.view(), c.params.has_addend ? addend.view() : TensorView{}), y,
            threads);
        SCOPED_TRACE(
            StrCat(kernel->name(), ", ", threads, " threads, layout ", static_cast<int>(layout)));
        ExpectSameBytes(expected, y.Copy());
      }
    });
  }

  // The same of floats, which become x: by this kernel, and by plain loops.
  void CheckFloats(QuantizedConvCase c) {
    ASSERT_TRUE(CanQuantizeInput(c.params.conv));
    c.params.x.scale = Pick({0.01f, 0.5f, 0.3f});
    const GuardedTensor x(DType::kFloat32, c.x.shape(), Layout::kRowMajor);
    for (std::int64_t i = 0; i < c.x.size(); ++i) {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      // In units of x's scale; many are halfway between integers.
      const float q = static_cast<float>(random_() % 1200) / 2 - 300;
      const float real = Pick({q, q, q * 0.999f, -q / 7, 0.0f, 1e30f, kInfinity, -kInfinity,
                               std::numeric_limits<float>::quiet_NaN()}) *
                         c.params.x.scale;
      x.data<float>()[i] = real;
      c.x.data<std::uint8_t>()[i] =
          RoundAndSaturate<std::uint8_t>(real / c.params.x.scale, c.params.x.zero_point);
    }
    SCOPED_TRACE(ToString(c));
    const Tensor expected = ReferenceResult(c);
    const GuardedTensor addend(c.params.has_addend ? ToChannelsLast(c.addend) : c.x.Clone());
    const Layout layout = c.params.to_float ? Layout::kRowMajor : Layout::kChannelsLast;
    c.params.from_float = true;
    OnEveryTarget([&] {
      PackCache packs;
      const auto kernel = MakeQuantizedGemmConv(c.params, c.constants, layout, packs);
      for (const int threads : {1, 3}) {
        const GuardedTensor y(expected.dtype(), expected.shape(), layout, 0x5A);
        Run(*kernel,
            QuantizedConvInputs(x.view(), c.params.has_addend ? addend.view() : TensorView{}), y,
            threads);
        ExpectSameBytes(expected, y.Copy());
      }
    });
    const GuardedTensor y(expected.dtype(), expected.shape(), Layout::kRowMajor);
    Run(*MakeReferenceQuantizedConv(c.params, c.constants),
        QuantizedConvInputs(x.view(), c.params.has_addend ? c.addend.view() : TensorView{}), y, 1);
    ExpectSameBytes(expected, y.Copy());
  }

  static void Run(const Kernel& kernel, const std::vector<TensorView>& inputs,
                  const GuardedTensor& y, int threads) {
    TestThreads team(threads);
    const std::size_t stride = RoundUp(kernel.ScratchBytesPerThread(), kAlignment);
    const GuardedTensor scratch(DType::kUint8, {static_cast<std::int64_t>(stride) * threads},
                                Layout::kRowMajor);
    const std::vector<TensorView> outputs = {y.view()};
    kernel.Run({inputs, outputs, team, scratch.data<std::byte>(), stride});
  }

  std::mt19937 random_{20240607};
};

TEST_F(QuantizedGemmConvTest, RandomLayers) {
  for (int round = 0; round < 150 && !HasFatalFailure(); ++round) Check(MakeCase(RandomLayer()));
}

TEST_F(QuantizedGemmConvTest, LayersOfNetworks) {
  const Layer layers[] = {
      {1, 3, 17, 33, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
      {1, 3, 4, 350, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
      {1, 3, 19, 141, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
      {2, 1, 9, 70, 12, 3, 2, 1, 1, 2, 1, 3, 1, 2, 4},
      {1, 64, 3, 70, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
      {1, 20, 1, 130, 10, 1, 1},
      {1, 64, 7, 21, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
      {1, 48, 5, 40, 48, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
      {1, 32, 9, 12, 64, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2},
      {1, 16, 24, 25, 72, 1, 1},
      {2, 96, 16, 16, 24, 1, 1},
      {1, 240, 7, 9, 40, 1, 1, 2, 2},
      {1, 96, 8, 8, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},  // heads
      {1, 96, 16, 16, 4, 1, 1},
      {1, 64, 5, 200, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
      {1, 1, 5, 600, 1, 1, 1},
      {1, 200, 1, 1, 100, 1, 1},
      {1, 16, 40, 9, 33, 3, 3, 1, 1, 4, 3, 4, 3, 4, 3},
      {1, 5, 3, 3, 6, 3, 3, 1, 1, 1, 1, 6, 5, 4, 7},  // mostly pads
  };
  for (const Layer& layer : layers) {
    for (int round = 0; round < 2 && !HasFatalFailure(); ++round) Check(MakeCase(layer));
  }
}

TEST_F(QuantizedGemmConvTest, FloatsAreQuantisedFirst) {
  for (int round = 0; round < 40 && !HasFatalFailure(); ++round) {
    Layer layer = RandomLayer();
    layer.channels = UpTo(4);
    if (round % 2 == 0) layer.kernel_h = 3, layer.dilation_w = 1;  // rows may be stacked
    layer.height = std::max(layer.height, (layer.kernel_h - 1) * layer.dilation_h + UpTo(40));
    layer.width = std::max(layer.width, (layer.kernel_w - 1) * layer.dilation_w + UpTo(70));
    layer.out_channels = std::min<std::int64_t>(layer.out_channels, 20);
    CheckFloats(MakeCase(layer));
  }
  CheckFloats(MakeCase({1, 3, 63, 255, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1}));
  CheckFloats(MakeCase({2, 3, 40, 330, 5, 3, 3, 1, 1, 2, 1, 1, 1, 1, 1}));
  CheckFloats(MakeCase({0, 3, 5, 5, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST_F(QuantizedGemmConvTest, NoImages) {
  Check(MakeCase({0, 16, 5, 5, 16, 1, 1}));
  Check(MakeCase({0, 16, 5, 5, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}));
}

// Products of pairs that int16 cannot hold, and of more channels than one.
TEST_F(QuantizedGemmConvTest, ExtremesDoNotOverflow) {
  for (const std::int64_t channels : {20, 3}) {
    QuantizedConvCase c = MakeCase({1, 64, 6, 7, channels, 1, 1});
    c.params.conv.epilogue.activation = Activation::kNone;
    c.params.x.zero_point = 0;
    std::fill_n(c.constants.weights->data<std::int8_t>(), c.constants.weights->size(),
                std::int8_t{-128});
    for (std::uint8_t& x : c.x.values<std::uint8_t>()) x = 255;
    Check(c);
  }
}

// The operator takes these kernels, and the layouts that they want.
TEST(QuantizedConvOp, OfOneGroupIsAProductOfPixels) {
  std::mt19937 random(1);
  OnEveryTarget([&] {
    for (const std::int64_t channels : {64, 2}) {
      for (const bool to_float : {false, true}) {
        OpNode node{.name = "test", .type = "QuantizedConv", .opset = 17, .attributes = {}};
        if (!to_float) WriteQuantization({0.1f, 3}, "y", node.attributes);
        const auto constant = [](Tensor t) {
          TensorInfo info;
          info.present = true;
          info.dtype = t.dtype();
          info.shape = t.shape();
          info.constant = std::make_shared<const Tensor>(std::move(t));
          return info;
        };
        TensorInfo x;
        x.present = true;
        x.dtype = DType::kUint8;
        x.shape = {1, 32, 9, 9};
        std::vector<TensorInfo> inputs = {
            x, constant(RandomBytes({channels, 32, 3, 3}, DType::kInt8, random)),
            constant(Tensor::FromVector<float>({1}, {0.01f}))};
        std::vector<TensorInfo> outputs(1);
        const OpDef& def = *FindOp("QuantizedConv");
        def.infer({node, inputs, outputs});
        const LayoutChoice choice = def.layouts({node, inputs, outputs});
        ASSERT_EQ(choice.inputs[0], Layout::kChannelsLast);
        ASSERT_EQ(choice.outputs[0], !to_float                  ? Layout::kChannelsLast
                                     : channels >= FloatLanes() ? Layout::kBlocked
                                                                : Layout::kRowMajor);
        inputs[0].layout = choice.inputs[0];
        outputs[0].layout = choice.outputs[0];
        PackCache packs;
        const std::string name(def.prepare({node, inputs, outputs, packs, false})->name());
        const bool amx = HasAmx() && channels == 64;
        const bool dot = channels == 2 && FloatLanes() >= 4;
        EXPECT_THAT(name, testing::HasSubstr(amx ? "amx" : dot ? "3x3_dot" : "3x3_gemm"));
        EXPECT_EQ(def.prepare({node, inputs, outputs, packs, true})->name(),
                  "quantized_conv_reference");
      }
    }
  });
}

}  // namespace
}  // namespace tessera
