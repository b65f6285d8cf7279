// Quantisation of rows, and the operators QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include "ops/quantize.h"

#include <cmath>
#include <limits>

#include "ops/quantize_image.h"
#include "tests/every_target.h"
#include "tests/ops/byte_tensors.h"
#include "tests/ops/op_test_util.h"
#include "tests/ops/quantized/guarded_tensor.h"

namespace tessera {
namespace {

using I8 = std::vector<std::int8_t>;
using U8 = std::vector<std::uint8_t>;
using I16 = std::vector<std::int16_t>;
using U16 = std::vector<std::uint16_t>;
using I32 = std::vector<std::int32_t>;
using F32 = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

template <typename T>
Tensor Scalar(T value) {
  return Values<T>({}, {value});
}

template <typename T>
Tensor Vector(const std::vector<T>& values) {
  return Values<T>({static_cast<std::int64_t>(values.size())}, values);
}

// --- rows

TEST(QuantizeRows, RoundHalfToEvenBeforeTheZeroPointIsAdded) {
  EXPECT_EQ(RoundAndSaturate<std::int8_t>(0.5f, 3), 3);
  EXPECT_EQ(RoundAndSaturate<std::int8_t>(1.5f, 3), 5);
  EXPECT_EQ(RoundAndSaturate<std::int8_t>(-0.5f, 3), 3);
  EXPECT_EQ(RoundAndSaturate<std::int8_t>(-2.5f, 0), -2);
  EXPECT_EQ(RoundAndSaturate<std::int8_t>(-128.4f, 0), -128);
  EXPECT_EQ(RoundAndSaturate<std::int8_t>(1e30f, -128), 127);
  EXPECT_EQ(RoundAndSaturate<std::uint8_t>(-kInfinity, 200), 0);
  EXPECT_EQ(RoundAndSaturate<std::uint8_t>(kNaN, 200), 0);
  EXPECT_EQ(RoundAndSaturate<std::uint16_t>(40000.5, 30000), 65535);
  EXPECT_EQ(RoundAndSaturate<std::int16_t>(-32768.5, 0), -32768);
}

// Values that hit ties and both ends, for any n up to several vectors.
template <typename Q>
void ExpectRowsAgree(std::mt19937& random) {
  using Limits = std::numeric_limits<Q>;
  std::uniform_int_distribution<int> zero_points(Limits::min(), Limits::max());
  std::uniform_int_distribution<int> halves(-140000, 140000);
  for (const std::int64_t n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 33, 100}) {
    const auto size = static_cast<std::size_t>(n);
    const std::int32_t zero = zero_points(random);
    const float scale = 0.25f * static_cast<float>(1 + random() % 7);
    F32 in(size);
    for (float& v : in) v = scale * 0.5f * static_cast<float>(halves(random) >> random() % 18);
    if (n > 3) {
      in[0] = kNaN;
      in[1] = kInfinity;
      in[2] = -kInfinity;
      in[3] = scale * std::nextafter(0.5f, 0.f);
    }
    std::vector<Q> quantized(size);
    QuantizeRow(in.data(), scale, zero, DTypeOf<Q>(), quantized.data(), n);
    F32 back(size);
    DequantizeRow(quantized.data(), DTypeOf<Q>(), scale, zero, back.data(), n);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(quantized[i], RoundAndSaturate<Q>(in[i] / scale, zero)) << in[i];
      ASSERT_EQ(back[i], static_cast<float>(quantized[i] - zero) * scale);
    }
  }
}

TEST(QuantizeRows, VectorsFollowTheDefinition) {
  OnEveryTarget([] {
    std::mt19937 random(1);
    for (int round = 0; round < 20; ++round) {
      ExpectRowsAgree<std::int8_t>(random);
      ExpectRowsAgree<std::uint8_t>(random);
      ExpectRowsAgree<std::int16_t>(random);
      ExpectRowsAgree<std::uint16_t>(random);
    }
  });
}

