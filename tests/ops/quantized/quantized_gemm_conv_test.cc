// The convolution as a product of pixels against plain loops, on every target.
#include <random>

#include "ops/quantized/quantized_conv.h"
#include "ops/quantized/quantized_pointwise.h"
#include "tests/ops/byte_tensors.h"
#include "tests/ops/conv_test_util.h"
#include "tests/ops/quantized/guarded_tensor.h"

namespace tessera {
namespace {

struct Layer {
  std::int64_t batch = 1, channels = 8, height = 6, width = 7, out_channels = 8;
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::vector<std::int64_t> strides = {1, 1}, dilations = {1, 1}, pads = {0, 0, 0, 0};
  Activation activation = Activation::kNone;
  bool to_float = false, addend = false;
  Layout float_layout = Layout::kBlocked;

  std::string Name() const {
    std::ostringstream out;
    out << batch << 'x' << channels << 'x' << height << 'x' << width << " -> " << out_channels
        << ", " << kernel_h << 'x' << kernel_w << " by " << strides[0] << ',' << strides[1]
        << ", dilation " << dilations[0] << ',' << dilations[1] << ", pads " << pads[0] << ','
        << pads[1] << ',' << pads[2] << ',' << pads[3] << ", activation "
        << static_cast<int>(activation) << (to_float ? ", float" : "")
        << (float_layout == Layout::kBlocked ? " blocked" : "") << (addend ? ", addend" : "");
    return out.str();
  }
};

class QuantizedGemmConvTest : public TargetTest {
 protected:
  template <typename T>
  T Pick(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  std::int64_t UpTo(std::int64_t n) { return static_cast<std::int64_t>(random_() % n) + 1; }

  Layer RandomLayer() {
    Layer l;
    l.batch = Pick({1, 1, 1, 2});
    l.kernel_h = Pick({1, 1, 2, 3, 3, 5});
    l.kernel_w = Pick({true, true, false}) ? l.kernel_h : UpTo(4);
    l.strides = {Pick({1, 1, 2}), Pick({1, 1, 2, 3})};
    if (Pick({true, false, false})) l.dilations = {UpTo(2), UpTo(3)};
    if (Pick({true, true, false})) {
      l.pads = {UpTo(3) - 1, UpTo(3) - 1, UpTo(3) - 1, UpTo(3) - 1};
    }
    l.channels = Pick({UpTo(4), UpTo(20), UpTo(200), std::int64_t{64}, std::int64_t{16}});
    l.out_channels =
        Pick({UpTo(4), UpTo(20), UpTo(100), UpTo(200), std::int64_t{64}, std::int64_t{48}});
    l.height = (l.kernel_h - 1) * l.dilations[0] + UpTo(9);
    l.width = (l.kernel_w - 1) * l.dilations[1] + UpTo(Pick({6, 30}));
    l.activation = Pick({Activation::kNone, Activation::kRelu, Activation::kLeakyRelu,
                         Activation::kPRelu, Activation::kClip, Activation::kHardSwish});
    l.to_float = Pick({true, false, false});
    l.float_layout = Pick({Layout::kBlocked, Layout::kRowMajor});
    l.addend = Pick({true, false, false});
    return l;
  }

  QuantizedConvParams Params(const Layer& l) {
    OpNode node{.name = "test", .type = "QuantizedConv", .opset = 17, .attributes = {}};
    node.attributes.Set("strides", l.strides);
    node.attributes.Set("dilations", l.dilations);
    node.attributes.Set("pads", l.pads);
    const bool clips = l.activation == Activation::kClip;
    WriteEpilogue({.activation = l.activation, .alpha = clips ? -0.4f : 0.2f, .beta = 1.5f},
                  node.attributes);
    // Bounds, middle and everything.
    const auto zero_point = [&] { return Pick({0, 255, 128, static_cast<int>(random_() % 256)}); };
    const auto depth = static_cast<float>(l.channels * l.kernel_h * l.kernel_w);
    WriteQuantization({0.02f, zero_point()}, "x", node.attributes);
    // Results fill the range of bytes, or leave it.
    const float spread = Pick({1.0f, 1.0f, 0.2f, 30.0f});
    if (!l.to_float) {
      WriteQuantization({0.004f * std::sqrt(depth) * spread, zero_point()}, "y", node.attributes);
    }
    WriteQuantization({0.01f, zero_point()}, "addend", node.attributes);
    return ReadQuantizedConv(node, {l.batch, l.channels, l.height, l.width},
                             {l.out_channels, l.channels, l.kernel_h, l.kernel_w}, l.addend);
  }

  QuantizedConvConstants Constants(const Layer& l) {
    QuantizedConvConstants c;
    const std::int64_t m = l.out_channels;
    c.weights = std::make_shared<Tensor>(
        RandomBytes({m, l.channels, l.kernel_h, l.kernel_w}, DType::kInt8, random_));
    Tensor scales(DType::kFloat32, {Pick({true, false}) ? m : 1});
    for (float& s : scales.values<float>()) s = 0.003f * static_cast<float>(1 + random_() % 9);
    c.weight_scale = std::make_shared<Tensor>(std::move(scales));
    if (Pick({true, true, false})) {
      Tensor bias(DType::kInt32, {m});
      for (auto& b : bias.values<std::int32_t>()) b = static_cast<std::int32_t>(random_()) >> 17;
      c.bias = std::make_shared<Tensor>(std::move(bias));
    }
    if (l.activation == Activation::kPRelu) {
      c.slope = std::make_shared<Tensor>(RandomTensor({Pick({true, false}) ? m : 1}, random_));
    }
    return c;
  }

  // Channels that are not there hold anything.
  void ToChannelsLast(const Tensor& t, const GuardedTensor& to) {
    const ChannelsLastLayout c(t.shape());
    auto* out = to.data<std::uint8_t>();
    for (std::int64_t i = 0; i < c.NumBytes(); ++i) out[i] = static_cast<std::uint8_t>(random_());
    const auto* in = t.data<std::uint8_t>();
    for (std::int64_t n = 0; n < c.images; ++n) {
      for (std::int64_t channel = 0; channel < c.channels; ++channel) {
        for (std::int64_t i = 0; i < c.height * c.width; ++i) {
          out[n * c.image_stride + i * c.pixel_stride + channel] = *in++;
        }
      }
    }
  }

  static Tensor ToRowMajor(const TensorView& from) {
    Tensor to(from.dtype, from.shape);
    if (from.layout != Layout::kChannelsLast) {
      Tensor copy(from.dtype, from.shape, from.layout);
      std::memcpy(copy.data<std::byte>(), from.bytes, copy.bytes());
      return ToLayout(copy, Layout::kRowMajor);
    }
    const ChannelsLastLayout c(from.shape);
    auto* out = to.data<std::uint8_t>();
    for (std::int64_t n = 0; n < c.images; ++n) {
      for (std::int64_t channel = 0; channel < c.channels; ++channel) {
        for (std::int64_t i = 0; i < c.height * c.width; ++i) {
          *out++ = from.data<std::uint8_t>()[n * c.image_stride + i * c.pixel_stride + channel];
        }
      }
    }
    return to;
  }

  void Check(const Layer& l) {
    SCOPED_TRACE(l.Name());
    const QuantizedConvParams p = Params(l);
    const QuantizedConvConstants constants = Constants(l);
    const Shape x_shape{l.batch, l.channels, l.height, l.width};
    const Shape y_shape{l.batch, l.out_channels, p.conv.out_height, p.conv.out_width};
    const DType type = l.to_float ? DType::kFloat32 : DType::kUint8;
    const Tensor x = RandomBytes(x_shape, DType::kUint8, random_);
    const Tensor addend = RandomBytes(y_shape, DType::kUint8, random_);
    std::vector<TensorView> inputs(6);
    inputs[0] = x.view();
    if (l.addend) inputs[kQuantizedAddend] = addend.view();
    Tensor expected(type, y_shape);
    RunKernel(*MakeReferenceQuantizedConv(p, constants), inputs, expected, 1);

    const GuardedTensor last_x(DType::kUint8, x_shape, Layout::kChannelsLast);
    const GuardedTensor last_addend(DType::kUint8, y_shape, Layout::kChannelsLast);
    ToChannelsLast(x, last_x);
    ToChannelsLast(addend, last_addend);
    inputs[0] = last_x.view();
    if (l.addend) inputs[kQuantizedAddend] = last_addend.view();
    PackCache packs;
    const Layout layout = l.to_float ? l.float_layout : Layout::kChannelsLast;
    const auto kernel = MakeQuantizedGemmConv(p, constants, layout, packs);
    for (const int threads : {1, 3}) {
      const GuardedTensor y(type, y_shape, layout, 0x5A);
      Run(*kernel, inputs, y, threads);
      const Tensor actual = ToRowMajor(y.view());
      ASSERT_EQ(std::memcmp(actual.data<std::byte>(), expected.data<std::byte>(), actual.bytes()),
                0)
          << threads << " threads";
    }
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
};

TEST_P(QuantizedGemmConvTest, RandomLayers) {
  for (int round = 0; round < 250 && !HasFatalFailure(); ++round) Check(RandomLayer());
}

TEST_P(QuantizedGemmConvTest, LayersOfNetworks) {
  using A = Activation;
  const std::vector<std::int64_t> by_two = {2, 2}, once = {1, 1}, around = {1, 1, 1, 1};
  const std::vector<std::int64_t> two_around = {2, 2, 2, 2}, none = {0, 0, 0, 0};
  const Layer layers[] = {
      {1, 3, 31, 33, 16, 3, 3, by_two, once, around, A::kHardSwish},
      {1, 3, 9, 350, 64, 3, 3, once, once, around, A::kPRelu},
      {1, 64, 20, 21, 64, 3, 3, once, once, around, A::kPRelu},
      {1, 48, 11, 40, 48, 3, 3, once, once, around, A::kNone, false, true},
      {1, 32, 9, 12, 64, 5, 5, by_two, once, two_around, A::kRelu},
      {1, 16, 24, 25, 72, 1, 1, once, once, none, A::kRelu},
      {2, 96, 16, 16, 24, 1, 1, once, once, none, A::kNone, false, true},
      {1, 240, 7, 9, 40, 1, 1, by_two, once, none, A::kNone},
      {1, 96, 8, 8, 2, 3, 3, once, once, around, A::kNone, true, false, Layout::kRowMajor},
      {1, 96, 16, 16, 4, 1, 1, once, once, none, A::kNone, true, false, Layout::kRowMajor},
      {1, 1, 5, 600, 1, 1, 1, once, once, none, A::kClip},
      {1, 200, 1, 1, 100, 1, 1, once, once, none, A::kNone, true},
      {1, 16, 40, 9, 33, 3, 3, once, {4, 3}, {4, 3, 4, 3}, A::kLeakyRelu},
      {1, 5, 3, 3, 6, 3, 3, once, once, {6, 5, 4, 7}, A::kNone},  // mostly pads
  };
  for (const Layer& layer : layers) Check(layer);
}

TEST_P(QuantizedGemmConvTest, ExtremesDoNotOverflow) {
  // Products of pairs that int16 cannot hold.
  Layer l{.channels = 64, .out_channels = 20, .to_float = true};
  QuantizedConvParams p = Params(l);
  p.x = {1, 0};
  QuantizedConvConstants c = Constants(l);
  c.bias = nullptr;
  std::fill_n(c.weights->data<std::int8_t>(), c.weights->size(), std::int8_t{-128});
  const GuardedTensor x(DType::kUint8, {1, 64, 6, 7}, Layout::kChannelsLast, 255);
  const GuardedTensor y(DType::kFloat32, {1, 20, 6, 7}, Layout::kRowMajor);
  PackCache packs;
  std::vector<TensorView> inputs(6);
  inputs[0] = x.view();
  Run(*MakeQuantizedGemmConv(p, c, Layout::kRowMajor, packs), inputs, y, 1);
  const float* scale = c.weight_scale->data<float>();
  for (std::int64_t i = 0; i < 20 * 42; ++i) {
    ASSERT_EQ(y.data<float>()[i],
              -255.0f * 128 * 64 * scale[c.weight_scale->size() == 1 ? 0 : i / 42]);
  }
}

// A row of pixels inside of wider ones, as the fused chains have it.
TEST_P(QuantizedGemmConvTest, PointwiseOnRows) {
  for (int round = 0; round < 60 && !HasFatalFailure(); ++round) {
    Layer l = RandomLayer();
    l.batch = l.height = l.kernel_h = l.kernel_w = 1;
    l.strides = l.dilations = {1, 1};
    l.pads = {0, 0, 0, 0};
    l.to_float = false;
    SCOPED_TRACE(l.Name());
    const QuantizedConvParams p = Params(l);
    const QuantizedConvConstants constants = Constants(l);
    const Shape x_shape{1, l.channels, 1, l.width}, y_shape{1, l.out_channels, 1, l.width};
    const Tensor x = RandomBytes(x_shape, DType::kUint8, random_);
    const Tensor addend = RandomBytes(y_shape, DType::kUint8, random_);
    Tensor expected(DType::kUint8, y_shape);
    std::vector<TensorView> inputs(6);
    inputs[0] = x.view();
    if (l.addend) inputs[kQuantizedAddend] = addend.view();
    RunKernel(*MakeReferenceQuantizedConv(p, constants), inputs, expected, 1);

    const std::int64_t in_stride = ChannelsLastLayout::PixelStride(l.channels) + UpTo(40);
    const std::int64_t out_stride = ChannelsLastLayout::PixelStride(l.out_channels) + UpTo(40);
    std::vector<std::uint8_t> in(static_cast<std::size_t>(in_stride * l.width), 77);
    std::vector<std::uint8_t> add(static_cast<std::size_t>(out_stride * l.width), 77), out = add;
    const auto at = [&](std::int64_t stride, std::int64_t pixel, std::int64_t channel) {
      return static_cast<std::size_t>(stride * pixel + channel);
    };
    for (std::int64_t i = 0; i < l.width; ++i) {
      for (std::int64_t c = 0; c < l.channels; ++c) {
        in[at(in_stride, i, c)] = x.data<std::uint8_t>()[c * l.width + i];
      }
      for (std::int64_t c = 0; c < l.out_channels; ++c) {
        add[at(out_stride, i, c)] = addend.data<std::uint8_t>()[c * l.width + i];
      }
    }
    PackCache packs;
    const auto plan = MakeQuantizedPointwisePlan(p, constants, packs);
    RunQuantizedPointwise(*plan, in.data(), in_stride, l.width, l.addend ? add.data() : nullptr,
                          out.data(), out_stride);
    for (std::int64_t i = 0; i < l.width; ++i) {
      for (std::int64_t c = 0; c < l.out_channels; ++c) {
        ASSERT_EQ(out[at(out_stride, i, c)], expected.data<std::uint8_t>()[c * l.width + i])
            << "pixel " << i << ", channel " << c;
      }
      for (std::int64_t c = ChannelsLastLayout::PixelStride(l.out_channels); c < out_stride; ++c) {
        ASSERT_EQ(out[at(out_stride, i, c)], 77) << "beyond pixel " << i;
      }
    }
  }
}

TEST(QuantizedPointwise, RefusesOtherConvolutions) {
  OpNode node{.name = "test", .type = "QuantizedConv", .opset = 17, .attributes = {}};
  WriteQuantization({1, 0}, "y", node.attributes);
  const QuantizedConvParams p = ReadQuantizedConv(node, {1, 4, 5, 5}, {2, 4, 3, 3}, false);
  PackCache packs;
  EXPECT_THROW(MakeQuantizedPointwisePlan(p, {}, packs), Error);
}

INSTANTIATE_TEST_SUITE_P(Targets, QuantizedGemmConvTest, testing::ValuesIn(AvailableCpuTargets()));

}  // namespace
}  // namespace tessera
