// ConvInteger and QLinearConv.
#include <cmath>
#include <optional>

#include "tests/every_target.h"
#include "tests/ops/byte_tensors.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

struct ConvCase {
  Shape x, w;  // [N, C, spatial...], [M, C / group, spatial...]
  std::int64_t group = 1;
  std::vector<std::int64_t> strides = {}, dilations = {}, pads = {};
};

// By the definition, one product at a time, with indices of three spatial axes.
Tensor ExpectedSums(const ConvCase& c, const Tensor& x, std::int64_t x_zero, const Tensor& w,
                    const std::vector<std::int64_t>& w_zeros) {
  const int axes = c.x.rank() - 2;
  std::int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
               dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, out[3] = {1, 1, 1};
  Shape shape{c.x[0], c.w[0]};
  for (int d = 0; d < axes; ++d) {
    const auto u = static_cast<std::size_t>(d);
    in[d] = c.x[d + 2];
    kernel[d] = c.w[d + 2];
    if (!c.strides.empty()) stride[d] = c.strides[u];
    if (!c.dilations.empty()) dilation[d] = c.dilations[u];
    std::int64_t pad_end = 0;
    if (!c.pads.empty()) {
      pad[d] = c.pads[u];
      pad_end = c.pads[u + static_cast<std::size_t>(axes)];
    }
    out[d] = (in[d] + pad[d] + pad_end - (kernel[d] - 1) * dilation[d] - 1) / stride[d] + 1;
    shape.PushBack(out[d]);
  }
  Tensor y(DType::kInt32, shape);
  std::int32_t* to = y.data<std::int32_t>();
  const std::int64_t in_group = c.w[1], out_group = c.w[0] / c.group;
  for (std::int64_t n = 0; n < c.x[0]; ++n) {
    for (std::int64_t m = 0; m < c.w[0]; ++m) {
      const std::int64_t w_zero = w_zeros[w_zeros.size() == 1 ? 0 : static_cast<std::size_t>(m)];
      for (std::int64_t p = 0; p < out[0] * out[1] * out[2]; ++p) {
        const std::int64_t at[3] = {p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
        std::int64_t sum = 0;
        for (std::int64_t l = 0; l < in_group * kernel[0] * kernel[1] * kernel[2]; ++l) {
          const std::int64_t tap[3] = {l / (kernel[1] * kernel[2]) % kernel[0],
                                       l / kernel[2] % kernel[1], l % kernel[2]};
          const std::int64_t channel =
              m / out_group * in_group + l / (kernel[0] * kernel[1] * kernel[2]);
          std::int64_t place = n * c.x[1] + channel;
          bool inside = true;
          for (int d = 0; d < 3; ++d) {
            const std::int64_t i = at[d] * stride[d] - pad[d] + tap[d] * dilation[d];
            inside = inside && i >= 0 && i < in[d];
            place = place * in[d] + i;
          }
          if (!inside) continue;
          sum += (Element(x, place) - x_zero) *
                 (Element(w, m * in_group * kernel[0] * kernel[1] * kernel[2] + l) - w_zero);
        }
        *to++ = static_cast<std::int32_t>(sum);
      }
    }
  }
  return y;
}

const ConvCase kCases[] = {
    {{1, 1, 3, 3}, {1, 1, 2, 2}},
    {{1, 1, 3, 3}, {1, 1, 2, 2}, 1, {}, {}, {1, 1, 1, 1}},
    {{2, 3, 7, 9}, {5, 3, 3, 3}, 1, {}, {}, {1, 1, 1, 1}},
    {{1, 8, 10, 11}, {30, 8, 3, 2}, 1, {2, 3}, {}, {0, 1, 2, 0}},
    {{1, 4, 12, 40}, {6, 2, 3, 3}, 2, {1, 1}, {2, 3}, {2, 3, 2, 3}},
    {{1, 16, 20, 20}, {16, 1, 5, 5}, 16, {}, {}, {2, 2, 2, 2}},  // depthwise
    {{2, 6, 9, 9}, {12, 1, 3, 3}, 6, {2, 2}, {}, {1, 1, 1, 1}},  // two outputs a channel
    {{1, 24, 13, 17}, {7, 24, 1, 1}},                            // pointwise
    {{1, 5, 8, 8}, {4, 5, 1, 1}, 1, {2, 2}},                     // and by steps
    {{3, 4, 50}, {8, 4, 5}, 1, {2}, {2}, {3, 4}},                // one axis
    {{1, 3, 5, 6, 7}, {4, 3, 2, 3, 2}, 1, {1, 2, 1}, {2, 1, 2}, {1, 0, 2, 0, 1, 1}},
    {{1, 2, 4, 5, 6}, {3, 2, 1, 1, 3}, 1, {}, {}, {0, 0, 1, 0, 0, 1}},  // axes that are merged
    {{1, 2, 1, 1}, {3, 2, 5, 5}, 1, {}, {}, {4, 4, 4, 4}},              // mostly pads
    {{0, 3, 4, 4}, {2, 3, 3, 3}},
    {{1, 1, 2, 700}, {2, 1, 1, 3}},
};

void SetAttributes(const ConvCase& c, OpCall& call) {
  call.Attr("group", c.group);
  if (!c.strides.empty()) call.Attr("strides", c.strides);
  if (!c.dilations.empty()) call.Attr("dilations", c.dilations);
  if (!c.pads.empty()) call.Attr("pads", c.pads);
}

std::vector<std::int64_t> Elements(const Tensor& t) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < t.size(); ++i) values.push_back(Element(t, i));
  return values;
}