TEST(QuantizeRows, RequantizeFollowsTheDefinition) {
  OnEveryTarget([] {
    std::mt19937 random(2);
    for (int round = 0; round < 50; ++round) {
      for (const std::int64_t n : {0, 1, 5, 16, 37, 64}) {
        const auto size = static_cast<std::size_t>(n);
        I32 sums(size);
        F32 multipliers(size + 1);
        for (auto& v : sums) v = static_cast<std::int32_t>(random()) >> random() % 28;
        for (auto& v : multipliers) v = std::ldexp(1.f, -static_cast<int>(random() % 12));
        const auto bias = static_cast<std::int32_t>(random()) >> random() % 28;
        const auto zero = static_cast<std::int32_t>(random() % 128);
        for (const DType type : {DType::kInt8, DType::kUint8}) {
          for (const auto kind : {RowOperand::kScalar, RowOperand::kStream}) {
            const RowOperand multiplier{multipliers.data(), kind};
            U8 vector(size), plain(size);
            RequantizeRow(sums.data(), bias, multiplier, zero, type, vector.data(), n);
            RequantizeRowPlainly(sums.data(), bias, multiplier, zero, type, plain.data(), n);
            ASSERT_EQ(vector, plain);
          }
        }
      }
    }
  });
}

TEST(QuantizeRows, RequantizePlainlyIsWhatItSays) {
  const I32 sums{2, 6, -2, 1000, -1000, 0x7fffffff};
  const float quarter = 0.25f;
  I8 out(6);
  RequantizeRowPlainly(sums.data(), 0, {&quarter, RowOperand::kScalar}, 1, DType::kInt8, out.data(),
                       6);
  // 0.5, 1.5, -0.5 to even, plus 1.
  EXPECT_EQ(out, (I8{1, 3, 1, 127, -128, 127}));
  // The sum wraps around to the least number.
  RequantizeRowPlainly(sums.data() + 5, 1, {&quarter, RowOperand::kScalar}, 1, DType::kInt8,
                       out.data(), 1);
  EXPECT_EQ(out[0], -128);
}

// --- QuantizeLinear

TEST(QuantizeLinear, PerTensor) {
  OpCall call("QuantizeLinear", 10);
  call.In(Vector<float>({0, 2, 3, 1000, -254, -1000, 1, -1, 5})).In(Scalar(2.f));
  call.In(Scalar<std::uint8_t>(128));
  EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne()), (U8{128, 129, 130, 255, 1, 0, 128, 128, 130}));
}

TEST(QuantizeLinear, TheTypeIsThatOfTheZeroPoint) {
  OpCall call("QuantizeLinear", 13);
  call.In(Vector<float>({-300, -1, 0, 1, 300})).In(Vector<float>({1})).In(Scalar<std::int8_t>(-1));
  EXPECT_EQ(ToVector<std::int8_t>(call.RunOne()), (I8{-128, -2, -1, 0, 127}));
}

TEST(QuantizeLinear, WithoutAZeroPointItIsUint8) {
  OpCall call("QuantizeLinear", 13);
  call.In(Vector<float>({-3, 0.5f, 1.5f, 255.5f, kNaN})).In(Scalar(1.f));
  EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne()), (U8{0, 0, 2, 255, 0}));
}

TEST(QuantizeLinear, ASmallScaleSaturates) {
  OpCall call("QuantizeLinear", 13);
  call.In(Vector<float>({1, -1, 0})).In(Scalar(0.f)).In(Scalar<std::int8_t>(5));
  EXPECT_EQ(ToVector<std::int8_t>(call.RunOne()), (I8{127, -128, -128}));  // the last is 0 / 0
}

TEST(QuantizeLinear, DividesAndDoesNotMultiplyByTheInverse) {
  // Quotients near ties, which the product with a rounded inverse puts on the other side.
  std::mt19937 random(3);
  std::vector<float> values(1000);
  U8 expected(1000);
  const float scale = 0.0117f;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (static_cast<float>(random() % 250) + 0.5f) * scale;
    expected[i] = static_cast<std::uint8_t>(std::nearbyint(values[i] / scale));
  }
  OpCall call("QuantizeLinear", 13);
  call.In(Vector<float>(values)).In(Scalar(scale));
  EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne()), expected);
}

TEST(QuantizeLinear, PerAxis) {
  for (const int axis : {1, -3}) {
    OpCall call("QuantizeLinear", 13);
    call.In(Floats({1, 3, 3, 2}, {-162, 10, -100, 232, -20, -50, -76, 0, 0, 252, 32, -44, 245, -485,
                                  -960, -270, -375, -470}));
    call.In(Vector<float>({2, 4, 5})).In(Vector<std::uint8_t>({84, 24, 196})).Attr("axis", axis);
    EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne()),
              (U8{3, 89, 34, 200, 74, 59, 5, 24, 24, 87, 32, 13, 245, 99, 4, 142, 121, 102}));
  }
}

