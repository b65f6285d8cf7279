#include <cmath>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using F = std::vector<float>;

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

// log(softmax(x)) in double precision, over lines of `n` elements that lie `stride` apart.
TEST(LogSoftmax, IsTheLogarithmOfSoftmax) {
  std::mt19937 random(23);
  const Tensor x = RandomTensor({3, 7, 290}, random);
  for (const int axis : {0, 1, 2, -1}) {
    const Tensor y = OpCall("LogSoftmax", 13).Attr("axis", axis).In(x.Clone()).RunOne();
    const int d = axis < 0 ? axis + 3 : axis;
    const std::int64_t stride = x.shape().NumElements(d + 1, 3), n = x.shape()[d];
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const std::int64_t first = i - i / stride % n * stride;
      double sum = 0;
      for (std::int64_t k = 0; k < n; ++k)
        sum += std::exp(static_cast<double>(x.data<float>()[first + k * stride]));
      ASSERT_NEAR(y.data<float>()[i], static_cast<double>(x.data<float>()[i]) - std::log(sum),
                  1e-6);
    }
  }
}

TEST(LogSoftmax, DoesNotOverflow) {
  const Tensor y = OpCall("LogSoftmax", 13).In(Floats({2, 2}, {10000, 10000, 0, -10000})).RunOne();
  EXPECT_FLOAT_EQ(y.data<float>()[0], -std::log(2.f));
  EXPECT_FLOAT_EQ(y.data<float>()[2], 0);
  EXPECT_FLOAT_EQ(y.data<float>()[3], -10000);
  EXPECT_NEAR(OpCall("LogSoftmax", 11)
                  .Attr("axis", 0)
                  .In(Values<double>({2, 2}, {1, 1, 1, 1}))
                  .RunOne()
                  .data<double>()[3],
              -std::log(4.0), 1e-15);
}

TEST(Hardmax, MarksTheFirstOfTheHighest) {
  const Tensor x = Floats({2, 3}, {1, 3, 3, -5, -5, -7});
  EXPECT_EQ(ToVector<float>(OpCall("Hardmax", 13).In(x.Clone()).RunOne()), (F{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(ToVector<float>(OpCall("Hardmax", 13).Attr("axis", 0).In(x.Clone()).RunOne()),
            (F{1, 1, 1, 0, 0, 0}));
  // All axes from 0 on are one line before opset 13.
  EXPECT_EQ(ToVector<float>(OpCall("Hardmax", 11).Attr("axis", 0).In(x.Clone()).RunOne()),
            (F{0, 1, 0, 0, 0, 0}));
  EXPECT_THROW(OpCall("Hardmax", 13).In(Iota<std::int32_t>({2})).Infer(), Error);
}

TEST(Softmax, TakesEmptyTensorsAndIsPointwiseAlongChannels) {
  for (const char* type : {"Softmax", "LogSoftmax", "Hardmax"}) {
    EXPECT_EQ(OpCall(type, 13).In(Iota({0, 3})).RunOne().size(), 0);
    EXPECT_EQ(OpCall(type, 13).In(Iota({3, 0})).RunOne().size(), 0);
    EXPECT_THROW(OpCall(type, 13).In(Iota({})).Infer(), Error);
  }
  EXPECT_TRUE(OpCall("Softmax", 13).Attr("axis", 1).In(Iota({1, 3, 4, 4})).Field().has_value());
  EXPECT_FALSE(OpCall("Softmax", 13).Attr("axis", -1).In(Iota({1, 3, 4, 4})).Field().has_value());
  EXPECT_FALSE(OpCall("Softmax", 11).Attr("axis", 1).In(Iota({1, 3, 4, 4})).Field().has_value());
}

}  // namespace
}  // namespace tessera
