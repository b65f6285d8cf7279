// The matrix product behind Gemm and MatMul, in float32.
#pragma once

#include <cstdint>
#include <limits>

namespace tessera {

// Rows and columns of C that are worth one call.
inline constexpr std::int64_t kMatMulTileRows = 24, kMatMulTileColumns = 192;

// C[i, j] = alpha * (sum over l < k of A[i, l] * B[l, j]), for i < m and j < n. A has any strides;
// rows of B and C are contiguous (but see below). All strides in floats. Each sum runs over l in
// order, in float32 (with one rounding per step where the CPU has FMA).
struct MatMulTile {
  const float* a;
  std::int64_t a_row_stride, a_column_stride;
  const float* b;
  std::int64_t b_row_stride;
  float* c;
  std::int64_t c_row_stride;
  std::int64_t m, n, k;
  float alpha;
  // Blocked channels (NCHWc) as columns: those of A are a_block to a block, blocks a_block_stride
  // apart; those of C, n of them a multiple of FloatLanes(), so many to a block (0: contiguous).
  std::int64_t a_block = std::numeric_limits<std::int64_t>::max(), a_block_stride = 0;
  std::int64_t c_block_stride = 0;
};
void Multiply(const MatMulTile& tile);

}  // namespace tessera
