#include "ops/pool_rows.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pool_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Folds the pixels of each window with `fold`, and finishes with `finish` (divisor).
template <class Fold, class Finish>
HWY_INLINE void PoolRow(const BlockedPoolRow& row, float start, const Fold& fold,
                        const Finish& finish) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t row_step = row.row_dilation * row.row_stride;
  const std::int64_t column_step = row.column_dilation * lanes;
  const float* first_row = row.in + row.rows.first * row.row_stride;
  for (std::int64_t x = 0; x < row.width; ++x) {
    const PoolTaps& columns = row.columns[x];
    V value = hn::Set(d, start);
    const float* from = first_row + columns.first * lanes;
    for (std::int32_t i = 0; i < row.rows.count; ++i, from += row_step) {
      for (std::int32_t j = 0; j < columns.count; ++j) {
        value = fold(value, hn::LoadU(d, from + j * column_step));
      }
    }
    hn::StoreU(finish(value, row.rows.divisor * columns.divisor), d, row.out + x * lanes);
  }
}

void AveragePoolRowOfTarget(const BlockedPoolRow& row) {
  const D d;
  PoolRow(
      row, 0.f, [](V a, V b) HWY_ATTR { return hn::Add(a, b); },
      [d](V sum, float divisor) HWY_ATTR { return hn::Div(sum, hn::Set(d, divisor)); });
}

void MaxPoolRowOfTarget(const BlockedPoolRow& row) {
  PoolRow(
      row, -std::numeric_limits<float>::infinity(), [](V a, V b) HWY_ATTR { return hn::Max(a, b); },
      [](V value, float) HWY_ATTR { return value; });
}

void AveragePlaneOfTarget(const float* in, std::int64_t row_stride, std::int64_t height,
                          std::int64_t width, float* out) {
  // Sums of pieces, so that the error grows with neither the width nor the height of the plane.
  constexpr std::int64_t kPiece = 256;
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V total = hn::Zero(d), lost = hn::Zero(d);
  for (std::int64_t y = 0; y < height; ++y) {
    const float* row = in + y * row_stride;
    for (std::int64_t x0 = 0; x0 < width; x0 += kPiece) {
      const std::int64_t x1 = x0 + kPiece < width ? x0 + kPiece : width;
      V sum = hn::Zero(d);
      for (std::int64_t x = x0; x < x1; ++x) sum = hn::Add(sum, hn::LoadU(d, row + x * lanes));
      // Kahan's summation of the pieces.
      const V corrected = hn::Sub(sum, lost);
      const V next = hn::Add(total, corrected);
      lost = hn::Sub(hn::Sub(next, total), corrected);
      total = next;
    }
  }
  const auto count = static_cast<float>(height * width);
  hn::StoreU(hn::Div(total, hn::Set(d, count)), d, out);
}

void MaxPlaneOfTarget(const float* in, std::int64_t row_stride, std::int64_t height,
                      std::int64_t width, float* out) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V value = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (std::int64_t y = 0; y < height; ++y) {
    const float* row = in + y * row_stride;
    for (std::int64_t x = 0; x < width; ++x) {
      const V next = hn::LoadU(d, row + x * lanes);
      value = hn::IfThenElse(hn::Or(hn::Gt(value, next), hn::IsNaN(value)), value, next);
    }
  }
  hn::StoreU(value, d, out);
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(AveragePoolRowOfTarget);
HWY_EXPORT(MaxPoolRowOfTarget);
HWY_EXPORT(AveragePlaneOfTarget);
HWY_EXPORT(MaxPlaneOfTarget);

void AveragePoolRow(const BlockedPoolRow& row) {
  HWY_DYNAMIC_DISPATCH(AveragePoolRowOfTarget)(row);
}
void MaxPoolRow(const BlockedPoolRow& row) { HWY_DYNAMIC_DISPATCH(MaxPoolRowOfTarget)(row); }
void AveragePlane(const float* in, std::int64_t row_stride, std::int64_t height, std::int64_t width,
                  float* out) {
  HWY_DYNAMIC_DISPATCH(AveragePlaneOfTarget)(in, row_stride, height, width, out);
}
void MaxPlane(const float* in, std::int64_t row_stride, std::int64_t height, std::int64_t width,
              float* out) {
  HWY_DYNAMIC_DISPATCH(MaxPlaneOfTarget)(in, row_stride, height, width, out);
}

}  // namespace tessera
#endif  // HWY_ONCE
