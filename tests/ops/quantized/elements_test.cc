// ByteTable, QuantizedAdd, QuantizedScale and QuantizedGlobalAverage: by their definitions, on
// every target, in both layouts (OpCall::RunAll).
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/quantized/byte_table.h"
#include "tests/every_target.h"
#include "tests/ops/byte_tensors.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using U8 = std::vector<std::uint8_t>;
using F32 = std::vector<float>;

std::vector<Shape> SomeShapes(std::mt19937& random) {
  std::vector<Shape> shapes;
  for (const std::int64_t channels : {1, 3, 4, 5, 16, 24, 50, 70, 240}) {
    shapes.push_back({1 + channels % 2, channels, static_cast<std::int64_t>(1 + random() % 9),
                      static_cast<std::int64_t>(1 + random() % 40)});
  }
  shapes.push_back({2, 20, 1, 1});
  return shapes;
}

// Clamped before it is an integer: it may be far off.
std::uint8_t Saturated(float v, int zero_point, int low = 0, int high = 255) {
  const double q = std::nearbyint(static_cast<double>(v)) + zero_point;
  return static_cast<std::uint8_t>(std::clamp(q, double(low), double(high)));
}

TEST(ByteTable, LooksUpEveryByteInBothLayouts) {
  std::mt19937 random(1);
  const Tensor table = RandomBytes({256}, DType::kUint8, random);
  for (const Shape& shape : SomeShapes(random)) {
    const Tensor x = RandomBytes(shape, DType::kUint8, random);
    U8 expected;
    for (const std::uint8_t v : x.values<std::uint8_t>()) {
      expected.push_back(table.data<std::uint8_t>()[v]);
    }
    OpCall call("ByteTable");
    call.In(x.Clone()).Const(table.Clone());
    EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kChannelsLast);
    OnEveryTarget([&] { EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne(0)), expected) << shape; });
  }
}

TEST(ByteTable, TakesAnyRankAndRefusesOtherTables) {
  std::mt19937 random(2);
  OpCall call("ByteTable");
  call.In(RandomBytes({7, 100}, DType::kUint8, random));
  call.Const(RandomBytes({256}, DType::kUint8, random));
  OnEveryTarget([&] { call.RunAll(0); });
  OpCall small("ByteTable");
  small.In(RandomBytes({7}, DType::kUint8, random));
  small.Const(RandomBytes({255}, DType::kUint8, random));
  EXPECT_THROW(small.Infer(), Error);
}

TEST(LookUpBytes, StaysWithinItsBytes) {
  std::mt19937 random(3);
  const Tensor table = RandomBytes({256}, DType::kUint8, random);
  OnEveryTarget([&] {
    for (std::int64_t n = 0; n < 200; ++n) {
      const Tensor in = RandomBytes({n}, DType::kUint8, random);
      U8 out(static_cast<std::size_t>(n) + 64, 77);
      LookUpBytes(table.data<std::uint8_t>(), in.data<std::uint8_t>(), out.data(), n);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const bool inside = i < static_cast<std::size_t>(n);
        ASSERT_EQ(out[i], inside ? table.data<std::uint8_t>()[in.data<std::uint8_t>()[i]] : 77);
      }
    }
  });
}

TEST(QuantizedAdd, IsTheDefinitionInBothLayouts) {
  std::mt19937 random(4);
  for (const Shape& shape : SomeShapes(random)) {
    const Tensor a = RandomBytes(shape, DType::kUint8, random);
    const Tensor b = RandomBytes(shape, DType::kUint8, random);
    const auto scale = [&] { return 0.001f * static_cast<float>(1 + random() % 100); };
    const float sa = scale(), sb = scale(), sy = scale();
    const int za = static_cast<int>(random() % 256), zb = static_cast<int>(random() % 256);
    const int zy = static_cast<int>(random() % 256);
    const int low = random() % 2 ? static_cast<int>(random() % 100) : 0;
    const int high = low > 0 ? 100 + static_cast<int>(random() % 156) : 255;
    OpCall call("QuantizedAdd");
    call.In(a.Clone()).In(b.Clone());
    call.Attr("a_scale", sa).Attr("a_zero_point", za).Attr("b_scale", sb).Attr("b_zero_point", zb);
    call.Attr("y_scale", sy).Attr("y_zero_point", zy);
    if (low > 0) call.Attr("y_min", low).Attr("y_max", high);
    U8 expected;
    for (std::int64_t i = 0; i < a.size(); ++i) {
      const float va = static_cast<float>(a.data<std::uint8_t>()[i] - za) * (sa / sy);
      const float vb = static_cast<float>(b.data<std::uint8_t>()[i] - zb) * (sb / sy);
      expected.push_back(Saturated(va + vb, zy, low, high));
    }
    EXPECT_EQ(call.BlockedChoice().inputs,
              (std::vector{Layout::kChannelsLast, Layout::kChannelsLast}));
    OnEveryTarget([&] { EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne(0)), expected) << shape; });
  }
}

