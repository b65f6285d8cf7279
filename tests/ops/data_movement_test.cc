// Transpose, Expand, Slice, Split, Gather, Pad, Shape, Size: values worked out by hand or by index
// arithmetic.
#include <algorithm>
#include <climits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;

// out[index] = in[source(index)] for indices as vectors.
template <typename Source>
void ExpectElements(const Tensor& out, const Tensor& in, const Source& source) {
  const auto out_strides = RowMajorStrides(out.shape()), in_strides = RowMajorStrides(in.shape());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    Ints at;
    for (int d = 0; d < out.shape().rank(); ++d) {
      at.push_back(i / out_strides[static_cast<std::size_t>(d)] % out.shape()[d]);
    }
    const Ints from = source(at);
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < from.size(); ++d) offset += from[d] * in_strides[d];
    ASSERT_EQ(out.data<float>()[i], in.data<float>()[offset]) << i;
  }
}

TEST(Transpose, PermutesAnyAxes) {
  const Tensor x = Iota({2, 3, 4, 5});
  for (Ints perm :
       {Ints{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 3, 1}, {0, 3, 1, 2}, {1, 0, 3, 2}, {2, 3, 0, 1}}) {
    const Tensor y = OpCall("Transpose").Attr("perm", perm).In(x.Clone()).RunOne();
    ExpectElements(y, x, [&](const Ints& at) {
      Ints from(4);
      for (std::size_t d = 0; d < 4; ++d) from[static_cast<std::size_t>(perm[d])] = at[d];
      return from;
    });
  }
  const Tensor big = Iota({130, 301});
  const Tensor y = OpCall("Transpose").In(big.Clone()).RunOne();
  ASSERT_EQ(y.shape(), (Shape{301, 130}));
  ExpectElements(y, big, [](const Ints& at) { return Ints{at[1], at[0]}; });
  EXPECT_EQ(OpCall("Transpose").In(Iota({})).RunOne().shape(), Shape{});
  EXPECT_EQ(OpCall("Transpose").In(Iota({0, 3})).RunOne().shape(), (Shape{3, 0}));
  EXPECT_THROW(OpCall("Transpose").Attr("perm", Ints{0}).In(Iota({2, 2})).Infer(), Error);
  EXPECT_THROW(OpCall("Transpose").Attr("perm", Ints{0, 0}).In(Iota({2, 2})).Infer(), Error);
}

