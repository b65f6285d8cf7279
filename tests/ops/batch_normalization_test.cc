#include <cmath>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

TEST(BatchNormalization, NormalizesByTheGivenStatistics) {
  std::mt19937 random(19);
  for (const Shape& shape :
       {Shape{2, 19, 9, 7}, Shape{3, 5}, Shape{1, 4, 6}, Shape{1, 2, 2, 2, 2}, Shape{0, 3, 2, 2}}) {
    const std::int64_t c = shape[1];
    const Tensor x = RandomTensor(shape, random);
    const Tensor scale = RandomTensor({c}, random), bias = RandomTensor({c}, random);
    const Tensor mean = RandomTensor({c}, random);
    Tensor variance = RandomTensor({c}, random);
    for (float& v : variance.values<float>()) v = std::abs(v) + 0.1f;
    OpCall call("BatchNormalization", 9);
    call.Attr("epsilon", 1e-3f).Attr("momentum", 0.5f).In(x.Clone());
    for (const Tensor* t : std::initializer_list<const Tensor*>{&scale, &bias, &mean, &variance})
      call.In(t->Clone());
    const Tensor y = call.RunOne(2e-6);
    const std::int64_t plane = shape.NumElements(2, shape.rank());
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const std::int64_t k = i / plane % c;
      const double want = (x.data<float>()[i] - mean.data<float>()[k]) /
                              std::sqrt(variance.data<float>()[k] + 1e-3) * scale.data<float>()[k] +
                          bias.data<float>()[k];
      ASSERT_NEAR(y.data<float>()[i], want, 3e-6);
    }
  }
}

TEST(BatchNormalization, StaysBlockedWithConstantStatistics) {
  OpCall call("BatchNormalization");
  call.In(Iota({1, 16, 2, 2}));
  for (int i = 0; i < 4; ++i) call.Const(Floats({16}, std::vector<float>(16, 1.f)));
  EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kBlocked);
}

// By the definition: two passes over each channel.
TEST(BatchNormalization, LearnsTheStatisticsOfABatch) {
  std::mt19937 random(20);
  for (const Shape& shape : {Shape{2, 19, 9, 7}, Shape{6, 5}, Shape{3, 4, 6}, Shape{9}}) {
    const std::int64_t c = shape.rank() > 1 ? shape[1] : 1;
    const std::int64_t plane = shape.rank() > 1 ? shape.NumElements(2, shape.rank()) : shape[0];
    const Tensor x = RandomTensor(shape, random);
    std::vector<Tensor> parameters;
    for (int i = 0; i < 4; ++i) parameters.push_back(RandomTensor({c}, random));
    for (float& v : parameters[3].values<float>()) v = std::abs(v);
    const auto run = [&](int opset, std::size_t outputs) {
      OpCall call("BatchNormalization", opset);
      if (opset >= 14) call.Attr("training_mode", 1);
      call.Attr("momentum", 0.75f).Outputs(outputs).In(x.Clone());
      for (const Tensor& t : parameters) call.In(t.Clone());
      EXPECT_FALSE(call.Field());
      return call.RunAll(2e-6);
    };
    const std::vector<Tensor> y = run(15, 3), old = run(9, 5);
    EXPECT_EQ(run(14, 1).size(), 1u);
    for (std::int64_t k = 0; k < c; ++k) {
      const auto elements = [&](const auto& visit) {
        for (std::int64_t i = 0; i < x.size(); ++i) {
          if (i / plane % c == k) visit(i, static_cast<double>(x.data<float>()[i]));
        }
      };
      double count = 0, mean = 0, variance = 0;
      elements([&](std::int64_t, double v) { ++count, mean += v; });
      mean /= count;
      elements([&](std::int64_t, double v) { variance += (v - mean) * (v - mean) / count; });
      const auto parameter = [&](std::size_t i) {
        return static_cast<double>(parameters[i].data<float>()[k]);
      };
      elements([&](std::int64_t i, double v) {
        const double want = (v - mean) / std::sqrt(variance + 1e-5) * parameter(0) + parameter(1);
        ASSERT_NEAR(y[0].data<float>()[i], want, 3e-6);
        ASSERT_NEAR(old[0].data<float>()[i], want, 3e-6);
      });
      ASSERT_NEAR(y[1].data<float>()[k], 0.75 * parameter(2) + 0.25 * mean, 1e-6);
      ASSERT_NEAR(y[2].data<float>()[k], 0.75 * parameter(3) + 0.25 * variance, 1e-6);
      ASSERT_EQ(old[1].data<float>()[k], y[1].data<float>()[k]);
      ASSERT_NEAR(old[3].data<float>()[k], mean, 1e-6);
      ASSERT_NEAR(old[4].data<float>()[k], variance, 1e-6);
    }
  }
}

