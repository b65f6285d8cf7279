#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

Shape Out(const OpCall& call) { return call.RunOne().shape(); }

TEST(Reshape, UnderstandsZeroAndMinusOne) {
  const auto to = [](std::vector<std::int64_t> dims, Shape in = {2, 3, 4}, int opset = 13) {
    return OpCall("Reshape", opset).In(Iota(in)).Const(Int64s(dims));
  };
  EXPECT_EQ(Out(to({4, 6})), (Shape{4, 6}));
  EXPECT_EQ(Out(to({-1})), (Shape{24}));
  EXPECT_EQ(Out(to({0, -1})), (Shape{2, 12}));
  EXPECT_EQ(Out(to({2, 0, 1, -1})), (Shape{2, 3, 1, 4}));
  EXPECT_EQ(Out(to({}, {1, 1})), Shape{});
  EXPECT_EQ(Out(to({-1}, {0, 3})), (Shape{0}));
  EXPECT_EQ(ToVector<float>(to({4, 6}).RunOne()), ToVector<float>(Iota({24})));
  EXPECT_THROW(to({-1, -1}).Infer(), Error);
  EXPECT_THROW(to({5, -1}).Infer(), Error);
  EXPECT_THROW(to({5, 5}).Infer(), Error);
  EXPECT_THROW(to({-2, 12}).Infer(), Error);
  EXPECT_THROW(to({2, 3, 4, 0}).Infer(), Error);
  EXPECT_THROW(to({0, -1}, {0, 3}).Infer(), Error);
  EXPECT_THROW(OpCall("Reshape").In(Iota({4})).In(Int64s({2, 2})).Infer(/*constant=*/false),
               NeedsValue);
  EXPECT_THROW(OpCall("Reshape").In(Iota({4})).Const(Floats({1}, {4})).Infer(), Error);
  EXPECT_THROW(OpCall("Reshape").In(Iota({4})).Infer(), Error);
}

TEST(Reshape, AllowsZeroSinceOpset14) {
  const auto call = [](int opset) {
    return OpCall("Reshape", opset).Attr("allowzero", 1).In(Iota({0, 3})).Const(Int64s({3, 0}));
  };
  EXPECT_EQ(Out(call(14)), (Shape{3, 0}));
  EXPECT_THROW(call(13).Infer(), Error);
  // A dimension of 0 leaves open what -1 stands for.
  EXPECT_THROW(
      OpCall("Reshape", 14).Attr("allowzero", 1).In(Iota({0, 3})).Const(Int64s({0, -1})).Infer(),
      Error);
}

TEST(Flatten, SplitsAtItsAxis) {
  const auto at = [](int axis) { return OpCall("Flatten").Attr("axis", axis).In(Iota({2, 3, 4})); };
  EXPECT_EQ(Out(OpCall("Flatten").In(Iota({2, 3, 4}))), (Shape{2, 12}));
  EXPECT_EQ(Out(at(0)), (Shape{1, 24}));
  EXPECT_EQ(Out(at(3)), (Shape{24, 1}));
  EXPECT_EQ(Out(at(-1)), (Shape{6, 4}));
  EXPECT_EQ(Out(OpCall("Flatten").Attr("axis", 0).In(Iota({}))), (Shape{1, 1}));
  EXPECT_THROW(at(4).Infer(), Error);
  EXPECT_THROW(at(-4).Infer(), Error);
}

TEST(Squeeze, TakesAxesAsAttributeOrInput) {
  const Shape in{1, 3, 1, 2};
  using Axes = std::vector<std::int64_t>;
  EXPECT_EQ(Out(OpCall("Squeeze", 11).In(Iota(in))), (Shape{3, 2}));
  EXPECT_EQ(Out(OpCall("Squeeze", 11).Attr("axes", Axes{0}).In(Iota(in))), (Shape{3, 1, 2}));
  EXPECT_EQ(Out(OpCall("Squeeze", 13).In(Iota(in))), (Shape{3, 2}));
  EXPECT_EQ(Out(OpCall("Squeeze", 13).In(Iota(in)).Const(Int64s({-2}))), (Shape{1, 3, 2}));
  EXPECT_EQ(Out(OpCall("Squeeze", 13).In(Iota({1})).Const(Int64s({0}))), Shape{});
  EXPECT_THROW(OpCall("Squeeze", 13).In(Iota(in)).Const(Int64s({1})).Infer(), Error);
  EXPECT_THROW(OpCall("Squeeze", 13).In(Iota(in)).Const(Int64s({0, 0})).Infer(), Error);
  EXPECT_THROW(OpCall("Squeeze", 13).In(Iota(in)).Const(Int64s({4})).Infer(), Error);
}

