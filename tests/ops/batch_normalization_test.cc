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

TEST(BatchNormalization, RefusesTrainingAndWrongShapes) {
  const auto call = [](std::int64_t channels) {
    OpCall c("BatchNormalization", 15);
    c.In(Iota({1, 3, 2, 2}));
    for (int i = 0; i < 4; ++i) c.In(Iota({channels}));
    return c;
  };
  EXPECT_NO_THROW(call(3).Infer());
  EXPECT_THROW(call(2).Infer(), Error);
  EXPECT_THROW(call(3).Attr("training_mode", 1).Infer(), Error);
  EXPECT_THROW(call(3).Outputs(3).Infer(), Error);
}

}  // namespace
}  // namespace tessera
