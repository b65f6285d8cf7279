#include "pipeline/resample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace tessera {
namespace {

double CatmullRom(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

double Lanczos3(double x) {
  x = std::abs(x);
  if (x < 1e-9) return 1;
  if (x >= 3) return 0;
  const double p = std::numbers::pi * x;
  return 3 * std::sin(p) * std::sin(p / 3) / (p * p);
}

}  // namespace

ResampleAxis::ResampleAxis(std::int64_t in, const Part& part, std::int64_t out,
                           ResampleKernel kernel)
    : in_(in) {
  const double ratio = part.length / static_cast<double>(out);  // inputs per output
  const double stretch = std::max(1.0, ratio);
  const double support = (kernel == ResampleKernel::kLanczos3 ? 3.0 : 2.0) * stretch;
  const auto weight_at = kernel == ResampleKernel::kLanczos3 ? Lanczos3 : CatmullRom;

  taps_ = std::min(in, static_cast<std::int64_t>(std::ceil(2 * support)) + 1);
  first_.resize(static_cast<std::size_t>(out));
  weights_.resize(static_cast<std::size_t>(out * taps_));
  std::vector<double> sums(static_cast<std::size_t>(taps_));
  for (std::int64_t i = 0; i < out; ++i) {
    const double centre = part.start + (static_cast<double>(i) + 0.5) * ratio - 0.5;
    const auto low = static_cast<std::int64_t>(std::ceil(centre - support));
    const auto high = static_cast<std::int64_t>(std::floor(centre + support));
    const std::int64_t first = std::clamp<std::int64_t>(low, 0, in - taps_);
    std::fill(sums.begin(), sums.end(), 0.0);
    double total = 0;
    for (std::int64_t j = low; j <= high; ++j) {
      const double w = weight_at((static_cast<double>(j) - centre) / stretch);
      sums[static_cast<std::size_t>(std::clamp<std::int64_t>(j, 0, in - 1) - first)] += w;
      total += w;
    }
    first_[static_cast<std::size_t>(i)] = first;
    for (std::int64_t t = 0; t < taps_; ++t)
      weights_[static_cast<std::size_t>(i * taps_ + t)] =
          static_cast<float>(sums[static_cast<std::size_t>(t)] / total);
  }
}

Rect Resampler::Inputs(const Rect& rect) const {
  const Span x = x_.Inputs({rect.x, rect.right()}), y = y_.Inputs({rect.y, rect.bottom()});
  return {x.begin, y.begin, x.length(), y.length()};
}

void Resampler::Run(const float* src, std::int64_t src_stride, const Rect& rect, float* dst,
                    std::int64_t dst_stride) const {
  // Rows are taken eight at a time, the columns of those eight side by side: both passes then work
  // on vectors, whatever the ratio.
  constexpr std::int64_t kRows = 8;
  const std::int64_t first_row = y_.First(rect.y), first_column = x_.First(rect.x);
  const std::int64_t columns = x_.First(rect.right() - 1) + x_.taps() - first_column;
  std::vector<float> row(static_cast<std::size_t>(columns));
  std::vector<float> block(static_cast<std::size_t>(columns * kRows));

  for (std::int64_t y = 0; y < rect.height; y += kRows) {
    const std::int64_t rows = std::min(kRows, rect.height - y);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t out_y = rect.y + y + r;
      const float* weights = y_.Weights(out_y);
      const float* in = src + (y_.First(out_y) - first_row) * src_stride;
      std::fill(row.begin(), row.end(), 0.f);
      for (std::int64_t t = 0; t < y_.taps(); ++t, in += src_stride) {
        const float w = weights[t];
        if (w == 0) continue;
        for (std::int64_t x = 0; x < columns; ++x) row[static_cast<std::size_t>(x)] += w * in[x];
      }
      for (std::int64_t x = 0; x < columns; ++x)
        block[static_cast<std::size_t>(x * kRows + r)] = row[static_cast<std::size_t>(x)];
    }
    for (std::int64_t x = 0; x < rect.width; ++x) {
      const float* weights = x_.Weights(rect.x + x);
      const float* in = block.data() + (x_.First(rect.x + x) - first_column) * kRows;
      std::array<float, kRows> sum{};
      for (std::int64_t t = 0; t < x_.taps(); ++t)
        for (std::size_t r = 0; r < kRows; ++r)
          sum[r] += weights[t] * in[t * kRows + static_cast<std::int64_t>(r)];
      for (std::int64_t r = 0; r < rows; ++r)
        dst[(y + r) * dst_stride + x] = sum[static_cast<std::size_t>(r)];
    }
  }
}

}  // namespace tessera
