// Conv and ConvTranspose over any number of axes.
#include <algorithm>
#include <cmath>

#include "ops/conv.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;

struct Case {
  const char* type;
  Shape x, w;
  Ints strides, dilations, pads;
  std::int64_t groups = 1;
  Ints output_padding = {};
};

std::vector<std::int64_t> Coordinates(const Shape& shape, std::int64_t index) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(shape.rank()));
  for (int d = shape.rank(); d-- > 0; index /= shape[d]) {
    at[static_cast<std::size_t>(d)] = index % shape[d];
  }
  return at;
}

// By definition, one product at a time: each pair of a small pixel (of Y, or of X where the
// convolution is transposed) and a weight meets one large pixel (of X, or of Y), if that exists.
std::vector<double> Expected(const Case& c, const Tensor& x, const Tensor& w, const Tensor& bias,
                             const Shape& out) {
  const bool transposed = std::string(c.type) == "ConvTranspose";
  const Shape &small = transposed ? c.x : out, &large = transposed ? out : c.x;
  const std::int64_t group_out = out[1] / c.groups, group_in = c.x[1] / c.groups;
  std::vector<double> y;
  const std::int64_t plane = out.NumElements(2, out.rank());
  for (std::int64_t i = 0; i < out.NumElements(); ++i) {
    y.push_back(static_cast<double>(bias.data<float>()[i / plane % out[1]]));
  }
  const auto large_strides = RowMajorStrides(large);
  for (std::int64_t s = 0; s < small.NumElements(); ++s) {
    const auto at = Coordinates(small, s);
    for (std::int64_t k = 0; k < c.w.NumElements(); ++k) {
      const auto tap = Coordinates(c.w, k);
      const std::int64_t group = tap[0] / (transposed ? group_in : group_out);
      // W is [small channel, large channel within the group, ...] both ways.
      if (at[1] != tap[0]) continue;
      const std::int64_t large_channel = group * (transposed ? group_out : group_in) + tap[1];
      std::int64_t place = at[0] * large_strides[0] + large_channel * large_strides[1];
      bool inside = true;
      for (std::size_t a = 2; a < at.size(); ++a) {
        const std::int64_t l =
            at[a] * c.strides[a - 2] - c.pads[a - 2] + tap[a] * c.dilations[a - 2];
        inside = inside && l >= 0 && l < large[static_cast<int>(a)];
        place += l * large_strides[a];
      }
      if (!inside) continue;
      const auto weight = static_cast<double>(w.data<float>()[k]);
      if (transposed) {
        y[static_cast<std::size_t>(place)] += weight * static_cast<double>(x.data<float>()[s]);
      } else {
        y[static_cast<std::size_t>(s)] += weight * static_cast<double>(x.data<float>()[place]);
      }
    }
  }
  return y;
}

void Check(const Case& c) {
  std::mt19937 random(31);
  const Tensor x = RandomTensor(c.x, random), w = RandomTensor(c.w, random);
  const bool transposed = std::string(c.type) == "ConvTranspose";
  const Tensor bias = RandomTensor({transposed ? c.w[1] * c.groups : c.w[0]}, random);
  OpCall call(c.type);
  call.Attr("strides", c.strides).Attr("dilations", c.dilations).Attr("pads", c.pads);
  call.Attr("group", c.groups).In(x.Clone()).In(w.Clone()).In(bias.Clone());
  if (!c.output_padding.empty()) call.Attr("output_padding", c.output_padding);
  const Tensor y = call.RunOne(2e-5);
  const std::vector<double> expected = Expected(c, x, w, bias, y.shape());
  for (std::int64_t i = 0; i < y.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(y.data<float>()[i]), expected[static_cast<std::size_t>(i)],
                1e-5)
        << c.type << " X " << c.x << " W " << c.w << ", element " << i;
  }
}

TEST(ConvNd, FollowsTheDefinition) {
  Check({"Conv", {2, 3, 11}, {4, 3, 3}, {2}, {1}, {1, 0}});
  Check({"Conv", {1, 20, 40}, {33, 20, 5}, {1}, {2}, {4, 4}});
  Check({"Conv", {1, 4, 9}, {4, 1, 2}, {1}, {3}, {0, 2}, 4});
  Check({"Conv", {1, 2, 4, 5, 6}, {3, 2, 2, 3, 2}, {1, 1, 1}, {1, 1, 1}, {0, 1, 0, 1, 2, 0}});
  Check({"Conv", {2, 4, 5, 3, 9}, {6, 2, 3, 1, 2}, {2, 1, 3}, {1, 2, 2}, {2, 0, 1, 1, 0, 2}, 2});
  Check({"Conv", {1, 2, 7, 9, 11}, {2, 2, 2, 2, 2}, {1, 2, 1}, {3, 2, 5}, {3, 1, 4, 0, 1, 2}});
  Check({"Conv",
         {1, 2, 3, 3, 3, 3},
         {2, 2, 2, 2, 2, 2},
         {1, 1, 1, 1},
         {1, 1, 1, 1},
         {0, 1, 0, 1, 1, 0, 1, 0}});
  Check({"Conv", {1, 3, 3, 70, 5}, {7, 3, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1, 1, 1, 1}});
}

