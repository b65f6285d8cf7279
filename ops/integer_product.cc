#include "ops/integer_product.h"

#include <algorithm>
#include <cstring>

#include "ops/elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/integer_product.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void MultiplyIntegersOfTarget(const IntegerProduct& p) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    std::int32_t* to = p.c + i * p.c_row_stride;
    std::fill_n(to, p.n, 0);
    for (std::int64_t l = 0; l < p.k; l += 2) {
      const std::int32_t even = p.a[i * p.a_row_stride + l], odd = p.a[i * p.a_row_stride + l + 1];
      const std::int16_t* b = p.b + l / 2 * p.b_pair_stride;
      for (std::int64_t j = 0; j < p.n; ++j) {
        to[j] = static_cast<std::int32_t>(static_cast<std::uint32_t>(to[j]) +
                                          static_cast<std::uint32_t>(even * b[2 * j]) +
                                          static_cast<std::uint32_t>(odd * b[2 * j + 1]));
      }
    }
  }
}

#else  // there are vectors

namespace hn = hwy::HWY_NAMESPACE;

// kRows x kVectors sums stay in registers over the whole of k.
template <int kRows, int kVectors, class D>
HWY_INLINE void SumBlock(D d, const IntegerProduct& p, std::int64_t i, std::int64_t j) {
  const hn::Repartition<std::int16_t, D> d16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // Targets differ in how they spread the sum of a lane over these two.
  hn::Vec<D> sums[kRows][kVectors], more[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = more[r][v] = hn::Zero(d);
  }
  const std::int16_t* a = p.a + i * p.a_row_stride;
  const std::int16_t* b = p.b + 2 * j;
  for (std::int64_t l = 0; l < p.k; l += 2, a += 2, b += p.b_pair_stride) {
    hn::Vec<decltype(d16)> row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(d16, b + 2 * v * lanes);
    for (int r = 0; r < kRows; ++r) {
      std::int32_t pair;
      std::memcpy(&pair, a + r * p.a_row_stride, sizeof pair);
      const auto factors = hn::BitCast(d16, hn::Set(d, pair));
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::ReorderWidenMulAccumulate(d, factors, row[v], sums[r][v], more[r][v]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    std::int32_t* to = p.c + (i + r) * p.c_row_stride + j;
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(hn::RearrangeToOddPlusEven(sums[r][v], more[r][v]), d, to + v * lanes);
    }
  }
}

// A single row takes many columns at once, to hide the latency of multiply-adds.
template <int kRows>
HWY_INLINE void SumRows(const IntegerProduct& p, std::int64_t i) {
  constexpr int kVectors = kRows == 1 ? 8 : 2;
  const hn::ScalableTag<std::int32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + kVectors * lanes <= p.n; j += kVectors * lanes) SumBlock<kRows, kVectors>(d, p, i, j);
  for (; j + lanes <= p.n; j += lanes) SumBlock<kRows, 1>(d, p, i, j);
  for (; j < p.n; ++j) SumBlock<kRows, 1>(hn::CappedTag<std::int32_t, 1>(), p, i, j);
}

void MultiplyIntegersOfTarget(const IntegerProduct& p) {
  std::int64_t i = 0;
  for (; i + 6 <= p.m; i += 6) SumRows<6>(p, i);
  for (; i < p.m; ++i) SumRows<1>(p, i);
}

#endif

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(MultiplyIntegersOfTarget);

std::int64_t ProductColumns(std::int64_t depth) {
  constexpr std::int64_t kCacheElements = std::int64_t{256} * 1024 / sizeof(std::int16_t);
  return std::clamp<std::int64_t>(kCacheElements / std::max<std::int64_t>(1, depth) / 32 * 32, 32,
                                  512);
}

void MultiplyIntegers(const IntegerProduct& product) {
  HWY_DYNAMIC_DISPATCH(MultiplyIntegersOfTarget)(product);
}

void PackRow(const void* in, DType type, std::int32_t zero_point, std::int64_t n,
             std::int16_t* out) {
  Dispatch(type, TypeList<std::int8_t, std::uint8_t>(), [&](auto tag) {
    const auto* from = static_cast<const typename decltype(tag)::type*>(in);
    const auto zero = static_cast<std::int16_t>(zero_point);
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<std::int16_t>(from[i] - zero);
  });
  if (n % 2 != 0) out[n] = 0;
}

void InterleaveRows(const std::int16_t* even, const std::int16_t* odd, std::int64_t n,
                    std::int16_t* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    out[2 * i] = even[i];
    out[2 * i + 1] = odd[i];
  }
}

}  // namespace tessera
#endif  // HWY_ONCE
