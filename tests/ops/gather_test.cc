// Gather, GatherElements, GatherND: values worked out by hand or by index arithmetic.
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;

// Coordinates of element i.
Ints Place(const Shape& shape, std::int64_t i) {
  const auto strides = RowMajorStrides(shape);
  Ints at;
  for (int d = 0; d < shape.rank(); ++d) {
    at.push_back(i / strides[static_cast<std::size_t>(d)] % shape[d]);
  }
  return at;
}

std::int64_t Offset(const Shape& shape, const Ints& at) {
  const auto strides = RowMajorStrides(shape);
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
  return offset;
}

// Values of [-dim, dim).
Tensor RandomIndices(const Shape& shape, std::int64_t dim, std::mt19937& random) {
  Tensor t(DType::kInt64, shape);
  std::uniform_int_distribution<std::int64_t> index(-dim, dim - 1);
  for (std::int64_t& v : t.values<std::int64_t>()) v = index(random);
  return t;
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
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const Ints at = Place(y.shape(), i);
    const Ints from{at[0], picks[static_cast<std::size_t>(at[1] * 2 + at[2])], at[3]};
    ASSERT_EQ(y.data<float>()[i], x.data<float>()[Offset(x.shape(), from)]) << i;
  }
  const Tensor scalar =
      OpCall("Gather").In(Int64s({10, 20, 30})).In(Values<std::int32_t>({}, {1})).RunOne();
  EXPECT_EQ(scalar.shape(), Shape{});
  EXPECT_EQ(ToVector<std::int64_t>(scalar), (Ints{20}));
  EXPECT_THROW(OpCall("Gather").In(Iota({3})).In(Int64s({3})).Run({}), Error);
  EXPECT_THROW(OpCall("Gather").In(Iota({3})).In(Int64s({-4})).Run({}), Error);
  EXPECT_THROW(OpCall("Gather").In(Iota({3})).In(Iota({1})).Infer(), Error);
  EXPECT_THROW(OpCall("Gather").In(Iota({})).In(Int64s({0})).Infer(), Error);
}

TEST(Gather, TakesEmptyTensorsAndEveryElementSize) {
  EXPECT_EQ(OpCall("Gather").In(Iota({3, 2})).In(Int64s({})).RunOne().shape(), (Shape{0, 2}));
  EXPECT_EQ(OpCall("Gather").In(Iota({3, 0})).In(Int64s({1})).RunOne().shape(), (Shape{1, 0}));
  EXPECT_THROW(OpCall("Gather").In(Iota({0})).In(Int64s({0})).Run({}), Error);
  EXPECT_THROW(OpCall("Gather").In(Iota({3})).In(Int64s({INT64_MIN})).Run({}), Error);
  const auto last = [](Tensor x) {
    return OpCall("Gather").Attr("axis", -1).In(std::move(x)).In(Int64s({1, -1, 0})).RunOne();
  };
  EXPECT_EQ(ToVector<bool>(last(Values<bool>({1, 3}, {false, true, false}))),
            (std::vector<bool>{true, false, false}));
  EXPECT_EQ(ToVector<std::int16_t>(last(Values<std::int16_t>({1, 3}, {1, 2, 3}))),
            (std::vector<std::int16_t>{2, 3, 1}));
  EXPECT_EQ(ToVector<double>(last(Values<double>({1, 3}, {1, 2, 3}))),
            (std::vector<double>{2, 3, 1}));
}

TEST(Gather, SharesManyRows) {
  std::mt19937 random(1);
  const Tensor x = Iota({3, 50, 7});
  const Tensor indices = RandomIndices({20000}, 50, random);
  const Tensor y = OpCall("Gather").Attr("axis", 1).In(x.Clone()).In(indices.Clone()).RunOne(0);
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const std::int64_t row = indices.data<std::int64_t>()[i / 7 % 20000];
    const std::int64_t from = (i / 140000 * 50 + (row + 50) % 50) * 7 + i % 7;
    ASSERT_EQ(y.data<float>()[i], static_cast<float>(from)) << i;
  }
}

