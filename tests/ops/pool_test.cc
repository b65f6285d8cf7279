#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

struct PoolCase {
  std::int64_t kernel[2], stride[2], dilation[2], pads[4];
  bool ceil = false, count_pads = false;
};

// By definition: every element of every window, tested for being inside.
Tensor Expected(const PoolCase& c, bool max, const Tensor& x) {
  const Shape& in = x.shape();
  std::int64_t out[2];
  for (int a = 0; a < 2; ++a) {
    const std::int64_t extent = (c.kernel[a] - 1) * c.dilation[a] + 1;
    const double steps = static_cast<double>(in[a + 2] + c.pads[a] + c.pads[a + 2] - extent) /
                         static_cast<double>(c.stride[a]);
    out[a] = static_cast<std::int64_t>(c.ceil ? std::ceil(steps) : std::floor(steps)) + 1;
    if (c.ceil && (out[a] - 1) * c.stride[a] >= in[a + 2] + c.pads[a]) --out[a];
  }
  Tensor y(DType::kFloat32, {in[0], in[1], out[0], out[1]});
  float* to = y.data<float>();
  for (std::int64_t p = 0; p < in[0] * in[1]; ++p) {
    for (std::int64_t oy = 0; oy < out[0]; ++oy) {
      for (std::int64_t ox = 0; ox < out[1]; ++ox) {
        double sum = 0, highest = -1e30;
        int count = 0;
        for (std::int64_t ky = 0; ky < c.kernel[0]; ++ky) {
          for (std::int64_t kx = 0; kx < c.kernel[1]; ++kx) {
            const std::int64_t iy = oy * c.stride[0] + ky * c.dilation[0] - c.pads[0];
            const std::int64_t ix = ox * c.stride[1] + kx * c.dilation[1] - c.pads[1];
            const bool padded = iy < in[2] + c.pads[2] && ix < in[3] + c.pads[3];
            const bool inside = iy >= 0 && iy < in[2] && ix >= 0 && ix < in[3];
            if (c.count_pads ? padded : inside) ++count;
            if (!inside) continue;
            const auto v = static_cast<double>(x.data<float>()[(p * in[2] + iy) * in[3] + ix]);
            sum += v;
            highest = std::max(highest, v);
          }
        }
        *to++ = static_cast<float>(max ? highest : sum / count);
      }
    }
  }
  return y;
}

TEST(Pool, FollowsTheDefinition) {
  const PoolCase cases[] = {
      {{2, 2}, {2, 2}, {1, 1}, {0, 0, 0, 0}},
      {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}},
      {{3, 3}, {1, 1}, {1, 1}, {1, 1, 1, 1}, false, true},
      {{3, 2}, {2, 1}, {1, 1}, {0, 1, 2, 0}},
      {{3, 3}, {2, 2}, {1, 1}, {0, 0, 0, 0}, true},
      {{3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, true, true},
      {{2, 2}, {3, 3}, {1, 1}, {1, 1, 1, 1}, true, true},
      {{2, 3}, {1, 2}, {2, 3}, {1, 0, 1, 2}},
      {{2, 3}, {1, 2}, {2, 3}, {1, 0, 1, 2}, true, true},
      {{9, 10}, {1, 1}, {1, 1}, {0, 0, 0, 0}},
  };
  std::mt19937 random(14);
  for (const PoolCase& c : cases) {
    for (const bool max : {false, true}) {
      const Tensor x = RandomTensor({2, 19, 9, 10}, random);
      OpCall call(max ? "MaxPool" : "AveragePool", 19);
      call.Attr("kernel_shape", std::vector<std::int64_t>(c.kernel, c.kernel + 2));
      call.Attr("strides", std::vector<std::int64_t>(c.stride, c.stride + 2));
      call.Attr("dilations", std::vector<std::int64_t>(c.dilation, c.dilation + 2));
      call.Attr("pads", std::vector<std::int64_t>(c.pads, c.pads + 4));
      call.Attr("ceil_mode", c.ceil);
      if (!max) call.Attr("count_include_pad", c.count_pads);
      call.In(x.Clone());
      ExpectClose(call.RunOne(), Expected(c, max, x), 1e-6);
      EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kBlocked);
    }
  }
}