TEST(ConvNd, ChoosesItsKernel) {
  const auto kernel = [](const Shape& x, const Shape& w, OpCall::Way way) {
    std::mt19937 random(1);
    return OpCall("Conv").In(RandomTensor(x, random)).In(RandomTensor(w, random)).KernelName(way);
  };
  EXPECT_EQ(kernel({1, 2, 4, 4, 4}, {2, 2, 2, 2, 2}, {}), "conv_gemm");
  EXPECT_EQ(kernel({1, 2, 4, 4, 4}, {2, 2, 2, 2, 2}, {.reference = true}), "conv_reference");
  EXPECT_EQ(kernel({1, 2, 4, 4}, {2, 2, 2, 2}, {.constant = false}), "conv_gemm");
  EXPECT_NE(kernel({1, 2, 8}, {2, 2, 2}, {}), "conv_gemm");  // a 2-D kernel of height 1
}

TEST(ConvNd, ComputesDoubles) {
  const Tensor y = OpCall("Conv")
                       .In(Values<double>({1, 1, 1, 1, 2}, {1e-30, 1}))
                       .In(Values<double>({1, 1, 1, 1, 2}, {1, 1e-30}))
                       .RunOne();
  EXPECT_DOUBLE_EQ(y.data<double>()[0], 2e-30);
  EXPECT_THROW(
      OpCall("Conv").In(Iota<std::int32_t>({1, 1, 2})).In(Iota<std::int32_t>({1, 1, 2})).Infer(),
      Error);
  EXPECT_EQ(OpCall("Conv").In(Iota({0, 1, 2, 2, 2})).In(Iota({1, 1, 1, 1, 1})).RunOne().shape(),
            (Shape{0, 1, 2, 2, 2}));
}

TEST(ConvTranspose, FollowsTheDefinition) {
  Check({"ConvTranspose", {1, 3, 4, 5}, {3, 2, 3, 3}, {1, 1}, {1, 1}, {0, 0, 0, 0}});
  Check({"ConvTranspose", {2, 3, 4, 5}, {3, 2, 4, 3}, {2, 3}, {1, 1}, {1, 0, 2, 1}});
  Check({"ConvTranspose", {1, 4, 5, 4}, {4, 3, 3, 2}, {2, 2}, {2, 3}, {1, 2, 0, 1}, 2, {1, 0}});
  Check({"ConvTranspose", {1, 4, 3, 70}, {4, 1, 3, 2}, {1, 2}, {1, 1}, {0, 0, 0, 0}, 4});
  Check({"ConvTranspose", {1, 2, 7}, {2, 3, 4}, {3}, {1}, {1, 2}, 1, {2}});
  Check({"ConvTranspose",
         {1, 2, 2, 3, 2},
         {2, 2, 2, 3, 2},
         {2, 1, 3},
         {1, 2, 1},
         {0, 1, 1, 1, 0, 0}});
  Check({"ConvTranspose", {1, 1, 3, 3}, {1, 1, 1, 1}, {3, 2}, {1, 1}, {0, 0, 0, 0}});
}

TEST(ConvTranspose, PadsForAShape) {
  const auto call = [](int opset = 11) {
    return OpCall("ConvTranspose", opset)
        .Attr("strides", Ints{2})
        .In(Floats({1, 1, 2}, {1, 10}))
        .In(Floats({1, 1, 3}, {1, 2, 3}));
  };
  // All that there is: 1 2 13 20 30.
  const auto run = [](const OpCall& c) { return ToVector<float>(c.RunOne()); };
  EXPECT_EQ(run(call()), (std::vector<float>{1, 2, 13, 20, 30}));
  EXPECT_EQ(run(call().Attr("auto_pad", "VALID")), (std::vector<float>{1, 2, 13, 20, 30}));
  EXPECT_EQ(run(call().Attr("auto_pad", "SAME_UPPER")), (std::vector<float>{1, 2, 13, 20}));
  EXPECT_EQ(run(call().Attr("auto_pad", "SAME_LOWER")), (std::vector<float>{2, 13, 20, 30}));
  EXPECT_EQ(run(call().Attr("output_shape", Ints{4})), (std::vector<float>{2, 13, 20, 30}));
  EXPECT_EQ(run(call().Attr("output_shape", Ints{4}).Attr("auto_pad", "SAME_UPPER")),
            (std::vector<float>{1, 2, 13, 20}));
  EXPECT_EQ(run(call().Attr("output_shape", Ints{7})),
            (std::vector<float>{1, 2, 13, 20, 30, 0, 0}));
  EXPECT_EQ(run(call().Attr("output_padding", Ints{1})), (std::vector<float>{1, 2, 13, 20, 30, 0}));
  EXPECT_EQ(run(call().Attr("pads", Ints{1, 1})), (std::vector<float>{2, 13, 20}));
}

