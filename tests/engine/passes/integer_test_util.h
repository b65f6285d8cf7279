// What the tests of the integer passes share: models of a quantised input "x" [1, 4, H, W], and how
// far their results are from those of float operators.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/passes/pass_test_util.h"
#include "tests/engine/passes/quantized_model.h"

namespace tessera {

constexpr ByteScale kIn{0.02f, 120};
constexpr ByteScale kOut{0.03f, 100};
inline const Shape kShape{1, 4, 6, 8};

inline Tensor Run(const TestModel& m, const SessionOptions& options, const Shape& shape = kShape) {
  const Tensor x = Tensor::FromVector<float>(
      shape, TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 9, 2.5f));
  std::vector<Tensor> outputs;
  m.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
  return std::move(outputs[0]);
}

// The largest difference of an element from what plain float operators give. On every target.
inline double DifferenceFromFloat(const TestModel& m, const Shape& shape = kShape) {
  const Tensor plain = Run(m, {.reference = true}, shape);
  const auto [low, high] = std::ranges::minmax(plain.values<float>());
  EXPECT_LT(low, high);
  double largest = 0;
  OnEveryTarget([&] {
    const Tensor with = Run(m, {}, shape);
    ASSERT_EQ(with.shape(), plain.shape());
    for (std::int64_t i = 0; i < with.size(); ++i) {
      const double d = std::abs(with.data<float>()[i] - plain.data<float>()[i]);
      largest = std::max(largest, std::isnan(d) ? 1e30 : d);
    }
  });
  return largest;
}

// For what rounds once more or less than float operators do.
inline void ExpectWithinOneStep(const TestModel& m, float step = kOut.scale) {
  EXPECT_LE(DifferenceFromFloat(m), step * 1.001);
}
// For what computes the same numbers.
inline void ExpectSame(const TestModel& m) { EXPECT_EQ(DifferenceFromFloat(m), 0); }

// Without the later pass by which a convolution would quantise x.
inline int Steps(const TestModel& m, const std::string& type) {
  return CountSteps(m, type, {.disabled_passes = {"quantize-in-conv"}}, kShape);
}

// x -> Q -> DQ -> a.
inline TestModel Quantized(const ByteScale& s = kIn) {
  TestModel m;
  m.Input("x", {1, 4, -1, -1});
  AddBytes(m, "x", "a", s);
  return m;
}

// v -> Q -> DQ -> y, the output.
inline TestModel& EndWithBytes(TestModel& m, const std::string& v, const ByteScale& s = kOut) {
  AddBytes(m, v, "y", s);
  return m.Output("y");
}

inline TestModel& AddConv(TestModel& m, const std::string& in, const std::string& out) {
  AddWeights(m, out + "_w", {4, 4, 3, 3});
  return m.Node("Conv", {in, out + "_w"}, {out}, {{"pads", Ints{1, 1, 1, 1}}});
}

}  // namespace tessera
