#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

// alpha A B + beta C of row-major matrices, after transposition.
Tensor ExpectedGemm(const Tensor& a, bool trans_a, const Tensor& b, bool trans_b, float alpha,
                    float beta, const Tensor& c) {
  const std::int64_t m = a.shape()[trans_a ? 1 : 0], k = a.shape()[trans_a ? 0 : 1];
  const std::int64_t n = b.shape()[trans_b ? 0 : 1];
  Tensor y(DType::kFloat32, {m, n});
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += static_cast<double>(a.data<float>()[trans_a ? l * m + i : i * k + l]) *
               static_cast<double>(b.data<float>()[trans_b ? j * k + l : l * n + j]);
      }
      double add = 0;
      if (c.size() > 0) {
        const Shape& s = c.shape();
        const std::int64_t rows = s.rank() == 2 ? s[0] : 1,
                           columns = s.rank() >= 1 ? s[s.rank() - 1] : 1;
        add = static_cast<double>(
            c.data<float>()[(rows == 1 ? 0 : i) * columns + (columns == 1 ? 0 : j)]);
      }
      y.data<float>()[i * n + j] =
          static_cast<float>(static_cast<double>(alpha) * sum + static_cast<double>(beta) * add);
    }
  }
  return y;
}

TEST(Gemm, TakesEveryAttributeAndBroadcastsC) {
  std::mt19937 random(16);
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const Shape& c_shape :
           {Shape{0}, Shape{}, Shape{37}, Shape{1}, Shape{29, 1}, Shape{1, 37}, Shape{29, 37}}) {
        const std::int64_t m = 29, n = 37, k = 50;
        const Tensor a = RandomTensor(trans_a ? Shape{k, m} : Shape{m, k}, random);
        const Tensor b = RandomTensor(trans_b ? Shape{n, k} : Shape{k, n}, random);
        const Tensor c = RandomTensor(c_shape, random);
        OpCall call("Gemm", 13);
        call.Attr("alpha", 0.5f).Attr("beta", 1.5f).Attr("transA", trans_a).Attr("transB", trans_b);
        call.In(a.Clone()).In(b.Clone());
        if (c.size() > 0) call.In(c.Clone());
        ExpectClose(call.RunOne(2e-6), ExpectedGemm(a, trans_a, b, trans_b, 0.5f, 1.5f, c), 2e-6);
      }
    }
  }
}

// RunOne compares the reference and the vector kernel.
TEST(Gemm, IsFollowedByAnActivation) {
  std::mt19937 random(18);
  const std::pair<const char*, std::function<double(double)>> activations[] = {
      {"Relu", [](double x) { return std::max(x, 0.0); }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.25 * x : x; }},
      {"Clip", [](double x) { return std::clamp(x, 0.25, 0.5); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"HardSigmoid", [](double x) { return std::clamp(0.25 * x + 0.5, 0.0, 1.0); }},
      {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
  };
  for (const auto& [name, function] : activations) {
    for (const std::int64_t rows : {1, 7}) {
      const Tensor a = RandomTensor({rows, 24}, random), b = RandomTensor({150, 24}, random);
      const Tensor c = RandomTensor({150}, random);
      Tensor expected = ExpectedGemm(a, false, b, true, 1, 1, c);
      for (float& v : expected.values<float>()) v = static_cast<float>(function(v));
      OpCall call("FusedGemm");
      call.Attr("transB", 1).Attr("activation", name);
      call.Attr("activation_alpha", 0.25f).Attr("activation_beta", 0.5f);
      call.In(a.Clone()).In(b.Clone()).In(c.Clone());
      ExpectClose(call.RunOne(2e-6), expected, 2e-6, name);
    }
  }
  EXPECT_THROW(OpCall("FusedGemm").In(Iota({2, 3})).In(Iota({3, 2})).Infer(), Error);
}

TEST(Gemm, SplitsLargeProducts) {
  std::mt19937 random(17);
  const Tensor a = RandomTensor({70, 33}, random), b = RandomTensor({33, 400}, random);
  ExpectClose(OpCall("Gemm").In(a.Clone()).In(b.Clone()).RunOne(2e-6),
              ExpectedGemm(a, false, b, false, 1, 0, Tensor(DType::kFloat32, {0})), 2e-6);
}

TEST(Gemm, TakesIntegersAndEmptyMatrices) {
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Gemm")
                                       .In(Values<std::int64_t>({1, 2}, {std::int64_t{1} << 40, 3}))
                                       .In(Values<std::int64_t>({2, 1}, {1 << 20, 5}))
                                       .RunOne()),
            (std::vector<std::int64_t>{(std::int64_t{1} << 60) + 15}));
  EXPECT_EQ(ToVector<float>(
                OpCall("Gemm").In(Iota({2, 0})).In(Iota({0, 2})).In(Floats({}, {3})).RunOne()),
            (std::vector<float>{3, 3, 3, 3}));
}

// beta C keeps integers exact, and wraps around like the product.
TEST(Gemm, AddsIntegersExactly) {
  const std::int64_t big = (std::int64_t{1} << 62) + 1;
  const auto run = [&](float alpha, float beta) {
    return ToVector<std::int64_t>(OpCall("Gemm")
                                      .Attr("alpha", alpha)
                                      .Attr("beta", beta)
                                      .In(Values<std::int64_t>({1, 1}, {3}))
                                      .In(Values<std::int64_t>({1, 1}, {5}))
                                      .In(Values<std::int64_t>({}, {big}))
                                      .RunOne())[0];
  };
  EXPECT_EQ(run(1, 1), big + 15);
  EXPECT_EQ(run(2, 1), big + 30);
  // Out of range: the multiple of C saturates.
  EXPECT_EQ(run(1, -4), std::numeric_limits<std::int64_t>::min() + 15);
}

