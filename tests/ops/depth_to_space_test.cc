#include "tests/ops/byte_tensors.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

TEST(DepthToSpace, FollowsTheSpecificationsExample) {
  // 1x8x2x3 with the values of the specification's examples for both modes.
  const Tensor x =
      Floats({1, 8, 2, 3}, {0,  1,  2,  3,  4,  5,  9,  10, 11, 12, 13, 14, 18, 19, 20, 21,
                            22, 23, 27, 28, 29, 30, 31, 32, 36, 37, 38, 39, 40, 41, 45, 46,
                            47, 48, 49, 50, 54, 55, 56, 57, 58, 59, 63, 64, 65, 66, 67, 68});
  const auto run = [&](const char* mode) {
    return ToVector<float>(
        OpCall("DepthToSpace").Attr("blocksize", 2).Attr("mode", mode).In(x.Clone()).RunOne());
  };
  EXPECT_EQ(run("DCR"),
            (std::vector<float>{0,  18, 1,  19, 2,  20, 36, 54, 37, 55, 38, 56, 3,  21, 4,  22,
                                5,  23, 39, 57, 40, 58, 41, 59, 9,  27, 10, 28, 11, 29, 45, 63,
                                46, 64, 47, 65, 12, 30, 13, 31, 14, 32, 48, 66, 49, 67, 50, 68}));
  EXPECT_EQ(run("CRD"),
            (std::vector<float>{0,  9,  1,  10, 2,  11, 18, 27, 19, 28, 20, 29, 3,  12, 4,  13,
                                5,  14, 21, 30, 22, 31, 23, 32, 36, 45, 37, 46, 38, 47, 54, 63,
                                55, 64, 56, 65, 39, 48, 40, 49, 41, 50, 57, 66, 58, 67, 59, 68}));
}

TEST(DepthToSpace, MovesEveryElementToItsPlace) {
  std::mt19937 random(7);
  for (const std::int64_t b : {1, 2, 3, 4, 5}) {
    for (const std::int64_t c : {1, 3, 4}) {
      for (const bool crd : {false, true}) {
        const Shape in{2, c * b * b, 5, 7};
        const Tensor x = RandomTensor(in, random);
        const Tensor y = OpCall("DepthToSpace")
                             .Attr("blocksize", b)
                             .Attr("mode", crd ? "CRD" : "DCR")
                             .In(x.Clone())
                             .RunOne(0);
        ASSERT_EQ(y.shape(), (Shape{2, c, 5 * b, 7 * b}));
        std::int64_t i = 0;
        for (std::int64_t n = 0; n < 2; ++n)
          for (std::int64_t k = 0; k < c; ++k)
            for (std::int64_t h = 0; h < 5 * b; ++h)
              for (std::int64_t w = 0; w < 7 * b; ++w, ++i) {
                const std::int64_t place = h % b * b + w % b;
                const std::int64_t channel = crd ? k * b * b + place : place * c + k;
                ASSERT_EQ(y.data<float>()[i],
                          x.data<float>()[((n * in[1] + channel) * 5 + h / b) * 7 + w / b]);
              }
        // And back: SpaceToDepth undoes DCR.
        if (crd) continue;
        const Tensor back = OpCall("SpaceToDepth").Attr("blocksize", b).In(y.Clone()).RunOne(0);
        ExpectClose(back, x, 0);
      }
    }
  }
}

TEST(DepthToSpace, MovesBytesInBothLayouts) {
  std::mt19937 random(9);
  for (const std::int64_t b : {1, 2, 3, 4}) {
    for (const std::int64_t c : {1, 3, 4, 20}) {
      for (const char* mode : {"DCR", "CRD"}) {
        const Tensor x = RandomBytes({2, c * b * b, 5, 7}, DType::kUint8, random);
        Tensor floats(DType::kFloat32, x.shape());
        std::copy_n(x.data<std::uint8_t>(), x.size(), floats.data<float>());
        const auto call = [&](const Tensor& t) {
          return OpCall("DepthToSpace").Attr("blocksize", b).Attr("mode", mode).In(t.Clone());
        };
        EXPECT_EQ(call(x).BlockedChoice().outputs[0], Layout::kChannelsLast);
        const Tensor y = call(x).RunOne(0), wanted = call(floats).RunOne(0);
        EXPECT_TRUE(std::equal(wanted.values<float>().begin(), wanted.values<float>().end(),
                               y.values<std::uint8_t>().begin()));
      }
    }
  }
}

