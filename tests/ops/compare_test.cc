#include <cmath>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Bools = std::vector<bool>;

Bools Compute(const char* type, Tensor a, Tensor b) {
  return ToVector<bool>(OpCall(type).In(std::move(a)).In(std::move(b)).RunOne());
}

TEST(Compare, GivesBools) {
  const auto a = [] { return Floats({4}, {1, 2, 3, NAN}); };
  const auto b = [] { return Floats({}, {2}); };
  EXPECT_EQ(Compute("Equal", a(), b()), (Bools{false, true, false, false}));
  EXPECT_EQ(Compute("Greater", a(), b()), (Bools{false, false, true, false}));
  EXPECT_EQ(Compute("GreaterOrEqual", a(), b()), (Bools{false, true, true, false}));
  EXPECT_EQ(Compute("Less", a(), b()), (Bools{true, false, false, false}));
  EXPECT_EQ(Compute("LessOrEqual", a(), b()), (Bools{true, true, false, false}));
  EXPECT_EQ(Compute("Less", b(), a()), (Bools{false, false, true, false}));
}

TEST(Compare, WorksOnEveryType) {
  const std::int64_t big = std::int64_t{1} << 53;
  EXPECT_EQ(Compute("Equal", Int64s({big, big + 1}), Int64s({big, big})), (Bools{true, false}));
  EXPECT_EQ(
      Compute("Less", Values<std::uint8_t>({2}, {200, 3}), Values<std::uint8_t>({2}, {100, 4})),
      (Bools{false, true}));
  EXPECT_EQ(Compute("Equal", Values<bool>({2}, {true, false}), Values<bool>({1}, {false})),
            (Bools{false, true}));
  EXPECT_EQ(Compute("Greater", Values<Half>({2}, {0.5f, -1.f}), Values<Half>({}, {0.f})),
            (Bools{true, false}));
  EXPECT_THROW(OpCall("Less").In(Values<bool>({1}, {true})).In(Values<bool>({1}, {true})).Infer(),
               Error);
  EXPECT_THROW(OpCall("Equal").In(Iota({1})).In(Int64s({1})).Infer(), Error);
}

TEST(Compare, TakesMoreTypesInLaterOpsets) {
  const auto call = [](const char* type, int opset, auto value) {
    const auto in = [&] { return Values<decltype(value)>({1}, {value}); };
    return OpCall(type, opset).In(in()).In(in()).Infer()[0].dtype;
  };
  EXPECT_EQ(call("Equal", 7, std::int64_t{1}), DType::kBool);
  EXPECT_EQ(call("Equal", 7, true), DType::kBool);
  EXPECT_THROW(call("Equal", 10, 1.f), Error);
  EXPECT_EQ(call("Equal", 11, 1.f), DType::kBool);
  EXPECT_EQ(call("Less", 7, 1.f), DType::kBool);
  EXPECT_THROW(call("Less", 8, std::int32_t{1}), Error);
  EXPECT_EQ(call("Greater", 9, std::uint16_t{1}), DType::kBool);
  EXPECT_EQ(FindOp("LessOrEqual")->first_opset, 12);
}

TEST(Compare, BroadcastsOverLargeTensors) {
  const Tensor y =
      OpCall("Less").In(Iota({3, 1, 5000})).In(Floats({4, 1}, {0, 1, 5000, 1e9f})).RunOne();
  ASSERT_EQ(y.shape(), (Shape{3, 4, 5000}));
  const float limits[] = {0, 1, 5000, 1e9f};
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const std::int64_t n = i / 20000, x = i % 5000;
    ASSERT_EQ(y.data<bool>()[i], static_cast<float>(n * 5000 + x) < limits[i / 5000 % 4]) << i;
  }
  EXPECT_EQ(OpCall("Equal").In(Iota({0, 3})).In(Iota({3})).RunOne().shape(), (Shape{0, 3}));
}

TEST(Logic, CombinesBools) {
  const auto a = [] { return Values<bool>({2, 2}, {false, false, true, true}); };
  const auto b = [] { return Values<bool>({2}, {false, true}); };
  EXPECT_EQ(Compute("And", a(), b()), (Bools{false, false, false, true}));
  EXPECT_EQ(Compute("Or", a(), b()), (Bools{false, true, true, true}));
  EXPECT_EQ(Compute("Xor", a(), b()), (Bools{false, true, true, false}));
  EXPECT_EQ(Compute("Xor", b(), a()), (Bools{false, true, true, false}));
  EXPECT_EQ(ToVector<bool>(OpCall("Not").In(b()).RunOne()), (Bools{true, false}));
  EXPECT_THROW(OpCall("And").In(Iota({1})).In(Iota({1})).Infer(), Error);
  EXPECT_THROW(OpCall("Not").In(Iota({1})).Infer(), Error);
}

TEST(Where, ChoosesAndBroadcasts) {
  const Tensor y = OpCall("Where")
                       .In(Values<bool>({2, 1}, {true, false}))
                       .In(Floats({3}, {1, 2, 3}))
                       .In(Floats({}, {9}))
                       .RunOne();
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(ToVector<float>(y), (std::vector<float>{1, 2, 3, 9, 9, 9}));
  const Tensor z = OpCall("Where")
                       .In(Values<bool>({1}, {false}))
                       .In(Values<std::int64_t>({1, 2}, {1, 2}))
                       .In(Values<std::int64_t>({2, 2}, {INT64_MIN, 4, 5, 6}))
                       .RunOne();
  EXPECT_EQ(ToVector<std::int64_t>(z), (std::vector<std::int64_t>{INT64_MIN, 4, 5, 6}));
  const Tensor b = OpCall("Where")
                       .In(Values<bool>({}, {true}))
                       .In(Values<bool>({2}, {true, false}))
                       .In(Values<bool>({1}, {true}))
                       .RunOne();
  EXPECT_EQ(ToVector<bool>(b), (Bools{true, false}));
  const Tensor h = OpCall("Where")
                       .In(Values<bool>({2}, {true, false}))
                       .In(Values<std::int16_t>({}, {-7}))
                       .In(Values<std::int16_t>({2}, {5, 6}))
                       .RunOne();
  EXPECT_EQ(ToVector<std::int16_t>(h), (std::vector<std::int16_t>{-7, 6}));
  EXPECT_EQ(OpCall("Where")
                .In(Values<bool>({0, 1}, {}))
                .In(Floats({3}, {1, 2, 3}))
                .In(Floats({}, {9}))
                .RunOne()
                .shape(),
            (Shape{0, 3}));
  EXPECT_THROW(OpCall("Where").In(Iota({1})).In(Iota({1})).In(Iota({1})).Infer(), Error);
  EXPECT_THROW(OpCall("Where").In(Values<bool>({1}, {true})).In(Iota({1})).In(Int64s({1})).Infer(),
               Error);
}

}  // namespace
}  // namespace tessera
