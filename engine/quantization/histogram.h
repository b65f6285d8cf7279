// The distribution of an activation's values, and the range that 8 bits should cover of it.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engine/quantization/quantizer.h"
#include "ops/quantized/quantized_conv.h"

namespace tessera {

// Values that count as often as `weight` says each.
struct WeightedValues {
  std::span<const float> values;
  double weight = 1;
};

// Bins of equal width from the lowest to the highest value. Zeros, which every quantisation
// represents exactly, are counted apart.
class Histogram {
 public:
  static constexpr int kBins = 4096;

  // Of all values in all parts. Throws Error if one of them is not finite.
  explicit Histogram(std::span<const WeightedValues> parts);

  float low() const { return low_; }    // 0 at most
  float high() const { return high_; }  // 0 at least
  double zeros() const { return zeros_; }
  double total() const { return total_; }  // with the zeros
  std::span<const double> counts() const { return counts_; }
  double bin_width() const { return width_; }
  double Center(int bin) const { return low_ + (bin + 0.5) * width_; }

 private:
  float low_ = 0, high_ = 0;
  double width_ = 0, zeros_ = 0, total_ = 0;
  std::vector<double> counts_;
};

// Contains 0.
struct ValueRange {
  float low = 0, high = 0;
};

inline constexpr double kClipCost = 4;  // unless QuantizerOptions have another

// `percentile` and `clip_cost` are those of QuantizerOptions.
ValueRange ChooseRange(const Histogram& histogram, RangeMethod method, double percentile,
                       double clip_cost = kClipCost);

// uint8 that represents 0 exactly and covers the range but for half a step at either end.
Quantization QuantizationOfRange(const ValueRange& range);

}  // namespace tessera
