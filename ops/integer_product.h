// The matrix product behind the integer operators, on pairs of int16.
//
// 8-bit values less their zero point fit into int16, whatever their signs, and CPUs add the
// products of two pairs to an int32 in one step. So operands are packed with the zero point
// subtracted, the depth k padded with zeros to an even number.
#pragma once

#include <cstdint>

#include "ops/tensor.h"

namespace tessera {

// Rows of C that are worth one call.
inline constexpr std::int64_t kProductRows = 24;

// How many columns of B, `depth` deep, stay in the cache while rows of A pass by; a multiple of 32.
std::int64_t ProductColumns(std::int64_t depth);

// C[i, j] = sum over l < k of A[i, l] * B[l, j], for i < m and j < n, in int32 that wraps around. k
// is even. Rows of A are contiguous, B is [k / 2][columns][2]; strides in elements.
struct IntegerProduct {
  const std::int16_t* a;
  std::int64_t a_row_stride;
  const std::int16_t* b;
  std::int64_t b_pair_stride;
  std::int32_t* c;
  std::int64_t c_row_stride;
  std::int64_t m, n, k;
};
void MultiplyIntegers(const IntegerProduct& product);

// out[i] = in[i] - zero_point for i < n; `out` is followed by a 0 if n is odd. `in` is an element
// of a tensor of type int8 or uint8.
void PackRow(const void* in, DType type, std::int32_t zero_point, std::int64_t n,
             std::int16_t* out);

// out[2 * i] = even[i] and out[2 * i + 1] = odd[i] for i < n.
void InterleaveRows(const std::int16_t* even, const std::int16_t* odd, std::int64_t n,
                    std::int16_t* out);

}  // namespace tessera
