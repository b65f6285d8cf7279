#include "simd/cpu_target.h"
#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

TEST(PixelCorrelation, ComparesEveryPixelWithEveryOther) {
  std::mt19937 random(21);
  for (const std::string& target : AvailableCpuTargets()) {
    ASSERT_TRUE(ForceCpuTarget(target));
    // Batches, channels that do not fill their last block, rows with and without gaps between them.
    for (const Shape& s : {Shape{1, 48, 16, 16}, Shape{2, 20, 3, 7}, Shape{1, 5, 9, 64},
                           Shape{1, 1, 1, 1}, Shape{2, 33, 5, 31}}) {
      for (const std::int64_t pixels : {3, 16, 64}) {
        const Tensor kernel = RandomTensor({s[0], s[1], pixels}, random);
        const Tensor x = RandomTensor(s, random);
        Tensor expected(DType::kFloat32, {s[0], pixels, s[2], s[3]});
        const std::int64_t plane = s[2] * s[3];
        for (std::int64_t n = 0; n < s[0]; ++n) {
          for (std::int64_t m = 0; m < pixels; ++m) {
            for (std::int64_t i = 0; i < plane; ++i) {
              double sum = 0;
              for (std::int64_t c = 0; c < s[1]; ++c) {
                sum += static_cast<double>(kernel.data<float>()[(n * s[1] + c) * pixels + m]) *
                       static_cast<double>(x.data<float>()[(n * s[1] + c) * plane + i]);
              }
              expected.data<float>()[(n * pixels + m) * plane + i] = static_cast<float>(sum);
            }
          }
        }
        ExpectClose(OpCall("PixelCorrelation").In(kernel.Clone()).In(x.Clone()).RunOne(2e-6),
                    expected, 2e-6, target + " " + ToString(s));
      }
    }
  }
  ForceCpuTarget(AvailableCpuTargets().front());
}

TEST(PixelCorrelation, RefusesWhatDoesNotFit) {
  EXPECT_THROW(OpCall("PixelCorrelation").In(Iota({1, 3, 4})).In(Iota({1, 2, 5, 5})).Infer(),
               Error);
  EXPECT_THROW(OpCall("PixelCorrelation").In(Iota({2, 3, 4})).In(Iota({1, 3, 5, 5})).Infer(),
               Error);
  EXPECT_THROW(OpCall("PixelCorrelation").In(Iota({1, 3, 4})).In(Iota({1, 3, 5})).Infer(), Error);
}

}  // namespace
}  // namespace tessera