TEST(BatchNormalization, HasStatisticsOfEveryElementWithoutSpatial) {
  const auto call = [](const Shape& statistics) {
    OpCall c("BatchNormalization", 7);
    c.Attr("spatial", 0).Attr("epsilon", 0.f).In(Iota({2, 1, 2, 2}));
    for (float first : {2.f, 10.f, 1.f, 4.f}) {
      Tensor t(DType::kFloat32, statistics);
      std::int64_t i = 0;
      for (float& v : t.values<float>()) v = first == 1 ? static_cast<float>(i++) : first;
      c.In(std::move(t));
    }
    return c;
  };
  // (x - mean) / 2 * 2 + 10 with means 0, 1, 2, 3.
  EXPECT_EQ(ToVector<float>(call({1, 2, 2}).RunOne()),
            (std::vector<float>{10, 10, 10, 10, 14, 14, 14, 14}));
  EXPECT_FALSE(call({1, 2, 2}).Field());
  EXPECT_THROW(call({1}).Infer(), Error);
}

TEST(BatchNormalization, MixesTypesInLaterOpsets) {
  const auto call = [](int opset, DType scale, DType mean) {
    OpCall c("BatchNormalization", opset);
    c.Attr("epsilon", 0.f).In(Values<Half>({1, 2}, {Half(3.f), Half(5.f)}));
    const auto add = [&](DType dtype, float value) {
      const std::vector<double> wide(2, static_cast<double>(value));
      const std::vector<float> narrow(2, value);
      if (dtype == DType::kFloat64) {
        c.In(Values<double>({2}, wide));
      } else if (dtype == DType::kFloat32) {
        c.In(Floats({2}, narrow));
      } else {
        c.In(Values<Half>({2}, {Half(value), Half(value)}));
      }
    };
    add(scale, 2), add(scale, 1), add(mean, 1), add(mean, 4);
    return c;
  };
  const auto half = DType::kFloat16, single = DType::kFloat32, wide = DType::kFloat64;
  const Tensor y = call(15, single, wide).RunOne();
  EXPECT_EQ(static_cast<float>(y.data<Half>()[0]), 3);
  EXPECT_EQ(static_cast<float>(y.data<Half>()[1]), 5);
  EXPECT_NO_THROW(call(14, half, single).Infer());
  EXPECT_THROW(call(14, single, single).Infer(), Error);
  EXPECT_THROW(call(13, half, single).Infer(), Error);
}

TEST(BatchNormalization, RefusesWrongShapesAndOutputs) {
  const auto call = [](std::int64_t channels) {
    OpCall c("BatchNormalization", 15);
    c.In(Iota({1, 3, 2, 2}));
    for (int i = 0; i < 4; ++i) c.In(Iota({channels}));
    return c;
  };
  EXPECT_NO_THROW(call(3).Infer());
  EXPECT_THROW(call(2).Infer(), Error);
  EXPECT_THROW(call(3).Outputs(3).Infer(), Error);
  EXPECT_THROW(call(3).Attr("training_mode", 1).Outputs(5).Infer(), Error);
}

}  // namespace
}  // namespace tessera