TEST(ConvInteger, FollowsTheDefinition) {
  std::mt19937 random(1);
  for (const ConvCase& c : kCases) {
    for (const DType x_type : {DType::kUint8, DType::kInt8}) {
      for (const DType w_type : {DType::kUint8, DType::kInt8}) {
        const Tensor x = RandomBytes(c.x, x_type, random), w = RandomBytes(c.w, w_type, random);
        const Tensor x_zero = RandomBytes({}, x_type, random);
        const bool per_channel = random() % 2 != 0;
        const Tensor w_zero = RandomBytes(per_channel ? Shape{c.w[0]} : Shape{}, w_type, random);
        OpCall call("ConvInteger", 10);
        call.In(x.Clone()).In(w.Clone()).In(x_zero.Clone()).In(w_zero.Clone());
        SetAttributes(c, call);
        const Tensor expected = ExpectedSums(c, x, Element(x_zero, 0), w, Elements(w_zero));
        const Tensor y = call.RunOne();
        ASSERT_EQ(y.shape(), expected.shape());
        ASSERT_EQ(ToVector<std::int32_t>(y), ToVector<std::int32_t>(expected)) << c.x << ' ' << c.w;
      }
    }
  }
}

TEST(ConvInteger, ZeroPointsAreOptional) {
  OpCall call("ConvInteger", 10);
  call.In(Values<std::uint8_t>({1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10}));
  call.In(Values<std::uint8_t>({1, 1, 2, 2}, {1, 1, 1, 1}));
  EXPECT_EQ(ToVector<std::int32_t>(call.RunOne()), (std::vector<std::int32_t>{16, 20, 28, 32}));
  call.Absent().In(Values<std::uint8_t>({1}, {2}));
  EXPECT_EQ(ToVector<std::int32_t>(call.RunOne()), (std::vector<std::int32_t>{-16, -20, -28, -32}));
}

TEST(ConvInteger, PadsAreTheZeroPoint) {
  for (const char* auto_pad : {"SAME_UPPER", "SAME_LOWER"}) {
    OpCall call("ConvInteger", 10);
    call.In(Values<std::uint8_t>({1, 1, 3}, {11, 12, 13}));
    call.In(Values<std::int8_t>({1, 1, 2}, {1, 10})).In(Values<std::uint8_t>({}, {10}));
    call.Attr("auto_pad", auto_pad);
    const bool upper = auto_pad[5] == 'U';
    EXPECT_EQ(
        ToVector<std::int32_t>(call.RunOne()),
        (upper ? std::vector<std::int32_t>{21, 32, 3} : std::vector<std::int32_t>{10, 21, 32}));
  }
}

TEST(ConvInteger, ExtremesDoNotOverflow) {
  // -255 * 255 for every product, more of them than pairs of 16 bits could hold.
  const std::int64_t channels = 1000;
  OpCall call("ConvInteger", 10);
  call.In(
      Tensor::FromVector<std::uint8_t>({1, channels, 1, 1}, std::vector<std::uint8_t>(1000, 255)));
  call.In(
      Tensor::FromVector<std::int8_t>({1, channels, 1, 1}, std::vector<std::int8_t>(1000, -128)));
  call.In(Values<std::uint8_t>({}, {0})).In(Values<std::int8_t>({}, {127}));
  OnEveryTarget([&] { EXPECT_EQ(*call.RunOne().data<std::int32_t>(), -255 * 255 * 1000); });
}

