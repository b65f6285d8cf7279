#include "pipeline/quantization/damage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera {
namespace {

std::vector<Outputs> Of(const std::vector<std::vector<float>>& runs) {
  std::vector<Outputs> all;
  for (const auto& values : runs)
    all.emplace_back().push_back(
        Tensor::FromVector(Shape{static_cast<std::int64_t>(values.size())}, values));
  return all;
}

TEST(RelativeDamage, IsTheRootMeanSquareInPercent) {
  EXPECT_EQ(RelativeDamage(Of({{1, 2}}), Of({{1, 2}})), 0);
  // Over all runs: sqrt((9 + 16) / (100 + 0)).
  EXPECT_NEAR(RelativeDamage(Of({{6, 8}, {0}}), Of({{9, 8}, {4}})), 50, 1e-9);
  EXPECT_TRUE(std::isinf(RelativeDamage(Of({{1, 2}}), Of({{1}}))));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isinf(RelativeDamage(Of({{1, 2}}), Of({{1, nan}}))));
}

TEST(PictureDamage, HasAPsnr) {
  // A difference of a tenth everywhere: 20 dB.
  EXPECT_NEAR(PsnrOfDamage(PictureDamage(Of({{0.5F, 0.5F}}), Of({{0.6F, 0.4F}}))), 20, 0.01);
  EXPECT_NEAR(PsnrOfDamage(DamageOfPsnr(40)), 40, 1e-12);
}

}  // namespace
}  // namespace tessera
