// Mean and variance of rows, and rows normalised with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/row_sums.h"

namespace tessera {

struct Moments {
  double mean, variance;
};

// Sum of n elements, `step` apart. `vector`: by the vector kernels, where there are any.
template <typename T>
double SumOf(const T* x, std::int64_t step, std::int64_t n, bool vector) {
  if constexpr (std::is_same_v<T, float>) {
    if (vector && step == 1) return ReduceRow(RowSum::kSum, x, n);
  }
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += static_cast<double>(static_cast<ComputeType<T>>(x[i * step]));
  }
  return sum;
}

// Sum of (x - mean)^2.
template <typename T>
double SumOfSquaredDeviations(const T* x, std::int64_t step, double mean, std::int64_t n,
                              bool vector) {
  if constexpr (std::is_same_v<T, float>) {
    if (vector && step == 1) return SumSquaredDeviations(x, mean, n);
  }
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(static_cast<ComputeType<T>>(x[i * step])) - mean;
    sum += d * d;
  }
  return sum;
}

// Of n >= 1 contiguous elements; the variance is that of the elements themselves (divided by n).
template <typename T>
Moments RowMoments(const T* x, std::int64_t n, bool vector) {
  const auto count = static_cast<double>(n);
  const double mean = SumOf(x, 1, n, vector) / count;
  return {mean, SumOfSquaredDeviations(x, 1, mean, n, vector) / count};
}

// out = (x - mean) * factor + offset. `out` may be `x`.
template <typename T>
void NormalizeRow(const T* x, std::int64_t step, double mean, double factor, double offset, T* out,
                  std::int64_t n, bool vector) {
  if constexpr (std::is_same_v<T, float>) {
    if (vector && step == 1) {
      // The offset makes up for the rounding of the mean. Pieces stay in the cache.
      constexpr std::int64_t kPiece = 4096;
      const auto rounded = static_cast<float>(mean), scale = static_cast<float>(factor);
      const auto shift =
          static_cast<float>(offset + (static_cast<double>(rounded) - mean) * factor);
      for (std::int64_t i = 0; i < n; i += kPiece) {
        const std::int64_t m = std::min(kPiece, n - i);
        ApplyBinary(BinaryFn::kSub, {x + i}, {&rounded, RowOperand::kScalar}, out + i, m);
        ApplyScaleShift(out + i, {&scale, RowOperand::kScalar}, {&shift, RowOperand::kScalar},
                        out + i, m);
      }
      return;
    }
  }
  using C = ComputeType<T>;
  for (std::int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(static_cast<C>(x[i * step])) - mean;
    out[i * step] = static_cast<T>(static_cast<C>(d * factor + offset));
  }
}

}  // namespace tessera