TEST(QuantizeLinear, PerLastAxis) {
  OpCall call("QuantizeLinear", 13);
  call.In(Floats({3, 2}, {1, 1, 4, 4, -6, -6})).In(Vector<float>({1, 2}));
  call.In(Vector<std::int8_t>({0, 10})).Attr("axis", -1);
  EXPECT_EQ(ToVector<std::int8_t>(call.RunOne()), (I8{1, 10, 4, 12, -6, 7}));
}

TEST(QuantizeLinear, BlocksOfTheLastAxis) {
  OpCall call("QuantizeLinear", 21);
  call.In(Floats({2, 5}, {6, 12, 50, 5, 10, 1, 8, 4, 5, 3}));
  call.In(Floats({2, 3}, {1.5f, 2.5f, 4, 3, 1, 2}));
  call.In(Values<std::uint8_t>({2, 3}, {0, 1, 2, 3, 4, 5}));
  call.Attr("axis", 1).Attr("block_size", 2);
  EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne()), (U8{4, 8, 21, 3, 4, 3, 6, 8, 9, 7}));
}

TEST(QuantizeLinear, BlocksOfAMiddleAxis) {
  OpCall call("QuantizeLinear", 21);
  call.In(Floats({2, 3, 2}, {2, 2, 4, 4, 6, 6, 10, 10, 20, 20, 30, 30}));
  call.In(Floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  call.Attr("axis", 1).Attr("block_size", 2).Attr("output_dtype", 5);  // int16
  EXPECT_EQ(ToVector<std::int16_t>(call.RunOne()), (I16{2, 1, 4, 2, 2, 2, 2, 2, 4, 3, 4, 4}));
}

TEST(QuantizeLinear, OneBlockOfAVector) {
  OpCall call("QuantizeLinear", 21);
  call.In(Vector<float>({1, 2, 3, 4, 5})).In(Vector<float>({1, 2})).Attr("axis", 0);
  call.Attr("block_size", 4);
  EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne()), (U8{1, 2, 3, 4, 2}));
}

TEST(QuantizeLinear, SixteenBits) {
  OpCall unsigned_call("QuantizeLinear", 21);
  unsigned_call.In(Vector<float>({0, -128, 3, -3, 2.9f, -2.9f, 3.1f, -3.1f, 65536, -65534, 70000}));
  unsigned_call.In(Scalar(2.f)).In(Scalar<std::uint16_t>(32767));
  EXPECT_EQ(ToVector<std::uint16_t>(unsigned_call.RunOne()),
            (U16{32767, 32703, 32769, 32765, 32768, 32766, 32769, 32765, 65535, 0, 65535}));
  OpCall signed_call("QuantizeLinear", 21);
  signed_call.In(Vector<float>({0, -514, 65022, -66046, 65024, -66048, 70000, -70000}));
  signed_call.In(Scalar(2.f)).In(Scalar<std::int16_t>(256));
  EXPECT_EQ(ToVector<std::int16_t>(signed_call.RunOne()),
            (I16{256, -1, 32767, -32767, 32767, -32768, 32767, -32768}));
}

TEST(QuantizeLinear, Integers) {
  OpCall call("QuantizeLinear", 13);
  call.In(Vector<std::int32_t>({0, 1, 3, 5, -5, 2147483647, -2147483647 - 1})).In(Scalar(2.f));
  call.In(Scalar<std::int8_t>(1));
  EXPECT_EQ(ToVector<std::int8_t>(call.RunOne()), (I8{1, 1, 3, 3, -1, 127, -128}));
  // Exact where float32 is not: 16777217 / 16777216 is no tie, (2^25 + 2) / 2^26 is none either.
  OpCall exact("QuantizeLinear", 19);
  exact.In(Vector<std::int32_t>({33554433, 33554432, 3 * 33554432 - 1}));
  exact.In(Scalar<std::int32_t>(67108864));
  EXPECT_EQ(ToVector<std::uint8_t>(exact.RunOne()), (U8{1, 0, 1}));
}