TEST(Transpose, TakesEveryElementSize) {
  const auto run = [](Tensor t) { return OpCall("Transpose").In(std::move(t)).RunOne(); };
  EXPECT_EQ(ToVector<std::int8_t>(run(Iota<std::int8_t>({2, 3}))),
            (std::vector<std::int8_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ToVector<std::int16_t>(run(Iota<std::int16_t>({2, 3}))),
            (std::vector<std::int16_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ToVector<std::int64_t>(run(Iota<std::int64_t>({2, 3}))), (Ints{0, 3, 1, 4, 2, 5}));
}

TEST(Expand, BroadcastsBothWays) {
  const auto to = [](Ints shape) {
    return OpCall("Expand").In(Floats({3, 1}, {1, 2, 3})).Const(Int64s(shape));
  };
  EXPECT_EQ(ToVector<float>(to({3, 2}).RunOne()), (F{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(to({2, 1, 6}).RunOne().shape(), (Shape{2, 3, 6}));
  EXPECT_EQ(to({1}).RunOne().shape(), (Shape{3, 1}));
  EXPECT_EQ(to({}).RunOne().shape(), (Shape{3, 1}));
  EXPECT_EQ(to({0}).RunOne().shape(), (Shape{3, 0}));
  EXPECT_THROW(to({2, 1}).Infer(), Error);
  EXPECT_THROW(to({-1}).Infer(), Error);
}

OpCall SliceOf(const Tensor& x, Ints starts, Ints ends, Ints axes = {}, Ints steps = {}) {
  OpCall call("Slice", 13);
  call.In(x.Clone()).Const(Int64s(starts)).Const(Int64s(ends));
  axes.empty() ? call.Absent() : call.Const(Int64s(axes));
  if (!steps.empty()) call.Const(Int64s(steps));
  return call;
}

TEST(Slice, FollowsNumpy) {
  const Tensor x = Iota({10});
  const auto run = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return ToVector<float>(SliceOf(x, {start}, {end}, {0}, {step}).RunOne());
  };
  EXPECT_EQ(run(2, 5, 1), (F{2, 3, 4}));
  EXPECT_EQ(run(-3, INT64_MAX, 1), (F{7, 8, 9}));
  EXPECT_EQ(run(0, -8, 1), (F{0, 1}));
  EXPECT_EQ(run(1, 100, 4), (F{1, 5, 9}));
  EXPECT_EQ(run(-100, 3, 2), (F{0, 2}));
  EXPECT_EQ(run(5, 5, 1), F{});
  EXPECT_EQ(run(7, 3, 1), F{});
  EXPECT_EQ(run(-1, INT64_MIN, -1), (F{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(run(8, 2, -3), (F{8, 5}));
  EXPECT_EQ(run(100, 7, -1), (F{9, 8}));
  EXPECT_EQ(run(3, -100, -2), (F{3, 1}));
  EXPECT_EQ(run(2, 5, INT64_MAX), (F{2}));
  EXPECT_EQ(run(5, -100, INT64_MIN), (F{5}));
  EXPECT_EQ(run(-100, -200, -1), F{});
  EXPECT_EQ(SliceOf(Iota({0}), {0}, {5}, {0}, {-1}).RunOne().shape(), (Shape{0}));
}

TEST(Slice, TakesSomeAxes) {
  const Tensor x = Iota({3, 4, 5});
  const Tensor y = SliceOf(x, {4, 1}, {0, 3}, {-1, 0}, {-2, 1}).RunOne();
  ASSERT_EQ(y.shape(), (Shape{2, 4, 2}));
  ExpectElements(y, x, [](const Ints& at) { return Ints{at[0] + 1, at[1], 4 - 2 * at[2]}; });
  const Tensor z = SliceOf(x, {1, 2}, {2, 4}).RunOne();
  EXPECT_EQ(z.shape(), (Shape{1, 2, 5}));
  EXPECT_THROW(SliceOf(x, {0}, {1, 2}).Infer(), Error);
  EXPECT_THROW(SliceOf(x, {0}, {1}, {3}).Infer(), Error);
  EXPECT_THROW(SliceOf(x, {0, 0}, {1, 1}, {1, 1}).Infer(), Error);
  EXPECT_THROW(SliceOf(x, {0}, {1}, {0}, {0}).Infer(), Error);
}

TEST(Slice, CutsLongRowsIntoPieces) {
  const Tensor x = Iota({300000});
  for (const std::int64_t step : {-1, 2}) {
    const Tensor y =
        SliceOf(x, {step < 0 ? 299998 : 1}, {step < 0 ? 0 : 299999}, {0}, {step}).RunOne();
    ExpectElements(y, x,
                   [&](const Ints& at) { return Ints{(step < 0 ? 299998 : 1) + step * at[0]}; });
  }
  const Tensor contiguous = SliceOf(x, {5}, {299995}).RunOne();
  ExpectElements(contiguous, x, [](const Ints& at) { return Ints{at[0] + 5}; });
}

TEST(Slice, HasAttributesBeforeOpset10) {
  const Tensor y = OpCall("Slice", 9)
                       .Attr("starts", Ints{1})
                       .Attr("ends", Ints{-1})
                       .Attr("axes", Ints{1})
                       .In(Iota({2, 4}))
                       .RunOne();
  EXPECT_EQ(ToVector<float>(y), (F{1, 2, 5, 6}));
}

TEST(Slice, HasAFieldWhenItTakesEveryPixelOfARaster) {
  const auto field = [](Ints starts, Ints ends, Ints axes, Ints steps) {
    return SliceOf(Iota({1, 3, 8, 8}), starts, ends, axes, steps).Field();
  };
  EXPECT_TRUE(field({0}, {2}, {1}, {1}));
  const auto raster = field({1, 0}, {INT64_MAX, INT64_MAX}, {2, 3}, {2, 2});
  ASSERT_TRUE(raster);
  EXPECT_EQ((*raster)[0].den, 2);
  EXPECT_EQ((*raster)[0].lo, 1);
  EXPECT_EQ((*raster)[1].hi, 0);
  EXPECT_FALSE(field({2}, {8}, {2}, {1}));
  EXPECT_FALSE(field({0}, {6}, {3}, {1}));
  EXPECT_FALSE(field({7}, {INT64_MIN}, {3}, {-1}));
}

TEST(Split, HasItsFormsByOpset) {
  const auto shapes = [](const OpCall& call) {
    std::vector<Ints> parts;
    for (const Tensor& t : call.RunAll()) {
      const std::vector<float> values = ToVector<float>(t);
      parts.emplace_back(values.begin(), values.end());
    }
    return parts;
  };
  using Parts = std::vector<Ints>;
  const auto x = [] { return Iota({6}); };
  EXPECT_EQ(shapes(OpCall("Split", 7).In(x()).Outputs(3)), (Parts{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(shapes(OpCall("Split", 7).Attr("split", Ints{1, 5}).In(x()).Outputs(2)),
            (Parts{{0}, {1, 2, 3, 4, 5}}));
  EXPECT_EQ(shapes(OpCall("Split", 13).In(x()).Const(Int64s({4, 0, 2})).Outputs(3)),
            (Parts{{0, 1, 2, 3}, {}, {4, 5}}));
  EXPECT_EQ(shapes(OpCall("Split", 18).Attr("num_outputs", 4).In(Iota({7})).Outputs(4)),
            (Parts{{0, 1}, {2, 3}, {4, 5}, {6}}));
  EXPECT_THROW(OpCall("Split", 13).In(x()).Outputs(4).Infer(), Error);
  EXPECT_THROW(OpCall("Split", 13).In(x()).Const(Int64s({4, 1})).Outputs(2).Infer(), Error);
  EXPECT_THROW(OpCall("Split", 13).In(x()).Const(Int64s({7, -1})).Outputs(2).Infer(), Error);
  EXPECT_THROW(OpCall("Split", 18).Attr("num_outputs", 3).In(x()).Outputs(2).Infer(), Error);
}

TEST(Split, CutsInnerAxes) {
  const Tensor x = Iota({2, 5, 3});
  const std::vector<Tensor> y =
      OpCall("Split", 13).Attr("axis", -2).In(x.Clone()).Const(Int64s({2, 3})).Outputs(2).RunAll();
  ASSERT_EQ(y[1].shape(), (Shape{2, 3, 3}));
  ExpectElements(y[0], x, [](const Ints& at) { return at; });
  ExpectElements(y[1], x, [](const Ints& at) { return Ints{at[0], at[1] + 2, at[2]}; });
}

TEST(Gather, PicksSlices) {
  const Tensor x = Iota({2, 3, 4});
  const Tensor y = OpCall("Gather")
                       .Attr("axis", 1)
                       .In(x.Clone())
                       .In(Values<std::int64_t>({2, 2}, {2, -3, 1, -1}))
                       .RunOne();
  ASSERT_EQ(y.shape(), (Shape{2, 2, 2, 4}));
  const Ints picks{2, 0, 1, 2};
  ExpectElements(y, x, [&](const Ints& at) {
    return Ints{at[0], picks[static_cast<std::size_t>(at[1] * 2 + at[2])], at[3]};
  });
  const Tensor scalar =
      OpCall("Gather").In(Int64s({10, 20, 30})).In(Values<std::int32_t>({}, {1})).RunOne();
  EXPECT_EQ(scalar.shape(), Shape{});
  EXPECT_EQ(ToVector<std::int64_t>(scalar), (Ints{20}));
  EXPECT_THROW(OpCall("Gather").In(Iota({3})).In(Int64s({3})).Run({}), Error);
  EXPECT_THROW(OpCall("Gather").In(Iota({3})).In(Int64s({-4})).Run({}), Error);
  EXPECT_THROW(OpCall("Gather").In(Iota({3})).In(Iota({1})).Infer(), Error);
  EXPECT_THROW(OpCall("Gather").In(Iota({})).In(Int64s({0})).Infer(), Error);
}

OpCall PadOf(const Tensor& x, const char* mode, Ints pads, int opset = 13) {
  OpCall call("Pad", opset);
  call.Attr("mode", mode).In(x.Clone());
  if (opset < 11) return call.Attr("pads", pads);
  return call.Const(Int64s(pads));
}

TEST(Pad, KnowsItsModes) {
  const Tensor x = Floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(ToVector<float>(PadOf(x, "constant", {2, 1}).RunOne()), (F{0, 0, 1, 2, 3, 4, 0}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "edge", {2, 1}).RunOne()), (F{1, 1, 1, 2, 3, 4, 4}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "reflect", {2, 1}).RunOne()), (F{3, 2, 1, 2, 3, 4, 3}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "reflect", {8, 0}).RunOne()),
            (F{3, 2, 1, 2, 3, 4, 3, 2, 1, 2, 3, 4}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "wrap", {2, 5}, 19).RunOne()),
            (F{3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1}));
  EXPECT_EQ(ToVector<float>(PadOf(Floats({1}, {7}), "reflect", {2, 1}).RunOne()), (F{7, 7, 7, 7}));
  EXPECT_THROW(PadOf(x, "wrap", {2, 5}, 18).Infer(), Error);
  EXPECT_THROW(PadOf(x, "mirror", {2, 5}).Infer(), Error);
}

TEST(Pad, CropsWithNegativePads) {
  const Tensor x = Floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(ToVector<float>(PadOf(x, "constant", {-1, -2}).RunOne()), (F{2}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "constant", {-1, 2}).RunOne()), (F{2, 3, 4, 0, 0}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "edge", {2, -3}).RunOne()), (F{1, 1, 1}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "constant", {-6, 5}).RunOne()), (F{0, 0, 0}));
  EXPECT_EQ(PadOf(x, "constant", {-2, -2}).RunOne().shape(), (Shape{0}));
  EXPECT_THROW(PadOf(x, "constant", {-2, -3}).Infer(), Error);
}

TEST(Pad, TakesItsValueAsAttributeOrInput) {
  const Tensor x = Floats({1}, {1});
  EXPECT_EQ(ToVector<float>(PadOf(x, "constant", {1, 0}, 10).Attr("value", 5.f).RunOne()),
            (F{5, 1}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "constant", {1, 0}).In(Floats({}, {6})).RunOne()), (F{6, 1}));
  EXPECT_EQ(
      ToVector<std::int64_t>(
          PadOf(Int64s({1}), "constant", {1, 1}).In(Values<std::int64_t>({1}, {-7})).RunOne()),
      (Ints{-7, 1, -7}));
  EXPECT_THROW(PadOf(x, "constant", {1, 0}).In(Int64s({6})).Infer(), Error);
  EXPECT_THROW(PadOf(x, "constant", {1, 0, 0}).Infer(), Error);
}

TEST(Pad, WorksOnPlanesAndNamedAxes) {
  const Tensor x = Iota({2, 3, 40, 50});
  const Tensor y = PadOf(x, "edge", {0, 0, 2, 3, 0, 0, 1, 4}).RunOne();
  ASSERT_EQ(y.shape(), (Shape{2, 3, 43, 57}));
  ExpectElements(y, x, [](const Ints& at) {
    return Ints{at[0], at[1], std::clamp<std::int64_t>(at[2] - 2, 0, 39),
                std::clamp<std::int64_t>(at[3] - 3, 0, 49)};
  });
  const Tensor z = OpCall("Pad", 18)
                       .Attr("mode", "reflect")
                       .In(x.Clone())
                       .Const(Int64s({1, 0}))
                       .Absent()
                       .Const(Int64s({-2}))
                       .RunOne();
  ASSERT_EQ(z.shape(), (Shape{2, 3, 41, 50}));
  ExpectElements(z, x, [](const Ints& at) {
    return Ints{at[0], at[1], at[2] == 0 ? 1 : at[2] - 1, at[3]};
  });
  EXPECT_EQ(ToVector<float>(PadOf(Floats({}, {3}), "constant", {}).RunOne()), (F{3}));
  EXPECT_TRUE(PadOf(x, "constant", {0, 1, 0, 0, 0, 1, 0, 0}).Field());
  EXPECT_FALSE(PadOf(x, "constant", {0, 0, 1, 0, 0, 0, 1, 0}).Field());
}

TEST(Shape, GivesDimensions) {
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Shape").In(Iota({2, 0, 4})).RunOne()), (Ints{2, 0, 4}));
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Shape").In(Iota({})).RunOne()), Ints{});
  const auto part = [](int start, int end, int opset = 15) {
    return ToVector<std::int64_t>(
        OpCall("Shape", opset).Attr("start", start).Attr("end", end).In(Iota({2, 3, 4})).RunOne());
  };
  EXPECT_EQ(part(1, 3), (Ints{3, 4}));
  EXPECT_EQ(part(-2, -1), (Ints{3}));
  EXPECT_EQ(part(-9, 9), (Ints{2, 3, 4}));
  EXPECT_EQ(part(2, 1), Ints{});
  EXPECT_EQ(part(1, 3, 14), (Ints{2, 3, 4}));
  EXPECT_EQ(ToVector<std::int64_t>(OpCall("Size").In(Iota({2, 3, 4})).RunOne()), (Ints{24}));
}

}  // namespace
}  // namespace tessera
