// MatMulInteger and QLinearMatMul.
#include <cmath>

#include "tests/every_target.h"
#include "tests/ops/byte_tensors.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

// Shapes of A, B, and of what their rows and columns have parameters for.
struct MatMulCase {
  Shape a, b, rows, columns;
};

const MatMulCase kCases[] = {
    {{4, 3}, {3, 2}, {}, {}},
    {{4, 3}, {3, 2}, {1}, {1}},
    {{4, 3}, {3, 2}, {4}, {2}},
    {{4, 3}, {3, 2}, {4, 1}, {1, 2}},
    {{50, 67}, {67, 45}, {50}, {45}},
    {{1, 200}, {200, 130}, {}, {130}},
    {{2, 3, 5, 4}, {2, 3, 4, 6}, {2, 3, 5, 1}, {2, 3, 1, 6}},
    {{2, 1, 5, 4}, {3, 4, 6}, {2, 1, 5, 1}, {3, 1, 6}},  // broadcast both ways
    {{3, 5, 4}, {4, 6}, {1, 5, 1}, {6}},
    {{3, 5, 4}, {2, 1, 4, 6}, {5}, {1, 6}},
    {{7}, {7}, {}, {1}},
    {{7}, {2, 7, 3}, {1}, {3}},
    {{2, 3, 7}, {7}, {3, 1}, {}},
    {{0, 3}, {3, 2}, {0}, {2}},
    {{2, 0}, {0, 2}, {2}, {}},
    {{30, 9000}, {9000, 40}, {}, {40}},
};

struct Sums {
  Shape shape;
  std::vector<std::int64_t> values;
  // Which element of the parameters belongs to each.
  std::vector<std::int64_t> row_parameter, column_parameter;
};

// The element of a parameter of shape `s` that belongs to row or column `line` of the matrix at
// place `stack` of the batch.
std::int64_t ParameterAt(const Shape& s, const std::vector<std::int64_t>& stack,
                         std::int64_t line) {
  if (s.NumElements() == 1) return 0;
  if (s.rank() == 1) return line;
  const int own = s.rank() - 2;
  std::int64_t index = 0;
  for (int d = 0; d < own; ++d) {
    const std::int64_t i = stack[stack.size() - static_cast<std::size_t>(own - d)];
    index = index * s[d] + (s[d] == 1 ? 0 : i);
  }
  return index * s[own] * s[own + 1] + line;
}

// By numpy's rules, element by element.
Sums ExpectedSums(const MatMulCase& c, const Tensor& a, const Tensor& a_zero, const Tensor& b,
                  const Tensor& b_zero) {
  Shape as = c.a, bs = c.b;
  if (as.rank() == 1) as = {1, as[0]};
  if (bs.rank() == 1) bs = {bs[0], 1};
  const int rank = std::max(as.rank(), bs.rank()) - 2;
  const std::int64_t m = as[as.rank() - 2], k = as[as.rank() - 1], n = bs[bs.rank() - 1];
  Sums sums;
  std::vector<std::int64_t> dims;
  for (int d = 0; d < rank; ++d) {
    const int ad = d - (rank - (as.rank() - 2)), bd = d - (rank - (bs.rank() - 2));
    dims.push_back(std::max(ad < 0 ? 1 : as[ad], bd < 0 ? 1 : bs[bd]));
    sums.shape.PushBack(dims.back());
  }
  if (c.a.rank() > 1) sums.shape.PushBack(m);
  if (c.b.rank() > 1) sums.shape.PushBack(n);
  std::vector<std::int64_t> at(dims.size(), 0);
  const auto matrix = [&](const Shape& s) {
    const int own = s.rank() - 2;
    std::int64_t index = 0;
    for (int d = 0; d < own; ++d) {
      index = index * s[d] + (s[d] == 1 ? 0 : at[static_cast<std::size_t>(d + rank - own)]);
    }
    return index;
  };
  for (;;) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const std::int64_t row = ParameterAt(c.rows, at, i), column = ParameterAt(c.columns, at, j);
        std::int64_t sum = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          sum += (Element(a, (matrix(as) * m + i) * k + l) - Element(a_zero, row)) *
                 (Element(b, (matrix(bs) * k + l) * n + j) - Element(b_zero, column));
        }
        sums.values.push_back(sum);
        sums.row_parameter.push_back(row);
        sums.column_parameter.push_back(column);
      }
    }
    int d = rank - 1;
    for (; d >= 0; --d) {
      const auto u = static_cast<std::size_t>(d);
      if (++at[u] < dims[u]) break;
      at[u] = 0;
    }
    if (d < 0) break;
  }
  return sums;
}

