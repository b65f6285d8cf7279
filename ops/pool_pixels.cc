#include "ops/pool_pixels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/pool_pixels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Channels of whole vectors; d's lanes divide the pixel stride.
template <class D>
void MaxOfWindows(D d, const PixelPoolRow& row) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t row_step = row.row_dilation * row.row_stride;
  const std::int64_t column_step = row.column_dilation * row.pixel_stride;
  const std::uint8_t* first_row = row.in + row.rows.first * row.row_stride;
  for (std::int64_t x = 0; x < row.width; ++x) {
    const PoolTaps& columns = row.columns[x];
    for (std::int64_t c = 0; c < row.pixel_stride; c += lanes) {
      const std::uint8_t* from = first_row + columns.first * row.pixel_stride + c;
      auto value = hn::Zero(d);
      for (std::int32_t i = 0; i < row.rows.count; ++i, from += row_step) {
        for (std::int32_t j = 0; j < columns.count; ++j) {
          value = hn::Max(value, hn::LoadU(d, from + j * column_step));
        }
      }
      hn::StoreU(value, d, row.out + x * row.pixel_stride + c);
    }
  }
}

void MaxPoolPixelsOfTarget(const PixelPoolRow& row) {
  if (row.pixel_stride % 32 == 0) return MaxOfWindows(hn::CappedTag<std::uint8_t, 32>(), row);
  if (row.pixel_stride % 16 == 0) return MaxOfWindows(hn::CappedTag<std::uint8_t, 16>(), row);
  MaxOfWindows(hn::CappedTag<std::uint8_t, 4>(), row);
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(MaxPoolPixelsOfTarget);

void MaxPoolPixels(const PixelPoolRow& row) { HWY_DYNAMIC_DISPATCH(MaxPoolPixelsOfTarget)(row); }

}  // namespace tessera
#endif  // HWY_ONCE
