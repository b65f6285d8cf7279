// The matrix product behind Gemm and MatMul, in float32.
#pragma once

#include <cstdint>

namespace tessera {

// Rows and columns of C that are worth one call.
inline constexpr std::int64_t kMatMulTileRows = 24, kMatMulTileColumns = 192;

// C[i, j] = alpha * (sum over l < k of A[i, l] * B[l, j]), for i < m and j < n. A has any strides;
// rows of B and C are contiguous. All strides in floats. Each sum runs over l in order, in float32
// (with one rounding per step where the CPU has FMA).
struct MatMulTile {
  const float* a;
  std::int64_t a_row_stride, a_column_stride;
  const float* b;
  std::int64_t b_row_stride;
  float* c;
  std::int64_t c_row_stride;
  std::int64_t m, n, k;
  float alpha;
};
void Multiply(const MatMulTile& tile);

}  // namespace tessera
