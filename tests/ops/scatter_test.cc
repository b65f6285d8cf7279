// Scatter, ScatterElements, ScatterND: values worked out by hand, or by the loops with which the
// specification defines them.
#include <cmath>
#include <limits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;
using F = std::vector<float>;

TEST(ScatterElements, UpdatesOneCoordinate) {
  const auto call = [](int axis, const Shape& shape, Ints indices, F updates) {
    return OpCall("ScatterElements", 11)
        .Attr("axis", axis)
        .In(Iota({3, 3}))
        .In(Values<std::int64_t>(shape, indices))
        .In(Floats(shape, updates));
  };
  EXPECT_EQ(ToVector<float>(call(0, {2, 3}, {1, 0, 2, 0, 2, 1}, {10, 11, 12, 20, 21, 22}).RunOne()),
            (F{20, 11, 2, 10, 4, 22, 6, 21, 12}));
  EXPECT_EQ(ToVector<float>(call(-1, {1, 2}, {1, -1}, {10, 11}).RunOne()),
            (F{0, 10, 11, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(ToVector<float>(call(1, {3, 1}, {0, 1, 2}, {10, 11, 12}).RunOne()),
            (F{10, 1, 2, 3, 11, 5, 6, 7, 12}));
  EXPECT_EQ(ToVector<float>(call(0, {0, 3}, {}, {}).RunOne()), ToVector<float>(Iota({3, 3})));
  EXPECT_THROW(call(0, {1, 1}, {3}, {1}).Run({}), Error);
  EXPECT_THROW(call(0, {1, 1}, {INT64_MIN}, {1}).Run({}), Error);
  EXPECT_THROW(call(0, {1, 4}, {0, 0, 0, 0}, {1, 1, 1, 1}).Infer(), Error);
  EXPECT_THROW(call(2, {1, 1}, {0}, {1}).Infer(), Error);
  EXPECT_THROW(OpCall("ScatterElements").In(Iota({3})).In(Int64s({0})).In(Int64s({1})).Infer(),
               Error);
  EXPECT_THROW(OpCall("ScatterElements").In(Iota({3})).In(Int64s({0})).In(Iota({2})).Infer(),
               Error);
}

TEST(ScatterElements, IsScatterBeforeOpset11) {
  EXPECT_EQ(FindOp("Scatter")->first_opset, 9);
  EXPECT_EQ(FindOp("Scatter")->last_opset, 10);
  EXPECT_EQ(FindOp("ScatterElements")->first_opset, 11);
  EXPECT_EQ(ToVector<float>(OpCall("Scatter", 9)
                                .Attr("axis", 1)
                                .In(Floats({1, 5}, {1, 2, 3, 4, 5}))
                                .In(Values<std::int32_t>({1, 2}, {1, 3}))
                                .In(Floats({1, 2}, {9, 8}))
                                .RunOne()),
            (F{1, 9, 3, 8, 5}));
}

template <typename T>
std::vector<T> Reduced(const char* type, const char* reduction, std::vector<T> data,
                       std::vector<T> updates, int opset = 18) {
  const auto n = static_cast<std::int64_t>(data.size());
  const auto m = static_cast<std::int64_t>(updates.size());
  const Ints first(updates.size());
  Tensor zeros =
      Values<std::int64_t>(std::string(type) == "ScatterElements" ? Shape{m} : Shape{m, 1}, first);
  const Tensor y = OpCall(type, opset)
                       .Attr("reduction", reduction)
                       .In(Values<T>({n}, data))
                       .In(std::move(zeros))
                       .In(Values<T>({m}, updates))
                       .RunOne(0);
  return ToVector<T>(y);
}

TEST(Scatter, CombinesUpdatesOfOneElement) {
  for (const char* type : {"ScatterElements", "ScatterND"}) {
    using I = std::vector<std::int32_t>;
    EXPECT_EQ(Reduced<float>(type, "none", {1, 2}, {5, 3}), (F{3, 2})) << type;
    EXPECT_EQ(Reduced<float>(type, "add", {1, 2}, {5, 3}, 16), (F{9, 2})) << type;
    EXPECT_EQ(Reduced<float>(type, "mul", {2, 2}, {5, 3}, 16), (F{30, 2})) << type;
    EXPECT_EQ(Reduced<float>(type, "min", {4, 2}, {5, 3}), (F{3, 2})) << type;
    EXPECT_EQ(Reduced<float>(type, "max", {4, 2}, {5, 3}), (F{5, 2})) << type;
    EXPECT_TRUE(std::isnan(Reduced<float>(type, "max", {4, 2}, {5, NAN, 3})[0])) << type;
    EXPECT_TRUE(std::isnan(Reduced<float>(type, "min", {NAN, 2}, {5, 3})[0])) << type;
    EXPECT_EQ(Reduced<std::int32_t>(type, "add", {INT32_MAX}, {1}), (I{INT32_MIN})) << type;
    EXPECT_EQ(Reduced<std::int32_t>(type, "mul", {INT32_MIN}, {-1}), (I{INT32_MIN})) << type;
    EXPECT_EQ(Reduced<std::uint16_t>(type, "mul", {65535}, {65535}),
              (std::vector<std::uint16_t>{1}))
        << type;
    EXPECT_EQ(Reduced<std::int64_t>(type, "max", {-5}, {-7, -3}), (Ints{-3})) << type;
    EXPECT_EQ(Reduced<bool>(type, "add", {true}, {true}), (std::vector<bool>{true})) << type;
    EXPECT_EQ(Reduced<bool>(type, "mul", {true}, {true, false}), (std::vector<bool>{false}))
        << type;
    EXPECT_EQ(static_cast<float>(Reduced<Half>(type, "add", {1.5f}, {2.f})[0]), 3.5f) << type;
    EXPECT_THROW(Reduced<float>(type, "min", {1}, {1}, 16), Error) << type;
    EXPECT_THROW(Reduced<float>(type, "sum", {1}, {1}), Error) << type;
    // There was no reduction yet.
    EXPECT_EQ(Reduced<float>(type, "add", {1, 2}, {5, 3}, 15), (F{3, 2})) << type;
  }
}

TEST(ScatterElements, FollowsTheLoopsOfTheSpecification) {
  std::mt19937 random(3);
  const Shape shape{3, 4, 5};
  for (const Shape& of_indices : {Shape{3, 4, 5}, Shape{2, 1, 5}, Shape{3, 2, 1}, Shape{1, 4, 1}}) {
    for (int axis = 0; axis < 3; ++axis) {
      const Tensor data = RandomTensor(shape, random), updates = RandomTensor(of_indices, random);
      Tensor indices(DType::kInt64, of_indices);
      std::uniform_int_distribution<std::int64_t> index(-shape[axis], shape[axis] - 1);
      for (std::int64_t& v : indices.values<std::int64_t>()) v = index(random);
      const Tensor y = OpCall("ScatterElements", 16)
                           .Attr("axis", axis)
                           .Attr("reduction", "add")
                           .In(data.Clone())
                           .In(indices.Clone())
                           .In(updates.Clone())
                           .RunOne(0);
      const Tensor want = data.Clone();
      const float* update = updates.data<float>();
      const std::int64_t* chosen = indices.data<std::int64_t>();
      for (std::int64_t i = 0; i < of_indices[0]; ++i) {
        for (std::int64_t j = 0; j < of_indices[1]; ++j) {
          for (std::int64_t k = 0; k < of_indices[2]; ++k, ++chosen) {
            std::int64_t at[] = {i, j, k};
            at[axis] = *chosen < 0 ? *chosen + shape[axis] : *chosen;
            want.data<float>()[(at[0] * 4 + at[1]) * 5 + at[2]] += *update++;
          }
        }
      }
      ExpectClose(y, want, 0, ToString(of_indices));
    }
  }
}

TEST(ScatterND, UpdatesSlicesByTuples) {
  const auto call = [](const Shape& shape, Ints indices, const Shape& of_updates) {
    Tensor updates = Iota(of_updates);
    for (float& v : updates.values<float>()) v += 100;
    return OpCall("ScatterND", 11)
        .In(Iota({2, 2, 2}))
        .In(Values<std::int64_t>(shape, indices))
        .In(std::move(updates));
  };
  EXPECT_EQ(ToVector<float>(call({1, 1}, {-1}, {1, 2, 2}).RunOne()),
            (F{0, 1, 2, 3, 100, 101, 102, 103}));
  EXPECT_EQ(ToVector<float>(call({2, 2}, {0, 1, 1, 0}, {2, 2}).RunOne()),
            (F{0, 1, 100, 101, 102, 103, 6, 7}));
  EXPECT_EQ(ToVector<float>(call({3}, {1, -1, 0}, {}).RunOne()), (F{0, 1, 2, 3, 4, 5, 100, 7}));
  EXPECT_EQ(ToVector<float>(call({0, 3}, {}, {0}).RunOne()), ToVector<float>(Iota({8})));
  EXPECT_THROW(call({1, 3}, {0, 0, 2}, {1}).Run({}), Error);
  EXPECT_THROW(call({1, 3}, {0, -3, 0}, {1}).Run({}), Error);
  EXPECT_THROW(call({1, 4}, {0, 0, 0, 0}, {1}).Infer(), Error);
  EXPECT_THROW(call({1, 2}, {0, 0}, {1}).Infer(), Error);
  EXPECT_THROW(call({1, 2}, {0, 0}, {2, 2}).Infer(), Error);
  EXPECT_THROW(
      OpCall("ScatterND").In(Iota({2})).In(Values<std::int32_t>({1, 1}, {0})).In(Iota({1})).Infer(),
      Error);
}

}  // namespace
}  // namespace tessera
