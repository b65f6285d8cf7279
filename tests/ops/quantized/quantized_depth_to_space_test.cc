// QuantizedDepthToSpace: as DequantizeLinear, DepthToSpace and the addition of repeated pixels give
// it, on every target, in both layouts (OpCall::RunAll).
#include "tests/every_target.h"
#include "tests/ops/byte_tensors.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

TEST(QuantizedDepthToSpace, IsTheChainThatItReplaces) {
  std::mt19937 random(1);
  for (const std::int64_t b : {1, 2, 3, 4, 5}) {
    for (const std::int64_t c : {1, 3}) {
      for (const char* mode : {"DCR", "CRD"}) {
        for (const bool has_image : {false, true}) {
          const std::int64_t width = 5 + static_cast<std::int64_t>(random() % 30);
          const Tensor x = RandomBytes({2, c * b * b, 3, width}, DType::kUint8, random);
          const Tensor image = RandomTensor({2, c, 3, width}, random);
          const int zero_point = static_cast<int>(random() % 256);
          Tensor reals(DType::kFloat32, x.shape());
          for (std::int64_t i = 0; i < x.size(); ++i) {
            reals.data<float>()[i] =
                static_cast<float>(x.data<std::uint8_t>()[i] - zero_point) * 0.0117f;
          }
          OpCall plain(has_image ? "FusedDepthToSpace" : "DepthToSpace");
          plain.Attr("blocksize", b).Attr("mode", mode).In(std::move(reals));
          if (has_image) plain.In(image.Clone());
          const Tensor expected = std::move(plain.Run({.reference = true})[0]);

          OpCall call("QuantizedDepthToSpace");
          call.Attr("blocksize", b).Attr("mode", mode).In(x.Clone());
          call.Attr("x_scale", 0.0117f).Attr("x_zero_point", zero_point);
          if (has_image) call.In(image.Clone());
          EXPECT_EQ(call.BlockedChoice().inputs[0], Layout::kChannelsLast);
          OnEveryTarget([&] { ExpectClose(call.RunOne(0), expected, 0); });
        }
      }
    }
  }
}

TEST(QuantizedDepthToSpace, RefusesOtherImages) {
  OpCall call("QuantizedDepthToSpace");
  call.Attr("blocksize", 2).In(Iota<std::uint8_t>({1, 12, 2, 3})).In(Iota({1, 3, 4, 6}));
  EXPECT_THROW(call.Infer(), Error);
  OpCall channels("QuantizedDepthToSpace");
  channels.Attr("blocksize", 2).In(Iota<std::uint8_t>({1, 13, 2, 3}));
  EXPECT_THROW(channels.Infer(), Error);
}

}  // namespace
}  // namespace tessera
