#include <cmath>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;

double At(const Tensor& t, std::int64_t i) { return static_cast<double>(t.data<float>()[i]); }

// A tensor with a large mean: nothing may be lost to cancellation.
Tensor Shifted(const Shape& shape, std::mt19937& random) {
  Tensor t = RandomTensor(shape, random);
  for (float& v : t.values<float>()) v += 30;
  return t;
}

// (x - mean) / sqrt(variance + epsilon) of the elements [first, first + n) of a tensor.
std::vector<double> Normalized(const Tensor& x, std::int64_t first, std::int64_t n,
                               double epsilon) {
  double mean = 0, variance = 0;
  for (std::int64_t i = 0; i < n; ++i) mean += At(x, first + i) / static_cast<double>(n);
  for (std::int64_t i = 0; i < n; ++i) {
    variance += (At(x, first + i) - mean) * (At(x, first + i) - mean) / static_cast<double>(n);
  }
  std::vector<double> y;
  for (std::int64_t i = 0; i < n; ++i)
    y.push_back((At(x, first + i) - mean) / std::sqrt(variance + epsilon));
  return y;
}

TEST(InstanceNormalization, NormalizesEachPlane) {
  std::mt19937 random(41);
  for (const Shape& shape :
       {Shape{2, 3, 7, 5}, Shape{1, 4, 100, 90}, Shape{3, 2, 11}, Shape{2, 5, 1, 1}}) {
    const Tensor x = Shifted(shape, random);
    const Tensor scale = RandomTensor({shape[1]}, random), bias = RandomTensor({shape[1]}, random);
    const Tensor y = OpCall("InstanceNormalization", 6)
                         .Attr("epsilon", 1e-3f)
                         .In(x.Clone())
                         .In(scale.Clone())
                         .In(bias.Clone())
                         .RunOne(1e-5);
    const std::int64_t plane = shape.NumElements(2, shape.rank());
    for (std::int64_t p = 0; p < shape[0] * shape[1]; ++p) {
      const std::vector<double> expected =
          Normalized(x, p * plane, plane, static_cast<double>(1e-3f));
      for (std::int64_t i = 0; i < plane; ++i) {
        ASSERT_NEAR(At(y, p * plane + i),
                    expected[static_cast<std::size_t>(i)] * At(scale, p % shape[1]) +
                        At(bias, p % shape[1]),
                    1e-5);
      }
    }
  }
}

TEST(GroupNormalization, NormalizesGroupsOfChannels) {
  std::mt19937 random(42);
  const Tensor x = Shifted({2, 6, 9, 8}, random);
  for (const int opset : {18, 21}) {
    const std::int64_t groups = 3, n = opset == 18 ? groups : 6;
    const Tensor scale = RandomTensor({n}, random), bias = RandomTensor({n}, random);
    const Tensor y = OpCall("GroupNormalization", opset)
                         .Attr("num_groups", 3)
                         .In(x.Clone())
                         .In(scale.Clone())
                         .In(bias.Clone())
                         .RunOne(1e-5);
    for (std::int64_t g = 0; g < 2 * groups; ++g) {
      const std::vector<double> expected = Normalized(x, g * 144, 144, static_cast<double>(1e-5f));
      for (std::int64_t i = 0; i < 144; ++i) {
        const std::int64_t channel = g % groups * 2 + i / 72,
                           at = opset == 18 ? g % groups : channel;
        ASSERT_NEAR(At(y, g * 144 + i),
                    expected[static_cast<std::size_t>(i)] * At(scale, at) + At(bias, at), 1e-5);
      }
    }
  }
}

TEST(GroupNormalization, RefusesWhatDoesNotFit) {
  const auto call = [](int opset, int groups, std::int64_t n, Shape x = {1, 6, 2, 2}) {
    return OpCall("GroupNormalization", opset)
        .Attr("num_groups", groups)
        .In(Iota(x))
        .In(Iota({n}))
        .In(Iota({n}));
  };
  EXPECT_NO_THROW(call(21, 3, 6).Infer());
  EXPECT_THROW(call(21, 3, 3).Infer(), Error);
  EXPECT_THROW(call(18, 3, 6).Infer(), Error);
  EXPECT_THROW(call(21, 4, 6).Infer(), Error);
  EXPECT_THROW(call(21, 0, 6).Infer(), Error);
  EXPECT_THROW(call(21, 1, 6, {6}).Infer(), Error);
  EXPECT_EQ(call(21, 2, 6, {0, 6, 2, 2}).RunOne().size(), 0);
  EXPECT_EQ(call(21, 2, 6, {2, 6, 0, 2}).RunOne().size(), 0);
  EXPECT_EQ(FindOp("GroupNormalization")->first_opset, 18);
  EXPECT_THROW(
      OpCall("InstanceNormalization").In(Iota({1, 3, 2})).In(Iota({3})).In(Iota({2})).Infer(),
      Error);
  EXPECT_THROW(OpCall("InstanceNormalization")
                   .In(Iota({1, 3, 2}))
                   .In(Iota({3}))
                   .In(Iota<double>({3}))
                   .Infer(),
               Error);
}

