// Transpose, Expand, Tile, Slice, Split, Pad, ReverseSequence, Shape, Size: values worked out by
// hand or by index arithmetic.
#include <algorithm>
#include <climits>

#include "simd/cpu_target.h"
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

TEST(Transpose, PermutesTheHighestRankThereIs) {
  const Tensor x = Iota({2, 3, 1, 2, 2, 3, 2, 5});
  const Ints perm{3, 0, 5, 1, 6, 2, 4, 7}, reversed{7, 6, 5, 4, 3, 2, 1, 0};
  for (const Ints& p : {perm, reversed}) {
    const Tensor y = OpCall("Transpose").Attr("perm", p).In(x.Clone()).RunOne();
    ExpectElements(y, x, [&](const Ints& at) {
      Ints from(8);
      for (std::size_t d = 0; d < 8; ++d) from[static_cast<std::size_t>(p[d])] = at[d];
      return from;
    });
  }
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

TEST(Expand, TakesScalarsAndEmptyTensors) {
  EXPECT_EQ(ToVector<float>(OpCall("Expand").In(Floats({}, {7})).Const(Int64s({2, 2})).RunOne()),
            (F{7, 7, 7, 7}));
  EXPECT_EQ(OpCall("Expand").In(Iota({0, 1})).Const(Int64s({2, 0, 3})).RunOne().shape(),
            (Shape{2, 0, 3}));
  EXPECT_THROW(OpCall("Expand").In(Iota({2})).In(Int64s({2})).Infer(/*constant=*/false),
               NeedsValue);
  EXPECT_THROW(OpCall("Expand").In(Iota({2})).Const(Floats({1}, {2})).Infer(), Error);
  EXPECT_THROW(OpCall("Expand").In(Iota({2})).Const(Values<std::int64_t>({}, {2})).Infer(), Error);
}

TEST(Tile, RepeatsEveryAxis) {
  const auto tile = [](Tensor x, Ints repeats) {
    return OpCall("Tile", 13).In(std::move(x)).Const(Int64s(repeats));
  };
  EXPECT_EQ(ToVector<float>(tile(Iota({2, 2}), {1, 2}).RunOne()), (F{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(ToVector<float>(tile(Iota({2, 2}), {2, 1}).RunOne()), (F{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(ToVector<std::int64_t>(tile(Int64s({4}), {3}).RunOne()), (Ints{4, 4, 4}));
  EXPECT_EQ(ToVector<float>(tile(Floats({}, {5}), {}).RunOne()), (F{5}));
  EXPECT_EQ(tile(Iota({2, 2}), {0, 3}).RunOne().shape(), (Shape{0, 6}));
  EXPECT_EQ(tile(Iota({2, 0}), {3, 3}).RunOne().shape(), (Shape{6, 0}));
  // Every axis of the highest rank there is.
  const Tensor x = Iota({2, 1, 2, 2, 1, 2, 2, 3});
  const Tensor y = tile(x.Clone(), {2, 3, 1, 2, 2, 1, 2, 2}).RunOne();
  ASSERT_EQ(y.shape(), (Shape{4, 3, 2, 4, 2, 2, 4, 6}));
  ExpectElements(y, x, [&](const Ints& at) {
    Ints from;
    for (int d = 0; d < 8; ++d) from.push_back(at[static_cast<std::size_t>(d)] % x.shape()[d]);
    return from;
  });
  EXPECT_THROW(tile(Iota({2, 2}), {2}).Infer(), Error);
  EXPECT_THROW(tile(Iota({2}), {-1}).Infer(), Error);
  EXPECT_THROW(tile(Iota({2}), {INT64_MAX}).Infer(), Error);
  EXPECT_THROW(OpCall("Tile", 13).In(Iota({2})).In(Int64s({1})).Infer(/*constant=*/false),
               NeedsValue);
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
  // Unlike numpy: a backward slice that begins before the first element begins there.
  EXPECT_EQ(run(-100, -200, -1), (F{0}));
  EXPECT_EQ(run(-100, 0, -1), F{});
  EXPECT_EQ(run(0, INT32_MAX, 1), ToVector<float>(x));
  EXPECT_EQ(run(-1, INT32_MIN, -4), (F{9, 5, 1}));
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

TEST(Slice, AsksForValuesThatAreNotKnown) {
  const auto slice = [](Tensor starts) {
    return OpCall("Slice", 13).In(Iota({4})).In(std::move(starts)).Const(Int64s({3}));
  };
  EXPECT_THROW(slice(Int64s({1})).Infer(/*constant=*/false), NeedsValue);
  EXPECT_EQ(ToVector<float>(slice(Values<std::int32_t>({1}, {1})).Run({})[0]), (F{1, 2}));
  EXPECT_THROW(slice(Floats({1}, {1})).Infer(), Error);
  EXPECT_THROW(OpCall("Slice", 13).In(Iota({4})).Const(Int64s({0})).Infer(), Error);
  EXPECT_THROW(OpCall("Slice", 9).Attr("starts", Ints{0}).In(Iota({4})).Infer(), Error);
}

TEST(Slice, CutsBlockedChannelsBetweenBlocks) {
  std::mt19937 random(8);
  const std::int64_t lanes = FloatLanes();
  const Tensor x = RandomTensor({2, 3 * lanes + 1, 5, 3}, random);
  for (const auto& [begin, end] : {std::pair(lanes, 3 * lanes), std::pair(2 * lanes, 99 * lanes)}) {
    const OpCall call = SliceOf(x, {begin}, {end}, {1});
    EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kBlocked);
    const Tensor y = call.RunOne(0);
    ExpectElements(y, x, [&, begin = begin](const Ints& at) {
      return Ints{at[0], at[1] + begin, at[2], at[3]};
    });
  }
  for (const OpCall& call : {SliceOf(x, {0}, {lanes}, {1}, {2}), SliceOf(x, {0}, {2}, {3}),
                             SliceOf(x, {0, 1}, {lanes, 5}, {1, 2}), SliceOf(x, {0}, {0}, {1})}) {
    EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kRowMajor);
    call.RunAll(0);
  }
  if (lanes > 1) {
    EXPECT_EQ(SliceOf(x, {1}, {lanes}, {1}).BlockedChoice().outputs[0], Layout::kRowMajor);
  }
}

TEST(Split, CutsBlockedChannelsBetweenBlocks) {
  std::mt19937 random(9);
  const std::int64_t lanes = FloatLanes();
  const Tensor x = RandomTensor({2, 3 * lanes + 1, 5, 3}, random);
  const auto split = [&](Ints parts) {
    OpCall call("Split", 13);
    call.Attr("axis", 1).In(x.Clone()).Const(Int64s(parts)).Outputs(parts.size());
    return call;
  };
  const OpCall call = split({lanes, 2 * lanes, 1});
  EXPECT_EQ(call.BlockedChoice().outputs[2], Layout::kBlocked);
  const std::vector<Tensor> y = call.RunAll(0);
  ExpectElements(y[1], x, [&](const Ints& at) { return Ints{at[0], at[1] + lanes, at[2], at[3]}; });
  ExpectElements(y[2], x, [&](const Ints& at) {
    return Ints{at[0], at[1] + 3 * lanes, at[2], at[3]};
  });
  EXPECT_EQ(split({3 * lanes + 1, 0}).BlockedChoice().outputs[0], Layout::kRowMajor);
  if (lanes > 1) {
    EXPECT_EQ(split({1, 3 * lanes}).BlockedChoice().outputs[0], Layout::kRowMajor);
    split({1, 3 * lanes}).RunAll(0);
  }
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
  EXPECT_THROW(OpCall("Split", 18).Attr("num_outputs", 4).In(Iota({5})).Outputs(4).Infer(), Error);
  const auto given = [&](OpCall call) { return call.In(x()).In(Int64s({2, 4})).Outputs(2); };
  EXPECT_EQ(shapes(OpCall("Split", 18).In(x()).Const(Int64s({2, 4})).Outputs(2)),
            (Parts{{0, 1}, {2, 3, 4, 5}}));
  EXPECT_THROW(given(OpCall("Split", 18).Attr("num_outputs", 2)).Infer(), Error);
  EXPECT_THROW(given(OpCall("Split", 18)).Infer(/*constant=*/false), NeedsValue);
}

TEST(Split, CutsInnerAxes) {
  const Tensor x = Iota({2, 5, 3});
  const std::vector<Tensor> y =
      OpCall("Split", 13).Attr("axis", -2).In(x.Clone()).Const(Int64s({2, 3})).Outputs(2).RunAll();
  ASSERT_EQ(y[1].shape(), (Shape{2, 3, 3}));
  ExpectElements(y[0], x, [](const Ints& at) { return at; });
  ExpectElements(y[1], x, [](const Ints& at) { return Ints{at[0], at[1] + 2, at[2]}; });
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

TEST(Pad, FillsWithWhatIsLeftOfACroppedAxis) {
  const Tensor x = Floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(ToVector<float>(PadOf(x, "wrap", {-2, 5}, 19).RunOne()), (F{3, 4, 3, 4, 3, 4, 3}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "reflect", {-2, 1}).RunOne()), (F{3, 4, 3}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "reflect", {3, -1}).RunOne()), (F{2, 3, 2, 1, 2, 3}));
  EXPECT_EQ(ToVector<float>(PadOf(x, "edge", {1, -2}).RunOne()), (F{1, 1, 2}));
  EXPECT_THROW(PadOf(x, "edge", {-4, 2}).Infer(), Error);
  EXPECT_EQ(ToVector<float>(PadOf(x, "constant", {-4, 2}).RunOne()), (F{0, 0}));
  EXPECT_EQ(PadOf(x, "edge", {-4, 0}).RunOne().shape(), (Shape{0}));
}

TEST(Pad, KnowsTypesAndInputsByOpset) {
  EXPECT_EQ(ToVector<bool>(PadOf(Values<bool>({1}, {true}), "constant", {1, 0}).RunOne()),
            (std::vector<bool>{false, true}));
  EXPECT_THROW(PadOf(Values<bool>({1}, {true}), "constant", {1, 0}, 11).Infer(), Error);
  EXPECT_EQ(ToVector<std::int64_t>(PadOf(Int64s({1}), "edge", {1, 0}, 11).RunOne()), (Ints{1, 1}));
  EXPECT_THROW(PadOf(Int64s({1}), "edge", {1, 0}, 10).Infer(), Error);
  EXPECT_THROW(OpCall("Pad").In(Iota({1})).In(Int64s({1, 1})).Infer(/*constant=*/false),
               NeedsValue);
  const auto axes = [](Tensor list, Ints pads) {
    return OpCall("Pad", 18).In(Iota({2, 2})).Const(Int64s(pads)).Absent().Const(std::move(list));
  };
  EXPECT_EQ(ToVector<float>(axes(Values<std::int32_t>({1}, {-1}), {1, 0}).RunOne()),
            (F{0, 0, 1, 0, 2, 3}));
  EXPECT_THROW(axes(Int64s({0, -2}), {1, 0, 0, 1}).Infer(), Error);
  EXPECT_THROW(axes(Int64s({2}), {1, 0}).Infer(), Error);
}

TEST(ReverseSequence, ReversesTheBeginningOfEachSequence) {
  const auto call = [](bool time_first, Ints lengths, const Shape& shape) {
    return OpCall("ReverseSequence", 10)
        .Attr("time_axis", time_first ? 0 : 1)
        .Attr("batch_axis", time_first ? 1 : 0)
        .In(Iota(shape))
        .In(Int64s(lengths));
  };
  for (const bool time_first : {false, true}) {
    const Shape shape = time_first ? Shape{4, 3, 2} : Shape{3, 4, 2};
    const Ints lengths{4, 0, 3};
    const Tensor y = call(time_first, lengths, shape).RunOne();
    ExpectElements(y, Iota(shape), [&](Ints at) {
      std::int64_t& time = at[time_first ? 0 : 1];
      const std::int64_t length = lengths[static_cast<std::size_t>(at[time_first ? 1 : 0])];
      if (time < length) time = length - 1 - time;
      return at;
    });
  }
  EXPECT_EQ(ToVector<float>(call(false, {1, 2}, {2, 2}).RunOne()), (F{0, 1, 3, 2}));
  EXPECT_EQ(ToVector<float>(
                OpCall("ReverseSequence").In(Iota({2, 1})).In(Int64s({2})).RunOne()),  // by default
            (F{1, 0}));
  EXPECT_EQ(call(true, {}, {4, 0}).RunOne().shape(), (Shape{4, 0}));
  EXPECT_THROW(call(true, {5, 1, 1}, {4, 3}).Run({}), Error);
  EXPECT_THROW(call(true, {-1, 1, 1}, {4, 3}).Run({}), Error);
  EXPECT_THROW(call(true, {1, 1}, {4, 3}).Infer(), Error);
  EXPECT_THROW(call(true, {1}, {1}).Infer(), Error);
  EXPECT_THROW(
      OpCall("ReverseSequence").Attr("time_axis", 1).In(Iota({2, 2})).In(Int64s({1, 1})).Infer(),
      Error);
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