TEST(QuantizeLinear, Float16) {
  OpCall call("QuantizeLinear", 19);
  call.In(Vector<Half>({Half(1.f), Half(3.f), Half(-5.f)})).In(Scalar<Half>(Half(2.f)));
  call.In(Scalar<std::int8_t>(0));
  EXPECT_EQ(ToVector<std::int8_t>(call.RunOne()), (I8{0, 2, -2}));
}

TEST(QuantizeLinear, EmptyAndScalar) {
  OpCall empty("QuantizeLinear", 13);
  empty.In(Floats({0, 3}, {})).In(Vector<float>({1, 2, 3}));
  EXPECT_EQ(empty.RunOne().shape(), (Shape{0, 3}));
  OpCall scalar("QuantizeLinear", 13);
  scalar.In(Scalar(7.f)).In(Scalar(2.f));
  const Tensor y = scalar.RunOne();
  EXPECT_EQ(y.shape(), Shape{});
  EXPECT_EQ(*y.data<std::uint8_t>(), 4);
}

TEST(QuantizeLinear, RefusesWhatTheSpecificationDoesNotKnow) {
  const auto refused = [](int opset, Tensor x, Tensor scale, Tensor zero_point,
                          std::int64_t axis = 1, std::int64_t block = 0, std::int64_t type = 0) {
    OpCall call("QuantizeLinear", opset);
    call.In(std::move(x)).In(std::move(scale)).In(std::move(zero_point));
    call.Attr("axis", axis).Attr("block_size", block).Attr("output_dtype", type);
    EXPECT_THROW(call.Infer(), Error);
  };
  const auto x = [] { return Iota({2, 3}); };
  const auto u8 = [] { return Scalar<std::uint8_t>(0); };
  const auto u8s = [](const Shape& s) { return Iota<std::uint8_t>(s); };
  refused(10, x(), Iota({3}), u8s({3}));     // per axis only since 13
  refused(13, x(), Iota({2}), u8s({2}));     // axis 1 has 3
  refused(13, x(), Iota({3}), u8s({3}), 2);  // no such axis
  refused(13, x(), Iota({3}), u8());         // zero points like the scales
  refused(13, x(), Scalar(1.f), Scalar<std::int16_t>(0));
  refused(13, x(), Scalar(1.f), Scalar<std::int32_t>(0));
  refused(13, x(), Scalar(1.0), u8());  // float64
  refused(13, Values<Half>({1}, {Half(1.f)}), Scalar(1.f), u8());
  refused(13, x(), Scalar<std::int32_t>(1), u8());
  refused(13, Iota<std::int64_t>({3}), Scalar(1.f), u8());
  refused(19, Iota<std::int32_t>({3}), Scalar(1.f), u8());
  refused(19, x(), Iota({2, 2}), u8s({2, 2}), 1, 2);  // blocks only since 21
  refused(21, x(), Iota({2, 1}), u8s({2, 1}), 1, 2);
  refused(21, x(), Iota({2, 2}), u8s({2, 2}));
  refused(21, x(), Iota({2, 2}), u8s({2, 2}), 1, -2);
  refused(21, x(), Scalar(1.f), u8(), 1, 0, 3);   // the zero point is not int8
  refused(21, x(), Scalar(1.f), u8(), 1, 0, 21);  // uint4
}

TEST(QuantizeLinear, Field) {
  const auto field = [](const Shape& scale, std::int64_t axis, std::int64_t block) {
    OpCall call("QuantizeLinear", 21);
    call.In(Iota({1, 3, 4, 5})).Const(Iota(scale)).Attr("axis", axis).Attr("block_size", block);
    return call.Field().has_value();
  };
  EXPECT_TRUE(field({}, 1, 0));
  EXPECT_TRUE(field({3}, 1, 0));
  EXPECT_FALSE(field({4}, 2, 0));
  EXPECT_FALSE(field({1, 3, 4, 3}, 3, 2));
}

// --- DequantizeLinear

TEST(DequantizeLinear, PerTensor) {
  OpCall call("DequantizeLinear", 10);
  call.In(Vector<std::uint8_t>({0, 3, 128, 255})).In(Scalar(2.f)).In(Scalar<std::uint8_t>(128));
  EXPECT_EQ(ToVector<float>(call.RunOne()), (F32{-256, -250, 0, 254}));
}