TEST(LayerNormalization, NormalizesFromAnAxisOn) {
  std::mt19937 random(43);
  const Tensor x = Shifted({3, 4, 5, 10}, random);
  for (const int axis : {-1, 0, 1, 2, 3, -3}) {
    const int first = axis < 0 ? axis + 4 : axis;
    const std::int64_t size = x.shape().NumElements(first, 4), rows = x.size() / size;
    const Shape normalized(x.shape().dims().subspan(static_cast<std::size_t>(first)));
    const Tensor scale = RandomTensor(normalized, random), bias = RandomTensor(normalized, random);
    for (const bool has_bias : {true, false}) {
      OpCall call("LayerNormalization", 17);
      call.Outputs(3).Attr("axis", axis).Attr("epsilon", 1e-4f).In(x.Clone()).In(scale.Clone());
      if (has_bias) call.In(bias.Clone());
      const std::vector<Tensor> y = call.RunAll(1e-5);
      ASSERT_EQ(y[1].shape().NumElements(), rows);
      ASSERT_EQ(y[1].shape().rank(), 4);
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::vector<double> expected =
            Normalized(x, r * size, size, static_cast<double>(1e-4f));
        double mean = 0, variance = 0;
        for (std::int64_t i = 0; i < size; ++i) {
          const double b = has_bias ? At(bias, i) : 0;
          ASSERT_NEAR(At(y[0], r * size + i),
                      expected[static_cast<std::size_t>(i)] * At(scale, i) + b, 2e-5);
          mean += At(x, r * size + i) / static_cast<double>(size);
        }
        for (std::int64_t i = 0; i < size; ++i) {
          variance += std::pow(At(x, r * size + i) - mean, 2) / static_cast<double>(size);
        }
        ASSERT_NEAR(At(y[1], r), mean, 1e-5);
        ASSERT_NEAR(At(y[2], r), 1 / std::sqrt(variance + static_cast<double>(1e-4f)), 1e-5);
      }
    }
  }
}

TEST(LayerNormalization, HandlesCorners) {
  const auto call = [](Shape x, Shape scale) {
    return OpCall("LayerNormalization", 17).In(Iota(x)).In(Iota(scale));
  };
  EXPECT_EQ(call({0, 4}, {4}).RunOne().size(), 0);
  EXPECT_EQ(call({4, 0}, {0}).RunOne().size(), 0);
  EXPECT_THROW(call({2, 4}, {3}).Infer(), Error);
  EXPECT_THROW(call({}, {}).Infer(), Error);
  EXPECT_THROW(
      OpCall("LayerNormalization", 17).Attr("stash_type", 11).In(Iota({2})).In(Iota({2})).Infer(),
      Error);
  EXPECT_THROW(OpCall("LayerNormalization", 17).In(Iota({2})).In(Iota<double>({2})).Infer(), Error);
  // One scale for all; the statistics of double are float32, too.
  const std::vector<Tensor> y = OpCall("LayerNormalization", 17)
                                    .Outputs(2)
                                    .Attr("epsilon", 0.f)
                                    .In(Values<double>({4}, {1, 1, 3, 3}))
                                    .In(Values<double>({1}, {10}))
                                    .RunAll();
  EXPECT_EQ(ToVector<double>(y[0]), (std::vector<double>{-10, -10, 10, 10}));
  EXPECT_EQ(ToVector<float>(y[1]), (F{2}));
}