TEST(FusedDepthToSpace, AddsTheImageWithRepeatedPixels) {
  std::mt19937 random(8);
  for (const std::int64_t b : {1, 2, 3, 4, 5}) {
    for (const std::int64_t c : {1, 3, 4}) {
      for (const char* mode : {"DCR", "CRD"}) {
        const Tensor x = RandomTensor({2, c * b * b, 5, 7}, random);
        const Tensor image = RandomTensor({2, c, 5, 7}, random);
        Tensor wanted =
            OpCall("DepthToSpace").Attr("blocksize", b).Attr("mode", mode).In(x.Clone()).RunOne(0);
        for (std::int64_t i = 0; i < wanted.size(); ++i) {
          const std::int64_t row = i / (7 * b), plane = row / (5 * b);
          wanted.data<float>()[i] +=
              image.data<float>()[(plane * 5 + row % (5 * b) / b) * 7 + i % (7 * b) / b];
        }
        ExpectClose(OpCall("FusedDepthToSpace")
                        .Attr("blocksize", b)
                        .Attr("mode", mode)
                        .In(x.Clone())
                        .In(image.Clone())
                        .RunOne(0),
                    wanted, 0);
      }
    }
  }
  EXPECT_THROW(OpCall("FusedDepthToSpace")
                   .Attr("blocksize", 2)
                   .In(Iota({1, 4, 2, 2}))
                   .In(Iota({1, 1, 4, 4}))
                   .Infer(),
               Error);
}

TEST(DepthToSpace, ReadsBlockedTensorsDirectly) {
  OpCall call("DepthToSpace");
  call.Attr("blocksize", 4).Attr("mode", "CRD").In(Iota({1, 48, 40, 30}));
  const LayoutChoice choice = call.BlockedChoice();
  EXPECT_EQ(choice.inputs[0], Layout::kBlocked);
  EXPECT_EQ(choice.outputs[0], Layout::kRowMajor);
  call.RunAll(0);
}

TEST(DepthToSpace, HasAnExactField) {
  const auto up = OpCall("DepthToSpace").Attr("blocksize", 4).In(Iota({1, 16, 2, 2})).Field();
  ASSERT_TRUE(up);
  EXPECT_EQ((*up)[0].num, 4);
  EXPECT_EQ((*up)[0].den, 1);
  EXPECT_EQ((*up)[0].lo, -0.75);
  EXPECT_EQ((*up)[0].hi, 0);
  const auto down = OpCall("SpaceToDepth").Attr("blocksize", 2).In(Iota({1, 1, 4, 4})).Field();
  ASSERT_TRUE(down);
  EXPECT_EQ((*down)[1].den, 2);
  EXPECT_EQ((*down)[1].hi, 1);
}

TEST(DepthToSpace, RefusesShapesThatDoNotDivide) {
  const auto infer = [](const char* op, int block, const Shape& shape) {
    return OpCall(op).Attr("blocksize", block).In(Iota(shape)).Infer();
  };
  EXPECT_THROW(infer("DepthToSpace", 2, {1, 6, 2, 2}), Error);
  EXPECT_THROW(infer("DepthToSpace", 0, {1, 4, 2, 2}), Error);
  EXPECT_THROW(infer("DepthToSpace", 2, {4, 2, 2}), Error);
  EXPECT_THROW(infer("SpaceToDepth", 2, {1, 1, 3, 4}), Error);
  EXPECT_THROW(OpCall("DepthToSpace")
                   .Attr("blocksize", 2)
                   .Attr("mode", "RCD")
                   .In(Iota({1, 4, 1, 1}))
                   .Infer(),
               Error);
}

}  // namespace
}  // namespace tessera
