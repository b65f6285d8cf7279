#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/passes/pass_test_util.h"
#include "tests/engine/passes/quantized_model.h"

namespace tessera {
namespace {

constexpr ByteScale kBytes{0.02f, 120}, kSigned{0.02f, -8, kInt8Type};

// x of so many channels -> bytes "a" -> 3x3 convolution -> bytes "y", the output.
TestModel Start(std::int64_t channels, const ByteScale& bytes = kBytes) {
  TestModel m;
  m.Input("x", {1, channels, -1, -1});
  AddBytes(m, "x", "a", bytes);
  return m;
}
TestModel& AddConv(TestModel& m, std::int64_t channels, std::int64_t group = 1) {
  AddWeights(m, "w", {group > 1 ? group : 8, channels / group, 3, 3});
  m.Node("Conv", {"a", "w"}, {"c"},
         {{"pads", Ints{1, 1, 1, 1}}, {"group", group}, {"strides", Ints{2, 2}}});
  AddBytes(m, "c", "y", {0.05f, 90});
  return m.Output("y");
}

Shape ImageOf(std::int64_t channels) { return {1, channels, 37, 75}; }

// How many QuantizeLinear are left.
int Quantizers(const TestModel& m, std::int64_t channels, const SessionOptions& options = {}) {
  return CountSteps(m, "QuantizeLinear", options, ImageOf(channels));
}

// The same with and without the pass, on every target.
void ExpectSame(const TestModel& m, std::int64_t channels) {
  const Shape shape = ImageOf(channels);
  std::vector<float> values =
      TestModel::NoiseValues(static_cast<std::size_t>(shape.NumElements()), 5, 4.0f);
  for (std::size_t i = 0; i < values.size(); i += 3) {
    values[i] = std::round(values[i] * 50) / 50 + 0.01f;  // halfway between bytes
  }
  values[7] = std::numeric_limits<float>::quiet_NaN();
  values[80] = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::FromVector<float>(shape, values);
  const auto run = [&](const SessionOptions& options) {
    std::vector<Tensor> outputs;
    m.Load(options)->Run(std::vector<NamedView>{{"x", x.view()}}, outputs);
    return outputs;
  };
  OnEveryTarget([&] {
    const std::vector<Tensor> with = run({});
    const std::vector<Tensor> without = run({.disabled_passes = {"quantize-in-conv"}});
    ASSERT_EQ(with.size(), without.size());
    for (std::size_t k = 0; k < with.size(); ++k) {
      for (std::int64_t i = 0; i < with[k].size(); ++i) {
        ASSERT_EQ(with[k].data<float>()[i], without[k].data<float>()[i]) << k << ' ' << i;
      }
    }
  });
}

TEST(QuantizeInConv, OfImages) {
  for (const ByteScale& bytes : {kBytes, kSigned}) {
    for (const std::int64_t channels : {1, 3, 4}) {
      TestModel m = Start(channels, bytes);
      AddConv(m, channels);
      EXPECT_EQ(Quantizers(m, channels), 0);
      EXPECT_EQ(Quantizers(m, channels, {.disabled_passes = {"quantize-in-conv"}}), 1);
      ExpectSame(m, channels);
    }
  }
}

TEST(QuantizeInConv, BytesThatOthersReadStay) {
  TestModel m = Start(3);
  AddConv(m, 3).Output("a");
  EXPECT_EQ(Quantizers(m, 3), 1);
  ExpectSame(m, 3);
}

TEST(QuantizeInConv, OthersStay) {
  TestModel wide = Start(5);
  EXPECT_EQ(Quantizers(AddConv(wide, 5), 5), 1);
  TestModel depthwise = Start(4);
  EXPECT_EQ(Quantizers(AddConv(depthwise, 4, 4), 4), 1);
  TestModel computed;  // not an input
  computed.Input("x", {1, 3, -1, -1}).Node("Sqrt", {"x"}, {"r"});
  AddBytes(computed, "r", "a", kBytes);
  EXPECT_EQ(Quantizers(AddConv(computed, 3), 3), 1);
}

}  // namespace
}  // namespace tessera
