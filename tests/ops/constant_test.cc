#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

TEST(Constant, HasFiveForms) {
  EXPECT_EQ(ToVector<float>(OpCall("Constant").Attr("value_float", 1.5f).RunOne()),
            (std::vector<float>{1.5f}));
  EXPECT_EQ(OpCall("Constant").Attr("value_int", 7).RunOne().shape(), Shape{});
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Constant").Attr("value_int", 7).RunOne()),
            (std::vector<std::int64_t>{7}));
  EXPECT_EQ(
      ToVector<float>(OpCall("Constant").Attr("value_floats", std::vector<float>{1, 2}).RunOne()),
      (std::vector<float>{1, 2}));
  EXPECT_EQ(ToVector<std::int64_t>(
                OpCall("Constant").Attr("value_ints", std::vector<std::int64_t>{3, 4, 5}).RunOne()),
            (std::vector<std::int64_t>{3, 4, 5}));
  const auto value = std::make_shared<const Tensor>(Values<std::int8_t>({2, 1}, {-1, 1}));
  const Tensor y = OpCall("Constant").Attr("value", value).RunOne();
  EXPECT_EQ(y.shape(), (Shape{2, 1}));
  EXPECT_EQ(ToVector<std::int8_t>(y), (std::vector<std::int8_t>{-1, 1}));
  EXPECT_THROW(OpCall("Constant").Infer(), Error);
  EXPECT_THROW(OpCall("Constant").Attr("value_string", "text").Infer(), Error);
}

TEST(ConstantOfShape, FillsAShape) {
  EXPECT_EQ(ToVector<float>(OpCall("ConstantOfShape").Const(Int64s({2, 1})).RunOne()),
            (std::vector<float>{0, 0}));
  const auto value = std::make_shared<const Tensor>(Int64s({9}));
  const Tensor y = OpCall("ConstantOfShape").Attr("value", value).Const(Int64s({})).RunOne();
  EXPECT_EQ(y.shape(), Shape{});
  EXPECT_EQ(ToVector<std::int64_t>(y), (std::vector<std::int64_t>{9}));
  EXPECT_EQ(OpCall("ConstantOfShape").Const(Int64s({3, 0})).RunOne().shape(), (Shape{3, 0}));
  EXPECT_THROW(OpCall("ConstantOfShape").Const(Int64s({-1})).Infer(), Error);
  EXPECT_THROW(OpCall("ConstantOfShape").In(Int64s({1})).Infer(/*constant=*/false), Error);
  const auto two = std::make_shared<const Tensor>(Int64s({9, 9}));
  EXPECT_THROW(OpCall("ConstantOfShape").Attr("value", two).Const(Int64s({1})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
