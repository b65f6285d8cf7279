#include "engine/quantization/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/error.h"

namespace tessera {
namespace {

constexpr double kLevels = 255;

ValueRange FullRange(const Histogram& h) { return {h.low(), h.high()}; }

ValueRange PercentileRange(const Histogram& h, double percentile) {
  Require(percentile > 50 && percentile <= 100, "a percentile of ", percentile,
          " (more than 50, 100 at most)");
  const double share = h.total() * (1 - percentile / 100);
  // Zeros lie in the one bin that holds 0, or at an end of the range.
  const auto edge = [&](bool from_low) {
    double left = share;
    for (int i = 0; i < Histogram::kBins; ++i) {
      const int bin = from_low ? i : Histogram::kBins - 1 - i;
      const double start = h.low() + (from_low ? bin : bin + 1) * h.bin_width();
      if (from_low ? start >= 0 : start <= 0) break;  // a range holds 0
      const double count = h.counts()[static_cast<std::size_t>(bin)];
      if (count > left) return static_cast<float>(start);
      left -= count;
    }
    return 0.0f;
  };
  return {edge(true), edge(false)};
}

// Sums over the bins, for the error of any range at once.
class SquaredError {
 public:
  SquaredError(const Histogram& h, double clip_cost) : h_(h), clip_cost_(clip_cost) {
    constexpr auto kSums = static_cast<std::size_t>(Histogram::kBins) + 1;
    for (auto& sums : sums_) sums.assign(kSums, 0);
    for (std::size_t i = 0; i + 1 < kSums; ++i) {
      const double n = h.counts()[i], x = h.Center(static_cast<int>(i));
      sums_[0][i + 1] = sums_[0][i] + n;
      sums_[1][i + 1] = sums_[1][i] + n * x;
      sums_[2][i + 1] = sums_[2][i] + n * x * x;
    }
  }

  // Rounding errors are uniform in a step; what is beyond the range is moved to its ends.
  double Of(double low, double high) const {
    const std::size_t a = Bin(low), b = std::max(a, Bin(high)), end = sums_[0].size() - 1;
    const double step = (high - low) / kLevels;
    return (sums_[0][b] - sums_[0][a]) * step * step / 12 +
           clip_cost_ * (Moved(0, a, low) + Moved(b, end, high));
  }

 private:
  std::size_t Bin(double x) const {
    const double bin = std::round((x - h_.low()) / h_.bin_width());
    return static_cast<std::size_t>(std::clamp(bin, 0.0, static_cast<double>(Histogram::kBins)));
  }
  double Moved(std::size_t first, std::size_t last, double to) const {
    const auto sum = [&](std::size_t power) { return sums_[power][last] - sums_[power][first]; };
    return std::max(0.0, sum(2) - 2 * to * sum(1) + to * to * sum(0));
  }

  const Histogram& h_;
  const double clip_cost_;
  std::array<std::vector<double>, 3> sums_;  // of x^0, x^1, x^2, before each bin
};

ValueRange MseRange(const Histogram& h, double clip_cost) {
  constexpr int kSteps = 200;
  const SquaredError error(h, clip_cost);
  ValueRange best = FullRange(h);
  double least = error.Of(best.low, best.high);
  // One end at a time; each depends on the other by the width of a step alone.
  for (int round = 0; round < 4; ++round) {
    for (int i = 1; i <= kSteps; ++i) {
      const float part = static_cast<float>(i) / kSteps;
      for (const ValueRange r :
           {ValueRange{best.low, h.high() * part}, ValueRange{h.low() * part, best.high}}) {
        if (r.high <= r.low) continue;
        const double e = error.Of(r.low, r.high);
        if (e < least) {
          least = e;
          best = r;
        }
      }
    }
  }
  return best;
}

// How much a distribution loses when the bins [first, last) are merged into `kLevels` levels and
// what is outside counts in the outermost of them: the Kullback-Leibler divergence. Inside a level
// the values are spread evenly over those bins that hold any (S. Migacz, 8-bit Inference with
// TensorRT, 2017).
double Divergence(std::span<const double> counts, std::size_t first, std::size_t last) {
  std::vector<double> p(counts.begin() + static_cast<std::ptrdiff_t>(first),
                        counts.begin() + static_cast<std::ptrdiff_t>(last));
  const std::vector<double> inside = p;
  for (std::size_t i = 0; i < first; ++i) p.front() += counts[i];
  for (std::size_t i = last; i < counts.size(); ++i) p.back() += counts[i];
  std::vector<double> q(p.size(), 0);
  double p_total = 0, q_total = 0;
  constexpr auto kLevelCount = static_cast<std::size_t>(kLevels);
  for (std::size_t level = 0; level < kLevelCount; ++level) {
    const std::size_t a = level * p.size() / kLevelCount, b = (level + 1) * p.size() / kLevelCount;
    double sum = 0, used = 0;
    for (std::size_t i = a; i < b; ++i) {
      sum += inside[i];
      used += p[i] > 0 ? 1 : 0;
    }
    for (std::size_t i = a; i < b; ++i) q[i] = p[i] > 0 ? sum / used : 0;
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    p_total += p[i];
    q_total += q[i];
  }
  if (p_total == 0 || q_total == 0) return std::numeric_limits<double>::infinity();
  constexpr double kLeast = 1e-9;  // in place of a share of nothing
  double divergence = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) continue;
    const double share = p[i] / p_total;
    divergence += share * std::log(share / std::max(q[i] / q_total, kLeast));
  }
  return divergence;
}