TEST(ConvInteger, EveryTargetGivesTheSameSums) {
  std::mt19937 random(2);
  for (const ConvCase& c : kCases) {
    OpCall call("ConvInteger", 10);
    call.In(RandomBytes(c.x, DType::kUint8, random)).In(RandomBytes(c.w, DType::kInt8, random));
    SetAttributes(c, call);
    OnEveryTarget([&] { call.RunAll(); });
  }
}

TEST(ConvInteger, RefusesWhatDoesNotFit) {
  const auto refused = [](const Shape& x, const Shape& w, Tensor x_zero, Tensor w_zero) {
    OpCall call("ConvInteger", 10);
    call.In(Iota<std::uint8_t>(x)).In(Iota<std::int8_t>(w)).In(std::move(x_zero));
    call.In(std::move(w_zero));
    EXPECT_THROW(call.Infer(), Error);
  };
  const auto u8 = [](const Shape& s) { return Iota<std::uint8_t>(s); };
  const auto s8 = [](const Shape& s) { return Iota<std::int8_t>(s); };
  refused({1, 3, 4, 4}, {2, 3, 3, 3}, s8({}), s8({}));
  refused({1, 3, 4, 4}, {2, 3, 3, 3}, u8({}), u8({}));
  refused({1, 3, 4, 4}, {2, 3, 3, 3}, u8({3}), s8({}));
  refused({1, 3, 4, 4}, {2, 3, 3, 3}, u8({}), s8({3}));
  refused({1, 3, 4, 4}, {2, 2, 3, 3}, u8({}), s8({}));
  refused({1, 3, 2, 4}, {2, 3, 3, 3}, u8({}), s8({}));
  refused({1, 3}, {2, 3}, u8({}), s8({}));
  OpCall floats("ConvInteger", 10);
  floats.In(Iota({1, 1, 3, 3})).In(Iota<std::uint8_t>({1, 1, 2, 2}));
  EXPECT_THROW(floats.Infer(), Error);
}

TEST(ConvInteger, NamesItsKernels) {
  OpCall call("ConvInteger", 10);
  call.In(Iota<std::uint8_t>({1, 1, 3, 3})).In(Iota<std::int8_t>({1, 1, 3, 3}));
  EXPECT_EQ(call.KernelName({}), "integer_conv_columns");
  EXPECT_EQ(call.KernelName({.constant = false}), "integer_conv_reference");
  EXPECT_EQ(call.KernelName({.reference = true}), "integer_conv_reference");
}

// --- QLinearConv

TEST(QLinearConv, FollowsTheDefinition) {
  std::mt19937 random(3);
  for (const ConvCase& c : kCases) {
    for (int types = 0; types < 8; ++types) {
      const auto type = [&](int bit) {
        return (types >> bit & 1) != 0 ? DType::kInt8 : DType::kUint8;
      };
      const Tensor x = RandomBytes(c.x, type(0), random), w = RandomBytes(c.w, type(1), random);
      const Tensor x_zero = RandomBytes({}, type(0), random);
      const Tensor y_zero = RandomBytes({1}, type(2), random);
      const bool per_channel = random() % 2 != 0;
      const Shape of_w = per_channel ? Shape{c.w[0]} : Shape{};
      const Tensor w_zero = RandomBytes(of_w, type(1), random);
      Tensor w_scale = RandomTensor(of_w, random);
      for (float& s : w_scale.values<float>()) s = 0.011f * (s + 1.5f);
      const float x_scale = 0.037f, y_scale = 0.9f;
      OpCall call("QLinearConv", 10);
      call.In(x.Clone()).In(Floats({}, {x_scale})).In(x_zero.Clone());
      call.In(w.Clone()).In(w_scale.Clone()).In(w_zero.Clone());
      call.In(Floats({}, {y_scale})).In(y_zero.Clone());
      std::vector<std::int32_t> bias(static_cast<std::size_t>(c.w[0]));
      if (random() % 2 != 0) {
        for (auto& b : bias) b = static_cast<std::int32_t>(random()) >> 18;
        call.In(Values<std::int32_t>({c.w[0]}, bias));
      }
      SetAttributes(c, call);
      const Tensor sums = ExpectedSums(c, x, Element(x_zero, 0), w, Elements(w_zero));
      const Tensor y = call.RunOne();
      ASSERT_EQ(y.dtype(), type(2));
      ASSERT_EQ(y.shape(), sums.shape());
      const std::int64_t lowest = type(2) == DType::kInt8 ? -128 : 0;
      for (std::int64_t i = 0; i < y.size(); ++i) {
        const auto m = static_cast<std::size_t>(i / (y.size() / (c.x[0] * c.w[0])) % c.w[0]);
        const float multiplier = x_scale * w_scale.data<float>()[per_channel ? m : 0] / y_scale;
        const float real = static_cast<float>(sums.data<std::int32_t>()[i] + bias[m]) * multiplier;
        const auto expected = static_cast<std::int64_t>(std::nearbyint(real)) + Element(y_zero, 0);
        ASSERT_EQ(Element(y, i), std::clamp(expected, lowest, lowest + 255)) << c.x << ' ' << c.w;
      }
    }
  }
}

