#include "engine/quantization/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/error.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

Histogram Of(const std::vector<float>& values) {
  const WeightedValues part{values};
  return Histogram(std::span(&part, 1));
}

// Uniform in [-1, 1), with `outliers` values of 100.
std::vector<float> WithOutliers(std::size_t n, int outliers) {
  std::vector<float> values = TestModel::NoiseValues(n, 3);
  for (int i = 0; i < outliers; ++i) values[static_cast<std::size_t>(i) * 100] = 100;
  return values;
}

// The mean squared error that quantisation really makes.
double Error(const std::vector<float>& values, const ValueRange& range) {
  const Quantization q = QuantizationOfRange(range);
  double sum = 0;
  for (const float v : values) {
    const double level = std::clamp<double>(std::nearbyint(v / q.scale) + q.zero_point, 0.0, 255.0);
    const double e = v - (level - q.zero_point) * q.scale;
    sum += e * e;
  }
  return sum / static_cast<double>(values.size());
}

TEST(Histogram, MinMaxIsAllOfIt) {
  const ValueRange r = ChooseRange(Of({-0.5f, 0, 2, 7}), RangeMethod::kMinMax, 0);
  EXPECT_EQ(r.low, -0.5f);
  EXPECT_EQ(r.high, 7.0f);
  // A range holds 0.
  const ValueRange positive = ChooseRange(Of({3, 4}), RangeMethod::kMinMax, 0);
  EXPECT_EQ(positive.low, 0.0f);
  EXPECT_EQ(positive.high, 4.0f);
}

TEST(Histogram, PercentileLeavesOutThatShareOfEitherEnd) {
  std::vector<float> values;
  for (int i = 0; i < 100000; ++i) values.push_back(static_cast<float>(i - 30000) / 1000);
  const ValueRange r = ChooseRange(Of(values), RangeMethod::kPercentile, 99);
  EXPECT_NEAR(r.low, -29, 0.03);  // to a bin
  EXPECT_NEAR(r.high, 69, 0.03);
  EXPECT_THROW(ChooseRange(Of(values), RangeMethod::kPercentile, 101), tessera::Error);
  // Outliers beyond the share are cut off.
  const ValueRange cut = ChooseRange(Of(WithOutliers(100000, 5)), RangeMethod::kPercentile, 99.99);
  EXPECT_NEAR(cut.high, 1, 0.05);
}

TEST(Histogram, MseWeighsRoundingAgainstCutting) {
  // Few far outliers are not worth a hundred times coarser steps ...
  const std::vector<float> few = WithOutliers(1000000, 1);
  const ValueRange r = ChooseRange(Of(few), RangeMethod::kMse, 0);
  EXPECT_LT(r.high, 90);
  EXPECT_LT(Error(few, r), Error(few, {-1, 100}));
  // ... but a uniform distribution is kept whole.
  const std::vector<float> uniform = TestModel::NoiseValues(100000, 3);
  const ValueRange all = ChooseRange(Of(uniform), RangeMethod::kMse, 0);
  EXPECT_NEAR(all.low, -1, 0.01);
  EXPECT_NEAR(all.high, 1, 0.01);
}

TEST(Histogram, EntropyIgnoresALongThinTail) {
  std::vector<float> values = TestModel::NoiseValues(1000000, 3);
  for (float& v : values) v = std::abs(v) * std::abs(v) * std::abs(v);
  values[7] = 4;
  const ValueRange r = ChooseRange(Of(values), RangeMethod::kEntropy, 0);
  EXPECT_EQ(r.low, 0);
  EXPECT_LT(r.high, 1.3f);
  EXPECT_GT(r.high, 0.5f);
}

TEST(Histogram, WeightsCount) {
  // A channel that counts a million times as much as the other one sets the range.
  const std::vector<float> narrow = TestModel::NoiseValues(10000, 3);
  std::vector<float> wide = TestModel::NoiseValues(10000, 4);
  for (float& v : wide) v *= 100;
  const WeightedValues parts[] = {{narrow, 1e6}, {wide, 1e-3}};
  const WeightedValues equal[] = {{narrow, 1}, {wide, 1}};
  EXPECT_LT(ChooseRange(Histogram(parts), RangeMethod::kMse, 0).high, 5);
  EXPECT_GT(ChooseRange(Histogram(equal), RangeMethod::kMse, 0).high, 50);
}

TEST(Histogram, ZeroIsRepresentedExactlyAndPicturesAre) {
  const Quantization picture = QuantizationOfRange({0, 1});
  EXPECT_EQ(picture.zero_point, 0);
  EXPECT_EQ(picture.scale, 1.0f / 255);
  EXPECT_EQ(QuantizationOfRange({-128, 127}).zero_point, 128);
  EXPECT_EQ(QuantizationOfRange({-128, 127}).scale, 1.0f);
  EXPECT_EQ(QuantizationOfRange({-3, 0}).zero_point, 255);
  EXPECT_EQ(QuantizationOfRange({0, 0}), (Quantization{1, 0}));
}

TEST(Histogram, RefusesWhatIsNotFinite) {
  EXPECT_THROW(Of({1, std::numeric_limits<float>::infinity()}), tessera::Error);
  EXPECT_THROW(Of({std::numeric_limits<float>::quiet_NaN()}), tessera::Error);
}

}  // namespace
}  // namespace tessera
