#include "ops/matmul_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/matmul_tile.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// kRows x kVectors accumulators stay in registers over the whole of k.
// Rows from i and columns from j on; their first element of C is at `c`, and vectors of a row of C
// are `c_step` apart.
template <int kRows, int kVectors, class D>
HWY_INLINE void Block(D d, const MatMulTile& t, std::int64_t i, std::int64_t j, float* c,
                      std::int64_t c_step) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* block = t.a + i * t.a_row_stride;
  const float* b = t.b + j;
  for (std::int64_t left = t.k; left > 0; left -= t.a_block, block += t.a_block_stride) {
    const float* a = block;
    const std::int64_t n = left < t.a_block ? left : t.a_block;
    for (std::int64_t l = 0; l < n; ++l, a += t.a_column_stride, b += t.b_row_stride) {
      hn::Vec<D> row[kVectors];
      for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d, b + v * lanes);
      for (int r = 0; r < kRows; ++r) {
        const auto factor = hn::Set(d, a[r * t.a_row_stride]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, row[v], sums[r][v]);
      }
    }
  }
  const auto alpha = hn::Set(d, t.alpha);
  for (int r = 0; r < kRows; ++r) {
    float* to = c + r * t.c_row_stride;
    for (int v = 0; v < kVectors; ++v) hn::StoreU(hn::Mul(alpha, sums[r][v]), d, to + v * c_step);
  }
}

// A single row takes many columns at once, to hide the latency of multiply-adds.
template <int kRows>
HWY_INLINE void Rows(const MatMulTile& t, std::int64_t i) {
  constexpr int kVectors = kRows == 1 ? 8 : 2;
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t c_step = t.c_block_stride == 0 ? lanes : t.c_block_stride;
  float* c = t.c + i * t.c_row_stride;
  std::int64_t j = 0;
  for (; j + kVectors * lanes <= t.n; j += kVectors * lanes, c += kVectors * c_step) {
    Block<kRows, kVectors>(d, t, i, j, c, c_step);
  }
  for (; j + 2 * lanes <= t.n; j += 2 * lanes, c += 2 * c_step) {
    Block<kRows, 2>(d, t, i, j, c, c_step);
  }
  for (; j + lanes <= t.n; j += lanes, c += c_step) Block<kRows, 1>(d, t, i, j, c, c_step);
  for (; j < t.n; ++j, ++c) Block<kRows, 1>(d1, t, i, j, c, 1);
}

void MultiplyOfTarget(const MatMulTile& t) {
  std::int64_t i = 0;
  for (; i + 6 <= t.m; i += 6) Rows<6>(t, i);
  for (; i < t.m; ++i) Rows<1>(t, i);
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(MultiplyOfTarget);

void Multiply(const MatMulTile& tile) { HWY_DYNAMIC_DISPATCH(MultiplyOfTarget)(tile); }

}  // namespace tessera
#endif  // HWY_ONCE
