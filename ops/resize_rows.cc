#include "ops/resize_rows.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/resize_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The order of the sum is the same for every tag: a pixel does not depend on its place in a row.
template <class D>
HWY_INLINE void BlendRowsAt(D d, const float* const* rows, const float* weights, int count,
                            float* out, std::size_t i) {
  auto sum = hn::Mul(hn::Set(d, weights[0]), hn::LoadU(d, rows[0] + i));
  for (int k = 1; k < count; ++k) {
    sum = hn::MulAdd(hn::Set(d, weights[k]), hn::LoadU(d, rows[k] + i), sum);
  }
  hn::StoreU(sum, d, out + i);
}

void BlendRowsOfTarget(const float* const* rows, const float* weights, int count, float* out,
                       std::int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const std::size_t lanes = hn::Lanes(d), size = static_cast<std::size_t>(n);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) BlendRowsAt(d, rows, weights, count, out, i);
  for (; i < size; ++i) BlendRowsAt(d1, rows, weights, count, out, i);
}

template <class D>
HWY_INLINE void BlendColumnsAt(D d, const float* in, const std::int32_t* first,
                               const float* weights, int count, float* out, std::size_t n,
                               std::size_t i) {
  const hn::RebindToSigned<D> di;
  const auto index = hn::LoadU(di, first + i);
  auto sum = hn::Mul(hn::LoadU(d, weights + i), hn::GatherIndex(d, in, index));
  for (int k = 1; k < count; ++k) {
    const auto w = hn::LoadU(d, weights + static_cast<std::size_t>(k) * n + i);
    sum = hn::MulAdd(w, hn::GatherIndex(d, in + k, index), sum);
  }
  hn::StoreU(sum, d, out + i);
}

void BlendColumnsOfTarget(const float* in, const std::int32_t* first, const float* weights,
                          int count, float* out, std::int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const std::size_t lanes = hn::Lanes(d), size = static_cast<std::size_t>(n);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    BlendColumnsAt(d, in, first, weights, count, out, size, i);
  }
  for (; i < size; ++i) BlendColumnsAt(d1, in, first, weights, count, out, size, i);
}

template <class D>
HWY_INLINE void BlendHalvedColumnsAt(D d, const float* in, const float* weights, int count,
                                     float* out, std::size_t n, std::size_t i) {
  auto sum = hn::Zero(d);
  for (int k = 0; k < count; k += 2) {
    hn::Vec<D> even, odd;
    hn::LoadInterleaved2(d, in + 2 * i + static_cast<std::size_t>(k), even, odd);
    const float* w = weights + static_cast<std::size_t>(k) * n + i;
    sum = hn::MulAdd(hn::LoadU(d, w), even, sum);
    if (k + 1 < count) sum = hn::MulAdd(hn::LoadU(d, w + n), odd, sum);
  }
  hn::StoreU(sum, d, out + i);
}

void BlendHalvedColumnsOfTarget(const float* in, const float* weights, int count, float* out,
                                std::int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const std::size_t lanes = hn::Lanes(d), size = static_cast<std::size_t>(n);
  std::size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    BlendHalvedColumnsAt(d, in, weights, count, out, size, i);
  }
  for (; i < size; ++i) BlendHalvedColumnsAt(d1, in, weights, count, out, size, i);
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(BlendRowsOfTarget);
HWY_EXPORT(BlendColumnsOfTarget);
HWY_EXPORT(BlendHalvedColumnsOfTarget);

void BlendRows(const float* const* rows, const float* weights, int count, float* out,
               std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(BlendRowsOfTarget)(rows, weights, count, out, n);
}

void BlendColumns(const float* in, const std::int32_t* first, const float* weights, int count,
                  float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(BlendColumnsOfTarget)(in, first, weights, count, out, n);
}

void BlendHalvedColumns(const float* in, const float* weights, int count, float* out,
                        std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(BlendHalvedColumnsOfTarget)(in, weights, count, out, n);
}

}  // namespace tessera
#endif  // HWY_ONCE