TEST(QLinearConv, RoundsHalfToEvenBeforeItAddsTheZeroPoint) {
  OpCall call("QLinearConv", 10);
  call.In(Values<std::int8_t>({1, 1, 6}, {1, 2, 3, 5, -1, -3})).In(Floats({}, {0.5f}));
  call.In(Values<std::int8_t>({}, {0})).In(Values<std::int8_t>({1, 1, 1}, {1}));
  call.In(Floats({1}, {1})).In(Values<std::int8_t>({1}, {0})).In(Floats({}, {1}));
  call.In(Values<std::int8_t>({}, {1}));
  EXPECT_EQ(ToVector<std::int8_t>(call.RunOne()), (std::vector<std::int8_t>{1, 2, 3, 3, 1, -1}));
}

TEST(QLinearConv, RefusesWhatDoesNotFit) {
  struct Inputs {
    Tensor x = Iota<std::uint8_t>({1, 3, 4, 4}), x_scale = Iota({1}),
           x_zero = Iota<std::uint8_t>({1}), w = Iota<std::int8_t>({2, 3, 3, 3}),
           w_scale = Iota({2}), w_zero = Iota<std::int8_t>({2}), y_scale = Iota({}),
           y_zero = Iota<std::int8_t>({});
    std::optional<Tensor> bias;
  };
  const auto call = [](Inputs in) {
    OpCall call("QLinearConv", 10);
    call.In(std::move(in.x)).In(std::move(in.x_scale)).In(std::move(in.x_zero));
    call.In(std::move(in.w)).In(std::move(in.w_scale)).In(std::move(in.w_zero));
    call.In(std::move(in.y_scale)).In(std::move(in.y_zero));
    if (in.bias) call.In(std::move(*in.bias));
    return call;
  };
  const auto refused = [&](auto change) {
    Inputs in;
    change(in);
    EXPECT_THROW(call(std::move(in)).Infer(), Error);
  };
  EXPECT_EQ(call({}).Infer()[0].shape, (Shape{1, 2, 2, 2}));
  refused([](Inputs& in) { in.x_zero = Iota<std::int8_t>({1}); });
  refused([](Inputs& in) { in.w_zero = Iota<std::uint8_t>({2}); });
  refused([](Inputs& in) { in.y_zero = Iota<std::int32_t>({}); });
  refused([](Inputs& in) { in.x_scale = Iota({3}); });
  refused([](Inputs& in) { in.w_scale = Iota({3}); });
  refused([](Inputs& in) { in.y_scale = Iota({2}); });
  refused([](Inputs& in) { in.w_scale = Iota<double>({2}); });
  refused([](Inputs& in) { in.bias = Iota<std::int32_t>({3}); });
  refused([](Inputs& in) { in.bias = Iota({2}); });
  refused([](Inputs& in) { in.x = Iota<std::uint8_t>({1, 2, 4, 4}); });
}

TEST(QLinearConv, Field) {
  OpCall call("QLinearConv", 10);
  call.In(Iota<std::uint8_t>({1, 1, 8, 8})).In(Iota({})).In(Iota<std::uint8_t>({}));
  call.Const(Iota<std::int8_t>({1, 1, 3, 5})).In(Iota({})).In(Iota<std::int8_t>({}));
  call.In(Iota({})).In(Iota<std::int8_t>({}));
  call.Attr("pads", std::vector<std::int64_t>{1, 2, 1, 2});
  call.Attr("strides", std::vector<std::int64_t>{1, 2});
  const auto field = call.Field();
  ASSERT_TRUE(field.has_value());
  EXPECT_EQ((*field)[0].lo, -1);
  EXPECT_EQ((*field)[0].hi, 1);
  EXPECT_EQ((*field)[1].den, 2);
  EXPECT_EQ((*field)[1].lo, -2);
  EXPECT_EQ((*field)[1].hi, 2);
}

}  // namespace
}  // namespace tessera