TEST(DequantizeLinear, PerAxis) {
  OpCall call("DequantizeLinear", 13);
  call.In(Values<std::int8_t>({2, 3}, {-128, 0, 127, 1, 2, 3})).In(Vector<float>({2, 4, 0.5f}));
  call.In(Vector<std::int8_t>({127, 0, -128}));
  EXPECT_EQ(ToVector<float>(call.RunOne()), (F32{-510, 0, 127.5f, -252, 8, 65.5f}));
}

TEST(DequantizeLinear, PerFirstAxis) {
  OpCall call("DequantizeLinear", 13);
  call.In(Values<std::uint8_t>({2, 3}, {1, 2, 3, 4, 5, 6})).In(Vector<float>({2, 4}));
  call.Attr("axis", -2);
  EXPECT_EQ(ToVector<float>(call.RunOne()), (F32{2, 4, 6, 16, 20, 24}));
}

TEST(DequantizeLinear, Int32HasNoZeroPoint) {
  OpCall call("DequantizeLinear", 13);
  call.In(Vector<std::int32_t>({16777217, -3, 2147483647})).In(Scalar(0.5f));
  EXPECT_EQ(ToVector<float>(call.RunOne()), (F32{8388608, -1.5f, 1073741824}));
  call.In(Scalar<std::int32_t>(0));
  EXPECT_EQ(ToVector<float>(call.RunOne()), (F32{8388608, -1.5f, 1073741824}));
  OpCall wrong("DequantizeLinear", 13);
  wrong.In(Vector<std::int32_t>({1})).In(Scalar(1.f)).In(Scalar<std::int32_t>(1));
  EXPECT_THROW(wrong.Run({}), Error);
}

TEST(DequantizeLinear, Blocks) {
  OpCall call("DequantizeLinear", 21);
  call.In(Values<std::int16_t>({2, 3, 1}, {1000, 2000, 3000, -1, -2, -3}));
  call.In(Floats({2, 2, 1}, {2, 3, 4, 5}));
  call.In(Values<std::int16_t>({2, 2, 1}, {-1000, 0, 1, 2})).Attr("block_size", 2);
  EXPECT_EQ(ToVector<float>(call.RunOne()), (F32{4000, 6000, 9000, -8, -12, -25}));
}

TEST(DequantizeLinear, Float16ScalesGiveFloat16) {
  OpCall call("DequantizeLinear", 19);
  call.In(Vector<std::uint8_t>({0, 200})).In(Scalar<Half>(Half(0.1f)));
  const Tensor y = call.RunOne();
  ASSERT_EQ(y.dtype(), DType::kFloat16);
  EXPECT_EQ(ToFloats(y.view()), (F32{0, 20}));
}

TEST(DequantizeLinear, RefusesWhatTheSpecificationDoesNotKnow) {
  const auto refused = [](int opset, Tensor x, Tensor scale, Tensor zero_point) {
    OpCall call("DequantizeLinear", opset);
    call.In(std::move(x)).In(std::move(scale)).In(std::move(zero_point));
    EXPECT_THROW(call.Infer(), Error);
  };
  refused(13, Iota<std::uint8_t>({3}), Scalar(1.f), Scalar<std::int8_t>(0));
  refused(13, Iota<std::uint16_t>({3}), Scalar(1.f), Scalar<std::uint16_t>(0));
  refused(13, Iota<std::uint8_t>({3}), Scalar<Half>(Half(1.f)), Scalar<std::uint8_t>(0));
  refused(13, Iota({3}), Scalar(1.f), Scalar(1.f));
  refused(10, Iota<std::uint8_t>({1, 3}), Iota({3}), Iota<std::uint8_t>({3}));
  refused(21, Iota<std::uint8_t>({1, 3}), Iota({3}), Iota<std::uint8_t>({2}));
}