TEST(Unsqueeze, TakesAxesAsAttributeOrInput) {
  using Axes = std::vector<std::int64_t>;
  EXPECT_EQ(Out(OpCall("Unsqueeze", 11).Attr("axes", Axes{0, 3}).In(Iota({2, 3}))),
            (Shape{1, 2, 3, 1}));
  EXPECT_EQ(Out(OpCall("Unsqueeze", 13).In(Iota({2, 3})).Const(Int64s({-1, 1}))),
            (Shape{2, 1, 3, 1}));
  EXPECT_EQ(Out(OpCall("Unsqueeze", 13).In(Iota({})).Const(Int64s({0}))), (Shape{1}));
  EXPECT_THROW(OpCall("Unsqueeze", 13).In(Iota({2})).Infer(), Error);
  EXPECT_THROW(OpCall("Unsqueeze", 11).In(Iota({2})).Infer(), Error);
  EXPECT_THROW(OpCall("Unsqueeze", 13).In(Iota({2})).Const(Int64s({1, 1})).Infer(), Error);
  EXPECT_THROW(OpCall("Unsqueeze", 13).In(Iota({2})).Const(Int64s({2})).Infer(), Error);
  EXPECT_THROW(
      OpCall("Unsqueeze", 13).In(Iota({1, 1, 1, 1, 1, 1, 1, 1})).Const(Int64s({0})).Infer(), Error);
}

TEST(Dropout, KeepsEverythingAtInference) {
  const Tensor x = Floats({3}, {1, 2, 3});
  EXPECT_EQ(ToVector<float>(OpCall("Dropout", 7).Attr("ratio", 0.7f).In(x.Clone()).RunOne()),
            (std::vector<float>{1, 2, 3}));
  const std::vector<Tensor> old = OpCall("Dropout", 7).In(x.Clone()).Outputs(2).RunAll();
  EXPECT_EQ(ToVector<float>(old[1]), (std::vector<float>{1, 1, 1}));
  const std::vector<Tensor> now = OpCall("Dropout", 13)
                                      .In(x.Clone())
                                      .In(Floats({}, {0.5f}))
                                      .Const(Values<bool>({}, {false}))
                                      .Outputs(2)
                                      .RunAll();
  EXPECT_EQ(ToVector<float>(now[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(ToVector<bool>(now[1]), (std::vector<bool>{true, true, true}));
  EXPECT_THROW(OpCall("Dropout", 13)
                   .In(x.Clone())
                   .In(Floats({}, {0.5f}))
                   .Const(Values<bool>({}, {true}))
                   .Infer(),
               Error);
}

TEST(Dropout, AllowsTrainingWithoutDropping) {
  const auto call = [](float ratio, bool training) {
    return OpCall("Dropout", 13)
        .Outputs(2)
        .In(Iota({4}))
        .In(Values<double>({}, {ratio}))
        .In(Values<bool>({}, {training}));
  };
  EXPECT_EQ(ToVector<float>(call(0, true).RunAll()[0]), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(ToVector<bool>(call(0, true).RunAll()[1]), std::vector<bool>(4, true));
  EXPECT_EQ(ToVector<float>(call(0.5f, false).RunAll()[0]), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_THROW(call(0.5f, true).Infer(), Error);
  // Values that are not known yet are checked when they are.
  EXPECT_NO_THROW(call(0.5f, true).Infer(false));
  EXPECT_THROW(call(0.5f, true).Run({.constant = false}), Error);
  // The ratio is 0.5 unless it is given.
  EXPECT_THROW(OpCall("Dropout", 13).In(Iota({4})).Absent().In(Values<bool>({}, {true})).Infer(),
               Error);
  EXPECT_THROW(OpCall("Dropout", 11).In(Iota({4})).In(Floats({}, {0})).Infer(), Error);
  EXPECT_THROW(OpCall("Dropout", 13).In(Iota<std::int32_t>({4})).Infer(), Error);
  EXPECT_THROW(OpCall("Dropout", 13).In(Iota({4})).In(Floats({2}, {0, 0})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