TEST(Pool, PadsAutomatically) {
  const auto call = [](const char* auto_pad) {
    return OpCall("MaxPool")
        .Attr("kernel_shape", std::vector<std::int64_t>{2})
        .Attr("auto_pad", auto_pad)
        .Attr("strides", std::vector<std::int64_t>{2})
        .In(Floats({1, 1, 5}, {1, 2, 3, 4, 5}));
  };
  EXPECT_EQ(ToVector<float>(call("SAME_UPPER").RunOne()), (std::vector<float>{2, 4, 5}));
  EXPECT_EQ(ToVector<float>(call("SAME_LOWER").RunOne()), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(ToVector<float>(call("VALID").RunOne()), (std::vector<float>{2, 4}));
  EXPECT_THROW(call("SAME").Infer(), Error);
}

TEST(Pool, TakesOtherTypes) {
  const auto k = std::vector<std::int64_t>{1, 2};
  EXPECT_EQ(ToVector<std::int8_t>(OpCall("MaxPool")
                                      .Attr("kernel_shape", k)
                                      .In(Values<std::int8_t>({1, 1, 1, 3}, {-5, -7, -128}))
                                      .RunOne()),
            (std::vector<std::int8_t>{-5, -7}));
  EXPECT_EQ(ToVector<double>(OpCall("AveragePool")
                                 .Attr("kernel_shape", k)
                                 .In(Values<double>({1, 1, 1, 3}, {1, 2, 4}))
                                 .RunOne()),
            (std::vector<double>{1.5, 3}));
  EXPECT_THROW(OpCall("AveragePool")
                   .Attr("kernel_shape", k)
                   .In(Values<std::int8_t>({1, 1, 1, 2}, {1, 2}))
                   .Infer(),
               Error);
}

TEST(Pool, RefusesWhatDoesNotFit) {
  using Ints = std::vector<std::int64_t>;
  const auto x = [] { return Iota({1, 1, 4, 4}); };
  EXPECT_THROW(OpCall("MaxPool").In(x()).Infer(), Error);
  EXPECT_THROW(OpCall("MaxPool").Attr("kernel_shape", Ints{2}).In(x()).Infer(), Error);
  EXPECT_THROW(OpCall("MaxPool").Attr("kernel_shape", Ints{5, 5}).In(x()).Infer(), Error);
  EXPECT_THROW(OpCall("MaxPool").Attr("kernel_shape", Ints{0, 2}).In(x()).Infer(), Error);
  EXPECT_THROW(OpCall("MaxPool")
                   .Attr("kernel_shape", Ints{2, 2})
                   .Attr("strides", Ints{0, 1})
                   .In(x())
                   .Infer(),
               Error);
  EXPECT_THROW(OpCall("MaxPool", 7).Attr("kernel_shape", Ints{2, 2}).In(x()).Outputs(2).Infer(),
               Error);
  EXPECT_THROW(OpCall("MaxPool").Attr("kernel_shape", Ints{}).In(Iota({2, 2})).Infer(), Error);
  EXPECT_THROW(
      OpCall("MaxPool").Attr("kernel_shape", Ints{2, 2}).Attr("storage_order", 2).In(x()).Infer(),
      Error);
  // 8-bit integers came with opset 12.
  const auto bytes = [] { return Values<std::uint8_t>({1, 1, 2, 2}, {1, 2, 3, 4}); };
  EXPECT_THROW(OpCall("MaxPool", 11).Attr("kernel_shape", Ints{2, 2}).In(bytes()).Infer(), Error);
  EXPECT_THROW(OpCall("LpPool").Attr("kernel_shape", Ints{2, 2}).Attr("p", 0).In(x()).Infer(),
               Error);
  EXPECT_THROW(OpCall("GlobalLpPool").Attr("p", -1).In(x()).Infer(), Error);
}

// A 3-D pool over each axis alone is a 1-D pool along it.
TEST(Pool, TakesAnyNumberOfAxes) {
  using Ints = std::vector<std::int64_t>;
  const auto call = [](const char* type, const Ints& kernel) {
    return OpCall(type).Attr("kernel_shape", kernel).In(Iota<double>({1, 2, 2, 3, 4}));
  };
  EXPECT_EQ(ToVector<double>(call("MaxPool", {2, 3, 4}).RunOne()), (std::vector<double>{23, 47}));
  EXPECT_EQ(ToVector<double>(call("AveragePool", {2, 3, 4}).RunOne()),
            (std::vector<double>{11.5, 35.5}));
  const Tensor middle = call("AveragePool", {1, 3, 1}).RunOne();
  EXPECT_EQ(middle.shape(), (Shape{1, 2, 2, 1, 4}));
  EXPECT_EQ(ToVector<double>(middle)[6], 18);  // of 14, 18 and 22
  const Tensor padded =
      call("AveragePool", {2, 1, 1}).Attr("pads", Ints{1, 0, 0, 0, 0, 0}).RunOne();
  EXPECT_EQ(padded.shape(), (Shape{1, 2, 2, 3, 4}));
  EXPECT_EQ(ToVector<double>(padded)[1], 1);
  EXPECT_EQ(ToVector<double>(padded)[13], 7);
  const Tensor counted = call("AveragePool", {2, 1, 1})
                             .Attr("pads", Ints{1, 0, 0, 0, 0, 0})
                             .Attr("count_include_pad", 1)
                             .RunOne();
  EXPECT_EQ(ToVector<double>(counted)[1], 0.5);
  EXPECT_EQ(call("MaxPool", {1, 1, 1}).RunOne().size(), 48);
}

TEST(Pool, GivesTheIndicesOfMaxima) {
  using Ints = std::vector<std::int64_t>;
  const auto run = [](int storage_order, Ints pads) {
    return OpCall("MaxPool")
        .Attr("kernel_shape", Ints{2, 2})
        .Attr("strides", Ints{1, 2})
        .Attr("storage_order", storage_order)
        .Attr("pads", std::move(pads))
        .In(Floats({1, 2, 2, 3}, {5, 1, 1, 5, 2, 9, 0, 0, 7, 3, 0, 7}))
        .Outputs(2)
        .RunAll();
  };
  std::vector<Tensor> out = run(0, {0, 0, 0, 0});
  EXPECT_EQ(ToVector<float>(out[0]), (std::vector<float>{5, 3}));
  EXPECT_EQ(ToVector<std::int64_t>(out[1]), (Ints{0, 9}));  // the first of equals
  out = run(0, {0, 0, 0, 1});
  EXPECT_EQ(ToVector<float>(out[0]), (std::vector<float>{5, 9, 3, 7}));
  EXPECT_EQ(ToVector<std::int64_t>(out[1]), (Ints{0, 5, 9, 8}));
  out = run(1, {0, 0, 0, 1});
  EXPECT_EQ(ToVector<std::int64_t>(out[1]), (Ints{0, 5, 7, 10}));
}

TEST(Pool, FindsMaximaAmongTheLowestValues) {
  const float low = -std::numeric_limits<float>::infinity();
  std::vector<Tensor> out = OpCall("MaxPool")
                                .Attr("kernel_shape", std::vector<std::int64_t>{1, 2})
                                .In(Floats({1, 1, 1, 2}, {low, low}))
                                .Outputs(2)
                                .RunAll();
  EXPECT_EQ(out[0].data<float>()[0], low);
  EXPECT_EQ(out[1].data<std::int64_t>()[0], 0);
  EXPECT_EQ(OpCall("MaxPool")
                .Attr("kernel_shape", std::vector<std::int64_t>{1, 2})
                .In(Floats({1, 1, 1, 2}, {low, low}))
                .RunOne()
                .data<float>()[0],
            low);
  EXPECT_EQ(OpCall("GlobalMaxPool").In(Floats({1, 1, 1, 2}, {low, low})).RunOne().data<float>()[0],
            low);
}

TEST(LpPool, IsTheNormOfEachWindow) {
  using Ints = std::vector<std::int64_t>;
  const auto run = [](int p) {
    return ToVector<float>(OpCall("LpPool")
                               .Attr("kernel_shape", Ints{2})
                               .Attr("pads", Ints{0, 1})
                               .Attr("p", p)
                               .In(Floats({1, 1, 3}, {3, -4, 0}))
                               .RunOne());
  };
  EXPECT_EQ(run(1), (std::vector<float>{7, 4, 0}));
  EXPECT_EQ(run(2), (std::vector<float>{5, 4, 0}));
  EXPECT_NEAR(run(3)[0], std::cbrt(91.0), 1e-5);
  const auto global = [](int p, Tensor x) {
    return OpCall("GlobalLpPool").Attr("p", p).In(std::move(x)).RunOne();
  };
  EXPECT_EQ(ToVector<float>(global(2, Floats({1, 2, 1, 2}, {3, -4, 0, 1}))),
            (std::vector<float>{5, 1}));
  EXPECT_NEAR(global(3, Values<double>({1, 1, 2}, {3, -4})).data<double>()[0], std::cbrt(91.0),
              1e-12);
}

TEST(MaxUnpool, PutsElementsAtTheirIndices) {
  using Ints = std::vector<std::int64_t>;
  const auto call = [](const Ints& indices) {
    return OpCall("MaxUnpool")
        .Attr("kernel_shape", Ints{2})
        .Attr("strides", Ints{2})
        .In(Floats({1, 2, 2}, {1, 2, 3, 4}))
        .In(Values<std::int64_t>({1, 2, 2}, indices));
  };
  const Tensor y = call({1, 2, 4, 7}).RunOne();
  EXPECT_EQ(y.shape(), (Shape{1, 2, 4}));
  EXPECT_EQ(ToVector<float>(y), (std::vector<float>{0, 1, 2, 0, 3, 0, 0, 4}));
  // Indices speak of what was pooled to X without a rest.
  const Tensor larger = call({1, 2, 4, 7}).Const(Int64s({1, 2, 5})).RunOne();
  EXPECT_EQ(ToVector<float>(larger), (std::vector<float>{0, 1, 2, 0, 0, 3, 0, 0, 4, 0}));
  EXPECT_THROW(call({1, 2, 4, 8}).Run({}), Error);
  EXPECT_THROW(call({-1, 2, 4, 7}).Run({}), Error);
  EXPECT_THROW(call({1, 2, 4, 7}).Const(Int64s({1, 2, 3})).Infer(), Error);
  EXPECT_THROW(call({1, 2, 4, 7}).In(Int64s({1, 2, 5})).Infer(false), NeedsValue);
}

TEST(Pool, HasTheFieldOfItsWindow) {
  using Ints = std::vector<std::int64_t>;
  const auto field = OpCall("AveragePool")
                         .Attr("kernel_shape", Ints{3, 2})
                         .Attr("strides", Ints{2, 2})
                         .Attr("pads", Ints{1, 0, 1, 0})
                         .In(Iota({1, 1, 8, 8}))
                         .Field();
  ASSERT_TRUE(field);
  EXPECT_EQ((*field)[0].den, 2);
  EXPECT_EQ((*field)[0].lo, -1);
  EXPECT_EQ((*field)[0].hi, 1);
  EXPECT_EQ((*field)[1].lo, 0);
  EXPECT_EQ((*field)[1].hi, 1);
  EXPECT_FALSE(OpCall("MaxPool")
                   .Attr("kernel_shape", Ints{3, 3})
                   .Attr("strides", Ints{2, 2})
                   .Attr("auto_pad", "SAME_UPPER")
                   .In(Iota({1, 1, 8, 8}))
                   .Field());
}

TEST(GlobalPool, ReducesPlanes) {
  std::mt19937 random(15);
  for (const Shape& shape :
       {Shape{2, 19, 33, 40}, Shape{1, 3, 1, 1}, Shape{2, 3, 7}, Shape{2, 3, 2, 2, 2}}) {
    Tensor x = RandomTensor(shape, random);
    for (float& v : x.values<float>()) v += 3;
    const Tensor mean = OpCall("GlobalAveragePool").In(x.Clone()).RunOne(3e-7);
    const Tensor highest = OpCall("GlobalMaxPool").In(x.Clone()).RunOne(0);
    ASSERT_EQ(mean.shape().rank(), shape.rank());
    const std::int64_t plane = shape.NumElements(2, shape.rank());
    for (std::int64_t p = 0; p < mean.size(); ++p) {
      const float* v = x.data<float>() + p * plane;
      double sum = 0;
      for (std::int64_t i = 0; i < plane; ++i) sum += static_cast<double>(v[i]);
      EXPECT_NEAR(mean.data<float>()[p], sum / static_cast<double>(plane), 5e-7);
      EXPECT_EQ(highest.data<float>()[p], *std::max_element(v, v + plane));
    }
  }
  EXPECT_THROW(OpCall("GlobalAveragePool").In(Iota({1, 1, 0, 2})).Infer(), Error);
  EXPECT_FALSE(OpCall("GlobalAveragePool").In(Iota({1, 1, 2, 2})).Field());
}

}  // namespace
}  // namespace tessera