TEST(DequantizeLinear, ManyShapesBothWays) {
  std::mt19937 random(4);
  for (int round = 0; round < 40; ++round) {
    const Shape shape{static_cast<std::int64_t>(random() % 4),
                      static_cast<std::int64_t>(random() % 40),
                      static_cast<std::int64_t>(random() % 40)};
    const int axis = static_cast<int>(random() % 3);
    const auto block = static_cast<std::int64_t>(random() % 6);  // 0: per axis
    Shape scale_shape{shape[axis]};
    if (block > 0) {
      scale_shape = shape;
      scale_shape[axis] = (shape[axis] + block - 1) / block;
    }
    Tensor x(DType::kUint8, shape), zeros(DType::kUint8, scale_shape);
    Tensor scale(DType::kFloat32, scale_shape);
    for (auto& v : x.values<std::uint8_t>()) v = static_cast<std::uint8_t>(random());
    for (auto& v : zeros.values<std::uint8_t>()) v = static_cast<std::uint8_t>(random());
    for (auto& v : scale.values<float>()) v = static_cast<float>(1 + random() % 64) / 16;
    if (block == 0 && scale.size() == 1) continue;
    F32 expected;
    for (std::int64_t i = 0; i < shape[0]; ++i) {
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        for (std::int64_t k = 0; k < shape[2]; ++k) {
          std::int64_t at[3] = {i, j, k};
          std::int64_t s = at[axis];
          if (block > 0) {
            at[axis] /= block;
            s = (at[0] * scale_shape[1] + at[1]) * scale_shape[2] + at[2];
          }
          const int q = x.data<std::uint8_t>()[(i * shape[1] + j) * shape[2] + k];
          expected.push_back(static_cast<float>(q - zeros.data<std::uint8_t>()[s]) *
                             scale.data<float>()[s]);
        }
      }
    }
    OpCall call("DequantizeLinear", 21);
    call.In(x.Clone()).In(scale.Clone()).In(zeros.Clone()).Attr("axis", axis);
    call.Attr("block_size", block);
    const Tensor y = call.RunOne(0);
    ASSERT_EQ(ToVector<float>(y), expected) << shape << " axis " << axis << " block " << block;
    OpCall inverse("QuantizeLinear", 21);
    inverse.In(y.Clone()).In(std::move(scale)).In(std::move(zeros)).Attr("axis", axis);
    inverse.Attr("block_size", block);
    ASSERT_EQ(ToVector<std::uint8_t>(inverse.RunOne()), ToVector<std::uint8_t>(x));
  }
}

// --- Images, which go channels-last

// Values around ties, huge ones and NaN among the usual.
Tensor TrickyFloats(const Shape& shape, float scale, std::mt19937& random) {
  Tensor x(DType::kFloat32, shape);
  for (float& v : x.values<float>()) {
    const float q = static_cast<float>(static_cast<int>(random() % 600)) - 300;
    const auto nudge = static_cast<float>(static_cast<int>(random() % 9) - 4) * 0x1p-14f;
    switch (random() % 8) {
      case 0:
        v = (q + 0.5f) * scale;
        break;
      case 1:
        v = (q + 0.5f + nudge) * scale;
        break;
      case 2:
        v = random() % 2 ? kNaN : (random() % 2 ? kInfinity : -kInfinity);
        break;
      case 3:
        v = q * 1e30f;
        break;
      default:
        v = (q + static_cast<float>(random()) * 0x1p-32f) * scale;
    }
  }
  return x;
}

TEST(QuantizeLinear, ImagesOnEveryTarget) {
  std::mt19937 random(6);
  for (const std::int64_t channels : {1, 2, 3, 4, 5, 8, 16, 17, 48}) {
    const Shape shape{1 + channels % 2, channels, static_cast<std::int64_t>(1 + random() % 9),
                      static_cast<std::int64_t>(1 + random() % 300)};
    for (const float scale : {0.0117f, 1.f / 255, 0.5f, 3.f, 0.f, 1e-38f, 1e38f, -0.1f}) {
      const Tensor x = TrickyFloats(shape, scale, random);
      const auto zero_point = static_cast<std::uint8_t>(random());
      OpCall call("QuantizeLinear", 13);
      call.In(x.Clone()).Const(Scalar(scale)).Const(Scalar(zero_point));
      EXPECT_EQ(call.BlockedChoice().inputs[0], Layout::kBlocked);
      EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kChannelsLast);
      U8 expected;
      for (const float v : x.values<float>()) {
        expected.push_back(RoundAndSaturate<std::uint8_t>(v / scale, zero_point));
      }
      OnEveryTarget([&] {
        EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne(0)), expected) << shape << ' ' << scale;
        // Row-major images, whose layout Run does not choose.
        Tensor pixels(DType::kUint8, shape, Layout::kChannelsLast);
        const Tensor s = Scalar(scale), z = Scalar(zero_point);
        RunKernel(*MakeImageQuantizer(shape, Layout::kRowMajor), {x.view(), s.view(), z.view()},
                  pixels, 2);
        EXPECT_EQ(ToVector<std::uint8_t>(Reordered(pixels, Layout::kRowMajor)), expected)
            << shape << ' ' << scale;
      });
    }
  }
}