// Sums that do not fit into any integer.
TEST(QuantizedAdd, HugeSumsSaturate) {
  std::mt19937 random(7);
  const Tensor a = RandomBytes({500}, DType::kUint8, random);
  const Tensor b = RandomBytes({500}, DType::kUint8, random);
  for (const float scale : {1e4f, 1e30f}) {
    OpCall call("QuantizedAdd");
    call.In(a.Clone()).In(b.Clone()).Attr("a_scale", scale).Attr("a_zero_point", 120);
    call.Attr("b_scale", 0.5f).Attr("b_zero_point", 9).Attr("y_zero_point", 77);
    U8 expected;
    for (std::int64_t i = 0; i < a.size(); ++i) {
      const float va = static_cast<float>(a.data<std::uint8_t>()[i] - 120) * scale;
      expected.push_back(
          Saturated(va + static_cast<float>(b.data<std::uint8_t>()[i] - 9) * 0.5f, 77));
    }
    OnEveryTarget([&] { EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne(0)), expected) << scale; });
  }
}

TEST(QuantizedAdd, TiesRoundToEven) {
  OpCall call("QuantizedAdd");
  call.In(Values<std::uint8_t>({6}, {0, 1, 2, 3, 4, 5})).In(Iota<std::uint8_t>({6}));
  call.Attr("a_scale", 0.5f).Attr("b_scale", 1.0f).Attr("y_scale", 1.0f).Attr("y_zero_point", 1);
  // 0, 1.5, 3, 4.5, 6, 7.5 and the zero point
  OnEveryTarget([&] { EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne(0)), (U8{1, 3, 4, 5, 7, 9})); });
}

TEST(QuantizedAdd, RefusesOtherOperands) {
  OpCall shapes("QuantizedAdd");
  shapes.In(Iota<std::uint8_t>({1, 2})).In(Iota<std::uint8_t>({2, 1}));
  EXPECT_THROW(shapes.Infer(), Error);
  OpCall types("QuantizedAdd");
  types.In(Iota<std::uint8_t>({2})).In(Iota<std::int8_t>({2}));
  EXPECT_THROW(types.Infer(), Error);
  OpCall bounds("QuantizedAdd");
  bounds.In(Iota<std::uint8_t>({2})).In(Iota<std::uint8_t>({2})).Attr("y_min", 9).Attr("y_max", 8);
  EXPECT_THROW(bounds.Run({}), Error);
}

TEST(QuantizedScale, IsTheDefinitionInBothLayouts) {
  std::mt19937 random(5);
  for (const Shape& shape : SomeShapes(random)) {
    const Tensor x = RandomBytes(shape, DType::kUint8, random);
    const Tensor g = RandomTensor({shape[0], shape[1], 1, 1}, random);
    const float sx = 0.013f, sy = 0.007f;
    const int zx = static_cast<int>(random() % 256), zy = static_cast<int>(random() % 256);
    OpCall call("QuantizedScale");
    call.In(x.Clone()).In(g.Clone());
    call.Attr("x_scale", sx).Attr("x_zero_point", zx).Attr("y_scale", sy).Attr("y_zero_point", zy);
    U8 expected;
    const std::int64_t plane = shape[2] * shape[3];
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const float factor = g.data<float>()[i / plane] * (sx / sy);
      expected.push_back(
          Saturated(static_cast<float>(x.data<std::uint8_t>()[i] - zx) * factor, zy));
    }
    EXPECT_EQ(call.BlockedChoice().inputs, (std::vector{Layout::kChannelsLast, Layout::kRowMajor}));
    OnEveryTarget([&] { EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne(0)), expected) << shape; });
  }
}