TEST(GatherElements, ReplacesOneCoordinate) {
  const auto call = [](int axis, const Shape& shape, std::vector<std::int32_t> indices) {
    return OpCall("GatherElements", 11)
        .Attr("axis", axis)
        .In(Floats({2, 2}, {1, 2, 3, 4}))
        .In(Values<std::int32_t>(shape, indices));
  };
  EXPECT_EQ(ToVector<float>(call(1, {2, 2}, {0, 0, 1, 0}).RunOne()), (F{1, 1, 4, 3}));
  EXPECT_EQ(ToVector<float>(call(0, {3, 2}, {0, 1, -1, -2, 1, 1}).RunOne()), (F{1, 4, 3, 2, 3, 4}));
  EXPECT_EQ(ToVector<float>(call(-1, {2, 1}, {1, 0}).RunOne()), (F{2, 3}));
  EXPECT_EQ(call(0, {0, 2}, {}).RunOne().shape(), (Shape{0, 2}));
  EXPECT_THROW(call(0, {1, 1}, {2}).Run({}), Error);
  EXPECT_THROW(call(0, {1, 1}, {-3}).Run({}), Error);
  EXPECT_THROW(call(0, {1, 3}, {0, 0, 0}).Infer(), Error);
  EXPECT_THROW(call(0, {2}, {0, 0}).Infer(), Error);
  EXPECT_THROW(call(2, {1, 1}, {0}).Infer(), Error);
  EXPECT_THROW(OpCall("GatherElements").In(Iota({2})).In(Iota({2})).Infer(), Error);
  EXPECT_THROW(OpCall("GatherElements").In(Iota({})).In(Values<std::int64_t>({}, {0})).Infer(),
               Error);
}

TEST(GatherElements, WorksAlongEveryAxisAndForEveryShapeOfIndices) {
  std::mt19937 random(2);
  const Tensor x = Iota({4, 3, 5, 6});
  for (const Shape& shape : {Shape{4, 3, 5, 6}, Shape{2, 3, 1, 6}, Shape{4, 1, 2, 1},
                             Shape{1, 1, 1, 1}, Shape{3, 1, 1, 1}, Shape{1, 2, 5, 1}}) {
    for (int axis = 0; axis < 4; ++axis) {
      const std::int64_t dim = x.shape()[axis];
      const Tensor indices = RandomIndices(shape, dim, random);
      const Tensor y =
          OpCall("GatherElements").Attr("axis", axis).In(x.Clone()).In(indices.Clone()).RunOne(0);
      for (std::int64_t i = 0; i < y.size(); ++i) {
        Ints at = Place(shape, i);
        at[static_cast<std::size_t>(axis)] = (indices.data<std::int64_t>()[i] + dim) % dim;
        ASSERT_EQ(y.data<float>()[i], x.data<float>()[Offset(x.shape(), at)])
            << shape << " axis " << axis << " element " << i;
      }
    }
  }
}

TEST(GatherND, TakesSlicesByTuples) {
  const auto call = [](const Shape& shape, Ints indices, int batch_dims = 0, int opset = 13) {
    return OpCall("GatherND", opset)
        .Attr("batch_dims", batch_dims)
        .In(Iota({2, 2, 2}))
        .In(Values<std::int64_t>(shape, indices));
  };
  EXPECT_EQ(ToVector<float>(call({2, 2}, {0, 1, 1, 0}).RunOne()), (F{2, 3, 4, 5}));
  EXPECT_EQ(ToVector<float>(call({2, 1}, {-1, 0}).RunOne()), (F{4, 5, 6, 7, 0, 1, 2, 3}));
  EXPECT_EQ(ToVector<float>(call({3}, {1, -1, 0}).RunOne()), (F{6}));
  EXPECT_EQ(call({3}, {1, -1, 0}).RunOne().shape(), Shape{});
  EXPECT_EQ(call({2, 1, 2}, {0, 1, 1, 0}).RunOne().shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(ToVector<float>(call({2, 1}, {1, 0}, 1).RunOne()), (F{2, 3, 4, 5}));
  EXPECT_EQ(ToVector<float>(call({2, 2, 1}, {1, 0, 1, 1}, 2).RunOne()), (F{1, 2, 5, 7}));
  EXPECT_EQ(call({0, 2}, {}).RunOne().shape(), (Shape{0, 2}));
  // batch_dims came with opset 12.
  EXPECT_EQ(call({2, 1}, {1, 0}, 1, 11).RunOne().shape(), (Shape{2, 2, 2}));
  EXPECT_THROW(call({1, 1}, {2}).Run({}), Error);
  EXPECT_THROW(call({1, 3}, {0, 0, -3}).Run({}), Error);
  EXPECT_THROW(call({1, 4}, {0, 0, 0, 0}).Infer(), Error);
  EXPECT_THROW(call({1, 0}, {}).Infer(), Error);
  EXPECT_THROW(call({2, 3}, {0, 0, 0, 0, 0, 0}, 1).Infer(), Error);
  EXPECT_THROW(call({1, 1}, {0}, 1).Infer(), Error);  // batches of 2 and 1
  EXPECT_THROW(call({2}, {0, 0}, 1).Infer(), Error);
  EXPECT_THROW(call({2, 1}, {0, 0}, -1).Infer(), Error);
  EXPECT_THROW(OpCall("GatherND").In(Iota({2})).In(Values<std::int32_t>({1}, {0})).Infer(), Error);
  EXPECT_THROW(OpCall("GatherND").In(Iota({2})).In(Values<std::int64_t>({}, {0})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