TEST(DequantizeLinear, ImagesOnEveryTarget) {
  std::mt19937 random(7);
  for (const std::int64_t channels : {1, 2, 3, 4, 5, 8, 16, 17, 48}) {
    const Shape shape{1 + channels % 2, channels, static_cast<std::int64_t>(1 + random() % 9),
                      static_cast<std::int64_t>(1 + random() % 300)};
    const Tensor x = RandomBytes(shape, DType::kUint8, random);
    const auto zero_point = static_cast<std::uint8_t>(random());
    OpCall call("DequantizeLinear", 13);
    call.In(x.Clone()).Const(Scalar(0.0117f)).Const(Scalar(zero_point));
    EXPECT_EQ(call.BlockedChoice().inputs[0], Layout::kChannelsLast);
    F32 expected;
    for (const int q : x.values<std::uint8_t>()) {
      expected.push_back(static_cast<float>(q - zero_point) * 0.0117f);
    }
    OnEveryTarget([&] {
      EXPECT_EQ(ToVector<float>(call.RunOne(0)), expected) << shape;
      const Tensor pixels = Reordered(x, Layout::kChannelsLast);
      const Tensor s = Scalar(0.0117f), z = Scalar(zero_point);
      for (const Layout layout : {Layout::kRowMajor, Layout::kBlocked}) {
        Tensor y(DType::kFloat32, shape, layout);
        RunKernel(*MakeImageDequantizer(shape, layout), {pixels.view(), s.view(), z.view()}, y, 2);
        EXPECT_EQ(ToVector<float>(Reordered(y, Layout::kRowMajor)), expected) << shape;
      }
    });
  }
}

TEST(QuantizeLinear, ImagesWithAScaleForEachChannelOnEveryTarget) {
  std::mt19937 random(8);
  constexpr float kScales[] = {0.0117f, 1.f / 255, 0.5f, 3.f, 1e-38f, 1e38f, 7e-5f};
  for (const std::int64_t channels : {2, 3, 5, 8, 17, 48}) {
    const Shape shape{2, channels, 3, static_cast<std::int64_t>(1 + random() % 300)};
    const std::int64_t plane = shape[2] * shape[3];
    const std::uint8_t zero_point = static_cast<std::uint8_t>(random());
    Tensor x = TrickyFloats(shape, 1, random);
    F32 scales;
    U8 expected;
    for (std::int64_t c = 0; c < channels; ++c) scales.push_back(kScales[random() % 7]);
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const float scale = scales[static_cast<std::size_t>(i / plane % channels)];
      float& v = x.data<float>()[i];
      v *= scale;
      expected.push_back(RoundAndSaturate<std::uint8_t>(v / scale, zero_point));
    }
    const Tensor s = Vector<float>(scales);
    const Tensor z = Vector<std::uint8_t>(U8(scales.size(), zero_point));
    OpCall call("QuantizeLinear", 13);
    call.In(x.Clone()).Const(s.Clone()).Const(z.Clone());
    EXPECT_EQ(call.BlockedChoice().inputs[0], Layout::kBlocked);
    EXPECT_EQ(call.BlockedChoice().outputs[0], Layout::kChannelsLast);
    OnEveryTarget([&] {
      EXPECT_EQ(ToVector<std::uint8_t>(call.RunOne(0)), expected) << shape;
      for (const Layout layout : {Layout::kRowMajor, Layout::kBlocked}) {
        Tensor pixels(DType::kUint8, shape, Layout::kChannelsLast);
        const Tensor reals = Reordered(x, layout);
        RunKernel(*MakeImageQuantizer(shape, layout, scales), {reals.view(), s.view(), z.view()},
                  pixels, 2);
        EXPECT_EQ(ToVector<std::uint8_t>(Reordered(pixels, Layout::kRowMajor)), expected) << shape;
      }
    });
  }
}