// Gates that no network should have; not a number gives the lowest value.
TEST(QuantizedScale, HugeGatesSaturate) {
  std::mt19937 random(8);
  const Tensor x = RandomBytes({1, 70, 3, 5}, DType::kUint8, random);
  Tensor g = RandomTensor({1, 70, 1, 1}, random);
  g.data<float>()[3] = std::nanf("");
  g.data<float>()[7] = -std::numeric_limits<float>::infinity();
  g.data<float>()[69] = 1e36f;
  OpCall call("QuantizedScale");
  call.In(x.Clone()).In(g.Clone()).Attr("x_scale", 2.0f).Attr("x_zero_point", 100);
  call.Attr("y_scale", 1.0f).Attr("y_zero_point", 77);
  U8 expected;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const float v =
        static_cast<float>(x.data<std::uint8_t>()[i] - 100) * (g.data<float>()[i / 15] * 2);
    expected.push_back(std::isnan(v) ? std::uint8_t{0} : Saturated(v, 77));
  }
  OnEveryTarget([&] { EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne(0)), expected); });
}

TEST(QuantizedScale, RefusesGatesOfAnotherShape) {
  OpCall call("QuantizedScale");
  call.In(Iota<std::uint8_t>({1, 2, 3, 4})).In(Iota({1, 3, 1, 1}));
  EXPECT_THROW(call.Infer(), Error);
}

TEST(QuantizedGlobalAverage, IsTheDefinitionInBothLayouts) {
  std::mt19937 random(6);
  for (const Shape& shape : SomeShapes(random)) {
    const Tensor x = RandomBytes(shape, DType::kUint8, random);
    const int zero_point = static_cast<int>(random() % 256);
    OpCall call("QuantizedGlobalAverage");
    call.In(x.Clone()).Attr("x_scale", 0.0117f).Attr("x_zero_point", zero_point);
    F32 expected;
    const std::int64_t plane = shape[2] * shape[3];
    for (std::int64_t p = 0; p < shape[0] * shape[1]; ++p) {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < plane; ++i) sum += x.data<std::uint8_t>()[p * plane + i];
      expected.push_back(static_cast<float>(sum - plane * zero_point) *
                         (0.0117f / static_cast<float>(plane)));
    }
    EXPECT_EQ(call.BlockedChoice().inputs[0], Layout::kChannelsLast);
    OnEveryTarget([&] { EXPECT_EQ(ToVector<float>(call.RunOne(0)), expected) << shape; });
  }
}

// Beyond what 31 bits hold.
TEST(QuantizedGlobalAverage, LargeImages) {
  const std::int64_t side = 3000;
  Tensor x(DType::kUint8, {1, 1, side, side});
  std::fill_n(x.data<std::uint8_t>(), x.size(), std::uint8_t{255});
  OpCall call("QuantizedGlobalAverage");
  call.In(std::move(x)).Attr("x_scale", 1.0f).Attr("x_zero_point", 0);
  const auto pixels = static_cast<float>(side * side);
  EXPECT_EQ(ToVector<float>(call.Run({.blocked = true, .constant = false})[0]),
            (F32{255 * pixels * (1 / pixels)}));
}

// Sums of many pixels of 255 are beyond 16 bits.
TEST(QuantizedGlobalAverage, BrightImages) {
  const std::int64_t side = 33, pixels = side * side;
  for (const std::int64_t channels : {4, 16, 33, 80, 240}) {
    Tensor x(DType::kUint8, {1, channels, side, side});
    std::fill_n(x.data<std::uint8_t>(), x.size(), std::uint8_t{255});
    OpCall call("QuantizedGlobalAverage");
    call.In(std::move(x)).Attr("x_scale", 1.0f).Attr("x_zero_point", 0);
    const float expected = static_cast<float>(255 * pixels) * (1.0f / static_cast<float>(pixels));
    OnEveryTarget([&] {
      EXPECT_EQ(ToVector<float>(call.Run({.blocked = true, .constant = false})[0]),
                F32(static_cast<std::size_t>(channels), expected));
    });
  }
}

TEST(QuantizedGlobalAverage, RefusesEmptyImages) {
  OpCall call("QuantizedGlobalAverage");
  call.In(Tensor(DType::kUint8, {1, 3, 0, 4}));
  EXPECT_THROW(call.Infer(), Error);
}

}  // namespace
}  // namespace tessera