TEST(MeanVarianceNormalization, TakesAnyAxes) {
  std::mt19937 random(44);
  const Tensor x = Shifted({2, 3, 4, 5}, random);
  for (const Ints& axes :
       {Ints{0, 2, 3}, Ints{1}, Ints{-1}, Ints{0}, Ints{1, 2, 3}, Ints{0, 1, 2, 3}}) {
    OpCall call("MeanVarianceNormalization", 13);
    if (axes != Ints{0, 2, 3}) call.Attr("axes", axes);  // the default
    const Tensor y = call.In(x.Clone()).RunOne(1e-5);
    // Each group of elements that share their place on the other axes.
    const auto strides = RowMajorStrides(x.shape());
    std::vector<std::vector<std::int64_t>> groups(static_cast<std::size_t>(x.size()));
    for (std::int64_t i = 0; i < x.size(); ++i) {
      std::int64_t key = i;
      for (const std::int64_t a : axes) {
        const auto d = static_cast<std::size_t>(a < 0 ? a + 4 : a);
        key -= i / strides[d] % x.shape()[static_cast<int>(d)] * strides[d];
      }
      groups[static_cast<std::size_t>(key)].push_back(i);
    }
    for (const auto& group : groups) {
      double mean = 0, square = 0;
      const auto n = static_cast<double>(group.size());
      for (const std::int64_t i : group) mean += At(x, i) / n, square += At(x, i) * At(x, i) / n;
      for (const std::int64_t i : group) {
        ASSERT_NEAR(At(y, i), (At(x, i) - mean) / std::sqrt(square - mean * mean), 2e-5);
      }
    }
  }
  EXPECT_EQ(OpCall("MeanVarianceNormalization", 13).In(Iota({0, 3, 4, 5})).RunOne().size(), 0);
  EXPECT_EQ(
      ToVector<float>(OpCall("MeanVarianceNormalization", 13).In(Iota({1, 1, 1, 1})).RunOne()),
      (F{0}));
  EXPECT_THROW(OpCall("MeanVarianceNormalization", 13).In(Iota({2, 3})).Infer(), Error);
}

TEST(LpNormalization, DividesByTheNorm) {
  const auto run = [](int p, int axis, F values) {
    return ToVector<float>(OpCall("LpNormalization", 13)
                               .Attr("p", p)
                               .Attr("axis", axis)
                               .In(Floats({2, 2}, values))
                               .RunOne());
  };
  EXPECT_EQ(run(2, -1, {3, -4, 0, 0}), (F{0.6f, -0.8f, 0, 0}));
  EXPECT_EQ(run(1, 1, {1, -3, 4, 0}), (F{0.25f, -0.75f, 1, 0}));
  EXPECT_EQ(run(2, 0, {3, 0, 4, -2}), (F{0.6f, 0, 0.8f, -1}));
  EXPECT_EQ(OpCall("LpNormalization").In(Iota({3, 0})).RunOne().size(), 0);
  EXPECT_THROW(OpCall("LpNormalization").Attr("p", 3).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(OpCall("LpNormalization").In(Iota({})).Infer(), Error);
}

TEST(LRN, SumsNeighbouringChannels) {
  std::mt19937 random(45);
  for (const std::int64_t size : {1, 3, 4, 5, 20}) {
    const Tensor x = RandomTensor({2, 7, 3, 5}, random);
    const Tensor y = OpCall("LRN", 13)
                         .Attr("size", size)
                         .Attr("alpha", 0.5f)
                         .Attr("beta", 0.6f)
                         .Attr("bias", 2.f)
                         .In(x.Clone())
                         .RunOne();
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const std::int64_t c = i / 15 % 7;
      double sum = 0;
      for (std::int64_t k = 0; k < 7; ++k) {
        // From c - floor((size - 1) / 2) to c + ceil((size - 1) / 2).
        if (k < c - (size - 1) / 2 || k > c + size / 2) continue;
        sum += At(x, i + (k - c) * 15) * At(x, i + (k - c) * 15);
      }
      ASSERT_NEAR(
          At(y, i),
          At(x, i) / std::pow(2 + 0.5 / static_cast<double>(size) * sum, static_cast<double>(0.6f)),
          1e-6);
    }
  }
  EXPECT_THROW(OpCall("LRN").In(Iota({1, 2, 3, 4})).Infer(), Error);
  EXPECT_THROW(OpCall("LRN").Attr("size", 3).In(Iota({2})).Infer(), Error);
  EXPECT_EQ(OpCall("LRN").Attr("size", 3).In(Iota({0, 2, 3, 4})).RunOne().size(), 0);
  EXPECT_EQ(
      OpCall("LRN").Attr("size", std::int64_t{1} << 62).In(Iota({1, 1, 1, 1})).RunOne().size(), 1);
}

}  // namespace
}  // namespace tessera