// Whose pixels take memory nevertheless.
TEST(QuantizeLinear, ImagesWithoutChannels) {
  const Shape shape{1, 0, 9, 100};
  const Tensor s = Scalar(0.5f), z = Scalar<std::uint8_t>(7);
  OnEveryTarget([&] {
    for (const Layout layout : {Layout::kRowMajor, Layout::kBlocked}) {
      const GuardedTensor reals(DType::kFloat32, shape, layout);
      const GuardedTensor pixels(DType::kUint8, shape, Layout::kChannelsLast);
      TestThreads team(1);
      const auto run = [&](const Kernel& kernel, const TensorView& x, const TensorView& y) {
        const std::vector<TensorView> inputs = {x, s.view(), z.view()}, outputs = {y};
        kernel.Run({inputs, outputs, team, nullptr, 0});
      };
      run(*MakeImageQuantizer(shape, layout), reals.view(), pixels.view());
      run(*MakeImageDequantizer(shape, layout), pixels.view(), reals.view());
    }
  });
}

TEST(QuantizeLinear, ImagesOfSeveralZeroPointsAndOfInt8StayRowMajor) {
  OpCall channels("QuantizeLinear", 13);
  channels.In(Iota({1, 2, 3, 4})).Const(Vector<float>({1, 2}));
  channels.Const(Vector<std::uint8_t>({3, 4}));
  EXPECT_EQ(channels.BlockedChoice().outputs[0], Layout::kRowMajor);
  channels.RunAll(0);
  OpCall bytes("QuantizeLinear", 13);
  bytes.In(Iota({1, 2, 3, 4})).Const(Scalar(0.5f)).Const(Scalar<std::int8_t>(-7));
  EXPECT_EQ(bytes.BlockedChoice().outputs[0], Layout::kRowMajor);
  bytes.RunAll(0);
}

// --- DynamicQuantizeLinear

void ExpectDynamic(const F32& x, const U8& y, float scale, std::uint8_t zero_point) {
  OpCall call("DynamicQuantizeLinear", 11);
  call.In(Vector<float>(x)).Outputs(3);
  const std::vector<Tensor> out = call.RunAll();
  EXPECT_EQ(ToVector<std::uint8_t>(out[0]), y);
  EXPECT_EQ(out[1].shape(), Shape{});
  EXPECT_EQ(*out[1].data<float>(), scale);
  EXPECT_EQ(out[2].shape(), Shape{});
  EXPECT_EQ(*out[2].data<std::uint8_t>(), zero_point);
}

TEST(DynamicQuantizeLinear, FindsTheRange) {
  ExpectDynamic({0, 2, -3, -2.5f, 1.34f, 0.5f}, {153, 255, 0, 26, 221, 179}, 5.f / 255, 153);
  // The range includes 0.
  ExpectDynamic({1, 255}, {1, 255}, 1, 0);
  ExpectDynamic({-1, -255}, {254, 0}, 1, 255);
}

TEST(DynamicQuantizeLinear, CornersGiveNoNonsense) {
  ExpectDynamic({}, {}, 1, 0);
  ExpectDynamic({0, 0}, {0, 0}, 1, 0);
  ExpectDynamic({kNaN, 255}, {0, 255}, 1, 0);
  ExpectDynamic({kInfinity, 1}, {0, 0}, kInfinity, 0);
}

TEST(DynamicQuantizeLinear, LongInputs) {
  std::mt19937 random(5);
  const Tensor x = RandomTensor({1000}, random);
  OpCall call("DynamicQuantizeLinear", 11);
  call.In(x.Clone()).Outputs(3);
  const std::vector<Tensor> out = call.RunAll();
  const auto [low, high] = std::minmax_element(x.values<float>().begin(), x.values<float>().end());
  const float scale = (*high - *low) / 255;
  ASSERT_EQ(*out[1].data<float>(), scale);
  const int zero = static_cast<int>(std::nearbyint(-*low / scale));
  ASSERT_EQ(*out[2].data<std::uint8_t>(), zero);
  for (int i = 0; i < 1000; ++i) {
    const float q = std::nearbyint(x.data<float>()[i] / scale) + static_cast<float>(zero);
    ASSERT_EQ(out[0].data<std::uint8_t>()[i], std::clamp(q, 0.f, 255.f));
  }
}

}  // namespace
}  // namespace tessera
