#include <cmath>
#include <limits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

Tensor Input() { return Floats({1, 3, 1, 2}, {-3, -1, 0, 0.5, 2, 9}); }

TEST(Clip, ReadsAttributesBeforeOpset11) {
  const Tensor y = OpCall("Clip", 6).Attr("min", -1.f).Attr("max", 2.f).In(Input()).RunOne();
  EXPECT_EQ(ToVector<float>(y), (std::vector<float>{-1, -1, 0, 0.5, 2, 2}));
  const Tensor low = OpCall("Clip", 10).Attr("min", 0.f).In(Input()).RunOne();
  EXPECT_EQ(ToVector<float>(low), (std::vector<float>{0, 0, 0, 0.5, 2, 9}));
  EXPECT_THROW(OpCall("Clip", 10).In(Input()).In(Floats({}, {0})).Infer(), Error);
}

TEST(Clip, ReadsInputsSinceOpset11) {
  const auto bound = [](float v) { return Floats({}, {v}); };
  const Tensor both = OpCall("Clip", 13).In(Input()).In(bound(-1)).In(bound(2)).RunOne();
  EXPECT_EQ(ToVector<float>(both), (std::vector<float>{-1, -1, 0, 0.5, 2, 2}));
  const Tensor high = OpCall("Clip", 13).In(Input()).Absent().In(bound(0)).RunOne();
  EXPECT_EQ(ToVector<float>(high), (std::vector<float>{-3, -1, 0, 0, 0, 0}));
  const Tensor none = OpCall("Clip", 11).In(Input()).RunOne();
  EXPECT_EQ(ToVector<float>(none), ToVector<float>(Input()));
  // Bounds the wrong way round: the upper one wins.
  const Tensor crossed = OpCall("Clip", 13).In(Input()).In(bound(2)).In(bound(1)).RunOne();
  EXPECT_EQ(ToVector<float>(crossed), std::vector<float>(6, 1.f));
}

TEST(Clip, LimitsThatAreLeftOutAreTheGreatestFiniteNumbers) {
  const float most = std::numeric_limits<float>::max(), infinity = HUGE_VALF;
  for (int opset : {7, 11, 13}) {
    const Tensor y = OpCall("Clip", opset).In(Floats({2}, {infinity, -infinity})).RunOne();
    EXPECT_EQ(ToVector<float>(y), (std::vector<float>{most, -most}));
  }
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Clip", 13).In(Int64s({INT64_MIN, 5})).RunOne()),
            (std::vector<std::int64_t>{INT64_MIN, 5}));
  EXPECT_TRUE(std::isnan(OpCall("Clip", 13).In(Floats({}, {NAN})).RunOne().data<float>()[0]));
}

TEST(Clip, TakesIntegersSinceOpset12) {
  const auto call = [](int opset) {
    OpCall c("Clip", opset);
    c.In(Values<std::int8_t>({3}, {-100, 5, 100}));
    c.In(Values<std::int8_t>({}, {-10})).In(Values<std::int8_t>({}, {50}));
    return c;
  };
  EXPECT_EQ(ToVector<std::int8_t>(call(12).RunOne()), (std::vector<std::int8_t>{-10, 5, 50}));
  EXPECT_THROW(call(11).Infer(), Error);
  EXPECT_THROW(OpCall("Clip", 13).In(Input()).In(Int64s({1})).Infer(), Error);
  EXPECT_THROW(OpCall("Clip", 13).In(Input()).In(Floats({2}, {1, 2})).Infer(), Error);
}

TEST(Clip, AgreesOnLargeTensors) {
  std::mt19937 random(2);
  OpCall("Clip", 13)
      .In(RandomTensor({2, 35, 31, 17}, random))
      .In(Floats({}, {-0.25f}))
      .In(Floats({1}, {0.5f}))
      .RunAll(0);
}

}  // namespace
}  // namespace tessera