TEST(ConvTranspose, RefusesWhatDoesNotFit) {
  const auto call = [](const Shape& x, const Shape& w) {
    return OpCall("ConvTranspose").In(Iota(x)).In(Iota(w));
  };
  EXPECT_NO_THROW(call({1, 4, 3, 3}, {4, 2, 3, 3}).Infer());
  EXPECT_THROW(call({1, 3, 3, 3}, {4, 2, 3, 3}).Infer(), Error);
  EXPECT_THROW(call({1, 4, 3, 3}, {4, 2, 3}).Infer(), Error);
  EXPECT_THROW(call({1, 4}, {4, 2}).Infer(), Error);
  EXPECT_THROW(call({1, 4, 3, 3}, {4, 2, 3, 0}).Infer(), Error);
  EXPECT_THROW(call({1, 4, 3, 3}, {4, 2, 3, 3}).Attr("group", 3).Infer(), Error);
  EXPECT_THROW(call({1, 4, 3, 3}, {4, 2, 3, 3}).Attr("strides", Ints{0, 1}).Infer(), Error);
  EXPECT_THROW(call({1, 4, 3, 3}, {4, 2, 3, 3}).Attr("pads", Ints{5, 0, 5, 0}).Infer(), Error);
  EXPECT_THROW(call({1, 4, 3, 3}, {4, 2, 3, 3}).Attr("kernel_shape", Ints{2, 3}).Infer(), Error);
  EXPECT_THROW(call({1, 4, 3, 3}, {4, 2, 3, 3}).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(call({1, 4, 3, 3}, {4, 2, 3, 3})
                   .Attr("pads", Ints{1, 1, 1, 1})
                   .Attr("auto_pad", "SAME_UPPER")
                   .Infer(),
               Error);
  const Ints huge{std::int64_t{1} << 30, 1};
  EXPECT_THROW(call({1, 4, 3000, 1}, {4, 2, 3, 3}).Attr("strides", huge).Infer(), Error);
}

// An output pixel depends on the input pixels of the field, and on no others.
TEST(ConvTranspose, HasTheFieldOfItsWindow) {
  constexpr std::int64_t n = 12;
  for (const std::int64_t kernel : {1, 2, 4, 9}) {
    const auto make = [&](Tensor x) {
      return OpCall("ConvTranspose")
          .Attr("strides", Ints{1, 3})
          .Attr("pads", Ints{0, 1, 0, 0})
          .In(std::move(x))
          .Const(
              Floats({1, 1, 1, kernel}, std::vector<float>(static_cast<std::size_t>(kernel), 1.f)));
    };
    const auto field = make(Iota({1, 1, 2, n})).Field();
    ASSERT_TRUE(field);
    EXPECT_EQ((*field)[1].num, 3);
    double lo = 1e9, hi = -1e9;
    for (std::int64_t i = 4; i < 8; ++i) {
      Tensor impulse = Floats({1, 1, 2, n}, std::vector<float>(2 * n));
      impulse.data<float>()[i] = 1;
      const Tensor y = make(std::move(impulse)).Run({})[0].Clone();
      for (std::int64_t p = 0; p < y.shape()[3]; ++p) {
        if (y.data<float>()[p] == 0) continue;
        lo = std::min(lo, static_cast<double>(i) - static_cast<double>(p) / 3);
        hi = std::max(hi, static_cast<double>(i) - static_cast<double>(p) / 3);
      }
    }
    EXPECT_NEAR((*field)[1].lo, lo, 1e-9);
    EXPECT_NEAR((*field)[1].hi, hi, 1e-9);
  }
}

TEST(InterleavePhases, PutsPhasesInTheirPlaces) {
  for (const bool phase_major : {false, true}) {
    for (const std::int64_t channels : {1, 3, 16, 20}) {
      const std::int64_t padded = phase_major ? (channels + 15) / 16 * 16 : channels;
      const Shape shape{2, padded * 6, 4, 5};
      std::mt19937 random(3);
      const Tensor x = RandomTensor(shape, random);
      const std::int64_t phase_stride = phase_major ? padded : 1;
      const std::int64_t channel_stride = phase_major ? 1 : 6;
      const OpCall call = OpCall("InterleavePhases")
                              .Attr("channels", channels)
                              .Attr("phases", Ints{2, 3})
                              .Attr("crop", Ints{1, 2, 2, 0})
                              .Attr("phase_stride", phase_stride)
                              .Attr("channel_stride", channel_stride)
                              .In(x.Clone());
      const Tensor y = call.RunOne(0);
      ASSERT_EQ(y.shape(), (Shape{2, channels, 5, 13}));
      EXPECT_EQ(call.BlockedChoice().outputs[0],
                phase_major ? Layout::kBlocked : Layout::kRowMajor);
      const float* value = y.data<float>();
      for (std::int64_t n = 0; n < 2; ++n) {
        for (std::int64_t m = 0; m < channels; ++m) {
          for (std::int64_t row = 1; row < 6; ++row) {
            for (std::int64_t column = 2; column < 15; ++column) {
              const std::int64_t c = (row % 2 * 3 + column % 3) * phase_stride + m * channel_stride;
              ASSERT_EQ(*value++,
                        x.data<float>()[((n * shape[1] + c) * 4 + row / 2) * 5 + column / 3]);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