TEST(MatMulInteger, FollowsTheDefinition) {
  std::mt19937 random(1);
  for (const MatMulCase& c : kCases) {
    for (int types = 0; types < 4; ++types) {
      const DType a_type = (types & 1) != 0 ? DType::kInt8 : DType::kUint8;
      const DType b_type = (types & 2) != 0 ? DType::kInt8 : DType::kUint8;
      const Tensor a = RandomBytes(c.a, a_type, random), b = RandomBytes(c.b, b_type, random);
      const Tensor a_zero = RandomBytes(c.rows, a_type, random);
      const Tensor b_zero = RandomBytes(c.columns, b_type, random);
      OpCall call("MatMulInteger", 10);
      call.In(a.Clone()).In(b.Clone()).In(a_zero.Clone()).In(b_zero.Clone());
      const Tensor y = call.RunOne();
      const Sums expected = ExpectedSums(c, a, a_zero, b, b_zero);
      ASSERT_EQ(y.shape(), expected.shape) << c.a << ' ' << c.b;
      for (std::int64_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y.data<std::int32_t>()[i], expected.values[static_cast<std::size_t>(i)])
            << c.a << ' ' << c.b;
      }
    }
  }
}

TEST(MatMulInteger, ZeroPointsAreOptional) {
  OpCall call("MatMulInteger", 10);
  call.In(Values<std::uint8_t>({4, 3}, {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0}));
  call.In(Values<std::uint8_t>({3, 2}, {1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(ToVector<std::int32_t>(call.RunOne()),
            (std::vector<std::int32_t>{34, 97, 28, 82, 22, 67, 16, 52}));
  call.In(Values<std::uint8_t>({1}, {12})).In(Values<std::uint8_t>({1}, {0}));
  EXPECT_EQ(ToVector<std::int32_t>(call.RunOne()),
            (std::vector<std::int32_t>{-38, -83, -44, -98, -50, -113, -56, -128}));
}

TEST(MatMulInteger, EveryTargetGivesTheSameSums) {
  std::mt19937 random(2);
  for (const MatMulCase& c : kCases) {
    OpCall call("MatMulInteger", 10);
    call.In(RandomBytes(c.a, DType::kUint8, random)).In(RandomBytes(c.b, DType::kInt8, random));
    call.In(RandomBytes(c.rows, DType::kUint8, random));
    call.In(RandomBytes(c.columns, DType::kInt8, random));
    OnEveryTarget([&] { call.RunAll(); });
  }
}

TEST(MatMulInteger, RefusesWhatDoesNotFit) {
  const auto refused = [](const Shape& a, const Shape& b, const Shape& rows, const Shape& columns) {
    OpCall call("MatMulInteger", 10);
    call.In(Iota<std::uint8_t>(a)).In(Iota<std::int8_t>(b)).In(Iota<std::uint8_t>(rows));
    call.In(Iota<std::int8_t>(columns));
    EXPECT_THROW(call.Infer(), Error) << rows << ' ' << columns;
  };
  refused({4, 3}, {2, 2}, {}, {});
  refused({}, {2, 2}, {}, {});
  refused({4, 3}, {3, 2}, {3}, {});
  refused({4, 3}, {3, 2}, {1, 4}, {});
  refused({4, 3}, {3, 2}, {4, 3}, {});
  refused({4, 3}, {3, 2}, {}, {3});
  refused({4, 3}, {3, 2}, {}, {2, 1});
  refused({2, 4, 3}, {3, 2}, {3, 4, 1}, {});
  refused({4, 3}, {3, 2}, {2, 4, 1}, {});
  OpCall types("MatMulInteger", 10);
  types.In(Iota<std::uint8_t>({2, 2})).In(Iota<std::uint8_t>({2, 2}));
  EXPECT_EQ(types.Infer()[0].dtype, DType::kInt32);
  types.In(Iota<std::int8_t>({}));
  EXPECT_THROW(types.Infer(), Error);
  OpCall floats("MatMulInteger", 10);
  floats.In(Iota({2, 2})).In(Iota<std::uint8_t>({2, 2}));
  EXPECT_THROW(floats.Infer(), Error);
}

// --- QLinearMatMul

Tensor RandomScales(const Shape& shape, float mean, std::mt19937& random) {
  Tensor t = RandomTensor(shape, random);
  for (float& v : t.values<float>()) v = mean * (1 + 0.5f * v);
  return t;
}

TEST(QLinearMatMul, FollowsTheDefinition) {
  std::mt19937 random(3);
  for (const MatMulCase& c : kCases) {
    for (int types = 0; types < 8; ++types) {
      const auto type = [&](int bit) {
        return (types >> bit & 1) != 0 ? DType::kInt8 : DType::kUint8;
      };
      const Tensor a = RandomBytes(c.a, type(0), random), b = RandomBytes(c.b, type(1), random);
      const Tensor a_zero = RandomBytes(c.rows, type(0), random);
      const Tensor b_zero = RandomBytes(c.columns, type(1), random);
      const Tensor a_scale = RandomScales(c.rows, 0.02f, random);
      const Tensor b_scale = RandomScales(c.columns, 0.03f, random);
      const Tensor y_zero = RandomBytes({}, type(2), random);
      const float y_scale = 0.7f;
      OpCall call("QLinearMatMul", 10);
      call.In(a.Clone()).In(a_scale.Clone()).In(a_zero.Clone());
      call.In(b.Clone()).In(b_scale.Clone()).In(b_zero.Clone());
      call.In(Floats({1}, {y_scale})).In(y_zero.Clone());
      const Tensor y = call.RunOne();
      const Sums sums = ExpectedSums(c, a, a_zero, b, b_zero);
      ASSERT_EQ(y.dtype(), type(2));
      ASSERT_EQ(y.shape(), sums.shape);
      const std::int64_t lowest = type(2) == DType::kInt8 ? -128 : 0;
      for (std::int64_t i = 0; i < y.size(); ++i) {
        const auto u = static_cast<std::size_t>(i);
        const float multiplier = a_scale.data<float>()[sums.row_parameter[u]] *
                                 b_scale.data<float>()[sums.column_parameter[u]] / y_scale;
        const auto expected = static_cast<std::int64_t>(
                                  std::nearbyint(static_cast<float>(sums.values[u]) * multiplier)) +
                              Element(y_zero, 0);
        ASSERT_EQ(Element(y, i), std::clamp(expected, lowest, lowest + 255)) << c.a << ' ' << c.b;
      }
    }
  }
}

TEST(QLinearMatMul, Float16ScalesSinceOpset21) {
  const auto call = [](int opset) {
    OpCall call("QLinearMatMul", opset);
    call.In(Values<std::int8_t>({1, 2}, {3, 5})).In(Values<Half>({}, {Half(0.5f)}));
    call.In(Values<std::int8_t>({}, {1})).In(Values<std::uint8_t>({2, 2}, {1, 2, 3, 4}));
    call.In(Values<Half>({2}, {Half(1.f), Half(2.f)})).In(Values<std::uint8_t>({2}, {0, 1}));
    call.In(Values<Half>({}, {Half(2.f)})).In(Values<std::uint8_t>({}, {10}));
    return call;
  };
  // (2 * 1 + 4 * 3) / 4 and (2 * 1 + 4 * 3) / 2, plus 10: 3.5 is rounded to 4.
  EXPECT_EQ(ToVector<std::uint8_t>(call(21).RunOne()), (std::vector<std::uint8_t>{14, 17}));
  EXPECT_THROW(call(20).Infer(), Error);
}

TEST(QLinearMatMul, RefusesWhatDoesNotFit) {
  const auto call = [](const Shape& a_scale, const Shape& b_zero, const Shape& y_scale,
                       DType y_zero) {
    OpCall call("QLinearMatMul", 10);
    call.In(Iota<std::uint8_t>({4, 3})).In(Iota(a_scale)).In(Iota<std::uint8_t>({}));
    call.In(Iota<std::uint8_t>({3, 2})).In(Iota({})).In(Iota<std::uint8_t>(b_zero));
    call.In(Iota(y_scale)).In(Tensor(y_zero, {}));
    return call;
  };
  EXPECT_EQ(call({4}, {2}, {}, DType::kInt8).Infer()[0].dtype, DType::kInt8);
  EXPECT_THROW(call({3}, {2}, {}, DType::kInt8).Infer(), Error);
  EXPECT_THROW(call({4}, {3}, {}, DType::kInt8).Infer(), Error);
  EXPECT_THROW(call({4}, {2}, {2}, DType::kInt8).Infer(), Error);
  EXPECT_THROW(call({4}, {2}, {}, DType::kInt32).Infer(), Error);
}

}  // namespace
}  // namespace tessera