TEST(Gemm, TakesIntegersSinceOpset9) {
  const auto a = [] { return Iota<std::int32_t>({2, 2}); };
  EXPECT_THROW(OpCall("Gemm", 8).In(a()).In(a()).In(a()).Infer(), Error);
  EXPECT_NO_THROW(OpCall("Gemm", 9).In(a()).In(a()).In(a()).Infer());
  EXPECT_THROW(OpCall("MatMul", 8).In(a()).In(a()).Infer(), Error);
  EXPECT_EQ(ToVector<std::int32_t>(OpCall("MatMul", 9).In(a()).In(a()).RunOne()),
            (std::vector<std::int32_t>{2, 3, 6, 11}));
  EXPECT_EQ(
      ToVector<std::uint64_t>(
          OpCall("MatMul").In(Iota<std::uint64_t>({2})).In(Iota<std::uint64_t>({2})).RunOne()),
      (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(
      ToVector<double>(OpCall("MatMul").In(Iota<double>({1, 3})).In(Iota<double>({3})).RunOne()),
      (std::vector<double>{5}));
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  EXPECT_THROW(OpCall("Gemm").In(Iota({2, 3})).In(Iota({2, 3})).Infer(), Error);
  EXPECT_THROW(OpCall("Gemm").In(Iota({2})).In(Iota({2, 3})).Infer(), Error);
  EXPECT_THROW(OpCall("Gemm").In(Iota({2, 3})).In(Iota({3, 4})).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(OpCall("Gemm", 9).In(Iota({2, 3})).In(Iota({3, 4})).Infer(), Error);
  EXPECT_THROW(OpCall("Gemm").In(Iota({2, 3})).In(Iota<double>({3, 4})).Infer(), Error);
}

TEST(MatMul, StacksMatricesAndBroadcasts) {
  std::mt19937 random(18);
  const std::pair<Shape, Shape> cases[] = {
      {{3, 4}, {4, 5}},
      {{4}, {4, 5}},
      {{3, 4}, {4}},
      {{4}, {4}},
      {{2, 3, 4}, {4, 5}},
      {{3, 4}, {2, 4, 5}},
      {{2, 1, 3, 4}, {6, 4, 5}},
      {{6, 3, 4}, {2, 1, 4, 5}},
      {{2, 7, 64}, {64, 300}},
      {{0, 3, 4}, {4, 5}},
  };
  for (const auto& [sa, sb] : cases) {
    const Tensor a = RandomTensor(sa, random), b = RandomTensor(sb, random);
    const Tensor y = OpCall("MatMul").In(a.Clone()).In(b.Clone()).RunOne(2e-6);
    // Through vectors as matrices, and a loop over the stacks.
    const std::int64_t m = sa.rank() == 1 ? 1 : sa[sa.rank() - 2], k = sa[sa.rank() - 1];
    const std::int64_t n = sb.rank() == 1 ? 1 : sb[sb.rank() - 1];
    const Shape stack_a(sa.dims().first(static_cast<std::size_t>(std::max(0, sa.rank() - 2))));
    const Shape stack_b(sb.dims().first(static_cast<std::size_t>(std::max(0, sb.rank() - 2))));
    const Shape stack = BroadcastShapes(stack_a, stack_b);
    ASSERT_EQ(y.size(), stack.NumElements() * m * n);
    const auto offset = [&](const Shape& own, std::int64_t index) {
      const auto strides = RowMajorStrides(own);
      std::int64_t sum = 0;
      for (int d = stack.rank(); d-- > 0; index /= stack[d]) {
        const int o = d - stack.rank() + own.rank();
        if (o >= 0 && own[o] != 1) sum += index % stack[d] * strides[static_cast<std::size_t>(o)];
      }
      return sum;
    };
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const float* row = a.data<float>() + offset(stack_a, i / (m * n)) * m * k + i / n % m * k;
      const float* column = b.data<float>() + offset(stack_b, i / (m * n)) * k * n + i % n;
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += static_cast<double>(row[l]) * static_cast<double>(column[l * n]);
      ASSERT_NEAR(y.data<float>()[i], sum, 5e-6) << sa << " " << sb << " " << i;
    }
  }
  EXPECT_EQ(OpCall("MatMul").In(Iota({4})).In(Iota({4})).Infer()[0].shape, Shape{});
  EXPECT_EQ(OpCall("MatMul").In(Iota({2, 3, 4})).In(Iota({4})).Infer()[0].shape, (Shape{2, 3}));
}

TEST(MatMul, RefusesWhatDoesNotFit) {
  EXPECT_THROW(OpCall("MatMul").In(Iota({})).In(Iota({2})).Infer(), Error);
  EXPECT_THROW(OpCall("MatMul").In(Iota({2, 3})).In(Iota({2, 3})).Infer(), Error);
  EXPECT_THROW(OpCall("MatMul").In(Iota({2, 2, 3})).In(Iota({3, 3, 2})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