// Which ranges lose little information says nothing of how wrong the values beyond them become; in
// networks for pictures those carry the contrast. So only ranges count whose squared error is not
// much above the least.
ValueRange EntropyRange(const Histogram& h, double clip_cost) {
  constexpr int kSteps = 100;
  constexpr double kMostError = 4;
  const auto bin = [&](double x) {
    return static_cast<std::size_t>(std::clamp(std::round((x - h.low()) / h.bin_width()), 0.0,
                                               static_cast<double>(Histogram::kBins)));
  };
  const SquaredError error(h, clip_cost);
  ValueRange best = MseRange(h, clip_cost);
  const double most_error = kMostError * error.Of(best.low, best.high);
  double least = std::numeric_limits<double>::infinity();
  const double widest = std::max<double>(h.high(), -static_cast<double>(h.low()));
  for (int i = kSteps; i > 0; --i) {
    const double bound = widest * i / kSteps;
    const double low = std::max<double>(h.low(), -bound), high = std::min<double>(h.high(), bound);
    const std::size_t first = bin(low), last = bin(high);
    if (last - first < static_cast<std::size_t>(kLevels)) break;
    if (error.Of(low, high) > most_error) continue;
    const double divergence = Divergence(h.counts(), first, last);
    if (divergence < least) {
      least = divergence;
      best = {static_cast<float>(low), static_cast<float>(high)};
    }
  }
  return best;
}

}  // namespace

Histogram::Histogram(std::span<const WeightedValues> parts)
    : counts_(static_cast<std::size_t>(kBins), 0) {
  for (const WeightedValues& part : parts) {
    for (const float v : part.values) {
      Require(std::isfinite(v), "a value is not finite");
      low_ = std::min(low_, v);
      high_ = std::max(high_, v);
    }
  }
  width_ = (static_cast<double>(high_) - low_) / kBins;
  const double bins = width_ > 0 ? 1 / width_ : 0;
  for (const WeightedValues& part : parts) {
    total_ += part.weight * static_cast<double>(part.values.size());
    for (const float v : part.values) {
      if (v == 0) {
        zeros_ += part.weight;
        continue;
      }
      const auto bin = static_cast<std::int64_t>((static_cast<double>(v) - low_) * bins);
      counts_[static_cast<std::size_t>(std::clamp<std::int64_t>(bin, 0, kBins - 1))] += part.weight;
    }
  }
}

ValueRange ChooseRange(const Histogram& histogram, RangeMethod method, double percentile,
                       double clip_cost) {
  if (!(histogram.high() > histogram.low())) return FullRange(histogram);
  switch (method) {
    case RangeMethod::kMinMax:
      return FullRange(histogram);
    case RangeMethod::kPercentile:
      return PercentileRange(histogram, percentile);
    case RangeMethod::kMse:
      return MseRange(histogram, clip_cost);
    case RangeMethod::kEntropy:
      return EntropyRange(histogram, clip_cost);
  }
  return FullRange(histogram);
}

Quantization QuantizationOfRange(const ValueRange& range) {
  const float low = std::min(range.low, 0.0f), high = std::max(range.high, 0.0f);
  const double scale = (static_cast<double>(high) - low) / kLevels;
  // Scales far below what any network works with would overflow where they are divided by.
  if (scale < 1e-30) return {1.0f, 0};
  const double zero_point = std::clamp(std::nearbyint(-low / scale), 0.0, kLevels);
  return {static_cast<float>(scale), static_cast<std::int32_t>(zero_point)};
}

}  // namespace tessera
