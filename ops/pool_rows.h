// Vector kernels of pooling on blocked tensors (NCHWc).
#pragma once

#include <cstdint>

namespace tessera {

// The taps of a pooling window that lie within the input, along one axis.
struct PoolTaps {
  std::int32_t first = 0, count = 0;  // input elements first, first + dilation, ...
  float divisor = 1;                  // taps that AveragePool divides by
};

// One output row of one channel block. `in` is the block's plane, whose rows are `row_stride`
// floats apart.
struct BlockedPoolRow {
  const float* in;
  std::int64_t row_stride;
  PoolTaps rows;
  std::int64_t row_dilation;
  const PoolTaps* columns;  // [width]
  std::int64_t column_dilation;
  std::int64_t width;  // of the output
  float* out;
};

void AveragePoolRow(const BlockedPoolRow& row);
void MaxPoolRow(const BlockedPoolRow& row);

// Means and maxima of whole planes: out[lane] over height x width pixels of one channel block.
void AveragePlane(const float* in, std::int64_t row_stride, std::int64_t height, std::int64_t width,
                  float* out);
void MaxPlane(const float* in, std::int64_t row_stride, std::int64_t height, std::int64_t width,
              float* out);

}  // namespace tessera
