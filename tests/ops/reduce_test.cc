#include <cmath>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;

TEST(ReduceMean, TakesAxesAsAttributeOrInput) {
  const auto x = [] { return Iota({2, 3, 2}); };
  const auto old = [&](Ints axes, int keep = 1) {
    return OpCall("ReduceMean", 13).Attr("axes", axes).Attr("keepdims", keep).In(x());
  };
  EXPECT_EQ(ToVector<float>(old({1}).RunOne()), (F{2, 3, 8, 9}));
  EXPECT_EQ(old({1}).RunOne().shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(ToVector<float>(old({0, 2}, 0).RunOne()), (F{3.5, 5.5, 7.5}));
  EXPECT_EQ(old({0, -1}, 0).RunOne().shape(), (Shape{3}));
  EXPECT_EQ(ToVector<float>(OpCall("ReduceMean", 13).Attr("keepdims", 0).In(x()).RunOne()),
            (F{5.5}));
  EXPECT_EQ(ToVector<float>(OpCall("ReduceMean", 18).In(x()).Const(Int64s({-1})).RunOne()),
            (F{0.5, 2.5, 4.5, 6.5, 8.5, 10.5}));
  EXPECT_EQ(OpCall("ReduceMean", 18).In(x()).RunOne().shape(), (Shape{1, 1, 1}));
  EXPECT_EQ(ToVector<float>(OpCall("ReduceMean", 18)
                                .Attr("noop_with_empty_axes", 1)
                                .In(x())
                                .Const(Int64s({}))
                                .RunOne()),
            ToVector<float>(Iota({12})));
  EXPECT_THROW(old({3}).Infer(), Error);
  EXPECT_THROW(OpCall("ReduceMean", 13).In(Iota({0})).Infer(), Error);
}

TEST(ReduceMean, IsExactForLargePlanesAndIntegers) {
  std::mt19937 random(20);
  const Tensor x = RandomTensor({2, 5, 61, 67}, random);
  const Tensor y = OpCall("ReduceMean", 13).Attr("axes", Ints{2, 3}).In(x.Clone()).RunOne();
  for (std::int64_t p = 0; p < 10; ++p) {
    double sum = 0;
    for (std::int64_t i = 0; i < 61 * 67; ++i)
      sum += static_cast<double>(x.data<float>()[p * 61 * 67 + i]);
    EXPECT_NEAR(y.data<float>()[p], sum / (61 * 67), 1e-8);
  }
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("ReduceMean", 13).Attr("axes", Ints{0}).In(Int64s({-3, 0, -4})).RunOne()),
            (Ints{-2}));
}

TEST(Softmax, NormalizesOneAxisSinceOpset13) {
  std::mt19937 random(21);
  const Tensor x = RandomTensor({3, 7, 90}, random);
  for (const int axis : {0, 1, 2, -1}) {
    const Tensor y = OpCall("Softmax", 13).Attr("axis", axis).In(x.Clone()).RunOne();
    const int d = axis < 0 ? axis + 3 : axis;
    const std::int64_t stride = x.shape().NumElements(d + 1, 3), n = x.shape()[d];
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const std::int64_t first = i - i / stride % n * stride;
      double sum = 0;
      for (std::int64_t k = 0; k < n; ++k)
        sum += std::exp(static_cast<double>(x.data<float>()[first + k * stride]));
      ASSERT_NEAR(y.data<float>()[i], std::exp(static_cast<double>(x.data<float>()[i])) / sum,
                  1e-6);
    }
  }
}

TEST(Softmax, FlattensBeforeOpset13) {
  const Tensor x = Floats({2, 2, 2}, {0, 1, 2, 3, 1000, 1000, 1000, 1000});
  const Tensor y = OpCall("Softmax", 11).In(x.Clone()).RunOne();
  const double sum = 1 + std::exp(1) + std::exp(2) + std::exp(3);
  EXPECT_NEAR(y.data<float>()[3], std::exp(3) / sum, 1e-6);
  EXPECT_FLOAT_EQ(y.data<float>()[4], 0.25f);
  EXPECT_THROW(OpCall("Softmax", 11).In(Iota({3})).Infer(), Error);
  EXPECT_THROW(OpCall("Softmax", 13).Attr("axis", 3).In(Iota({2, 2, 2})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
