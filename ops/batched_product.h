// Products of many matrices: what Gemm, MatMul, Einsum and the recurrent networks are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "ops/elements.h"
#include "ops/matmul_tile.h"
#include "ops/parallel.h"
#include "ops/tensor.h"

namespace tessera {

// A matrix with any strides, in elements.
struct Matrix {
  std::int64_t rows, columns, row_stride, column_stride;
};

// The last two dimensions of a row-major tensor.
inline Matrix RowMajorMatrix(const Shape& s, bool transposed) {
  const std::int64_t rows = s[s.rank() - 2], columns = s[s.rank() - 1];
  if (transposed) return {columns, rows, 1, columns};
  return {rows, columns, columns, 1};
}

// One product C = alpha A B of many that lie in batches.
struct Product {
  std::int64_t a, b, c;  // offsets of the matrices
};

// The sum over k of one element, the plain way. Integers wrap around.
template <typename T>
T DotProduct(const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, std::int64_t k,
             float alpha) {
  if constexpr (std::is_integral_v<T>) {
    std::uint64_t sum = 0;
    for (std::int64_t l = 0; l < k; ++l) {
      sum +=
          static_cast<std::uint64_t>(a[l * a_stride]) * static_cast<std::uint64_t>(b[l * b_stride]);
    }
    const auto total = static_cast<T>(sum);
    return alpha == 1.f
               ? total
               : ConvertElement<T>(static_cast<double>(alpha) * static_cast<double>(total));
  } else {
    double sum = 0;
    for (std::int64_t l = 0; l < k; ++l) {
      sum += static_cast<double>(static_cast<ComputeType<T>>(a[l * a_stride])) *
             static_cast<double>(static_cast<ComputeType<T>>(b[l * b_stride]));
    }
    return static_cast<T>(static_cast<ComputeType<T>>(static_cast<double>(alpha) * sum));
  }
}

// Products of matrices with these strides at these places; C is row-major.
class BatchedProduct {
 public:
  BatchedProduct(Matrix a, Matrix b, std::vector<Product> products, float alpha, bool vector)
      : a_(a), b_(b), products_(std::move(products)), alpha_(alpha), vector_(vector) {}

  double Flops() const {
    return 2.0 * static_cast<double>(products_.size()) *
           static_cast<double>(a_.rows * a_.columns * b_.columns);
  }

  template <typename T>
  void Run(const T* a, const T* b, T* c, Parallel& parallel) const {
    const std::int64_t m = a_.rows, n = b_.columns, k = a_.columns;
    const std::int64_t row_tiles = (m + kMatMulTileRows - 1) / kMatMulTileRows;
    const std::int64_t column_tiles = (n + kMatMulTileColumns - 1) / kMatMulTileColumns;
    const std::int64_t tiles = row_tiles * column_tiles;
    const auto tasks = static_cast<std::int64_t>(products_.size()) * tiles;
    parallel.For(tasks, [&](std::int64_t task, int) {
      const Product& p = products_[static_cast<std::size_t>(task / tiles)];
      const std::int64_t i = task % tiles / column_tiles * kMatMulTileRows;
      const std::int64_t j = task % column_tiles * kMatMulTileColumns;
      const T* from_a = a + p.a + i * a_.row_stride;
      const T* from_b = b + p.b + j * b_.column_stride;
      T* to = c + p.c + i * n + j;
      const std::int64_t rows = std::min(kMatMulTileRows, m - i);
      const std::int64_t columns = std::min(kMatMulTileColumns, n - j);
      if constexpr (std::is_same_v<T, float>) {
        if (vector_) {
          Multiply({from_a, a_.row_stride, a_.column_stride, from_b, b_.row_stride, to, n, rows,
                    columns, k, alpha_});
          return;
        }
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t s = 0; s < columns; ++s) {
          to[r * n + s] = DotProduct(from_a + r * a_.row_stride, a_.column_stride,
                                     from_b + s * b_.column_stride, b_.row_stride, k, alpha_);
        }
      }
    });
  }

 private:
  Matrix a_, b_;
  std::vector<Product> products_;
  float alpha_;
  bool vector_;
};

}  // namespace tessera
