// Vector kernels that reduce rows of float32. Sums are taken in double precision.
#pragma once

#include <cstdint>

namespace tessera {

enum class RowSum : std::uint8_t {
  kSum,
  kSumAbs,
  kSumSquare,
  kMax,
  kMin,
};

// The sum (or the extreme) of n elements; 0 (or the infinity below, above all numbers) of none.
double ReduceRow(RowSum fn, const float* x, std::int64_t n);

// Adds element i to sums[i], or takes the extreme of both, for i < n.
void AccumulateRow(RowSum fn, const float* x, double* sums, std::int64_t n);

// Sum of (x[i] - mean)^2.
double SumSquaredDeviations(const float* x, double mean, std::int64_t n);

}  // namespace tessera
