#include "pipeline/tracking/crop_rows.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/tracking/crop_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

void ScaleRow(const CropTaps& taps, std::int16_t* scaled) {
  for (std::int64_t place = 0; place < taps.columns; ++place) {
    const std::uint8_t* left = taps.pairs + 8 * place;
    const std::int64_t left_weight = place / 2 * 8 + place % 2 * 2;
    const std::int64_t right_weight = left_weight + 4 * taps.columns;
    const int a = 32 * taps.high[left_weight] + taps.low[left_weight];
    const int b = 32 * taps.high[right_weight] + taps.low[right_weight];
    const auto scale = [&](int channel) {
      return static_cast<std::int16_t>((left[channel] * a + left[channel + 3] * b) >> 4);
    };
    std::int16_t* to = scaled + 2 * CropColumn(place, taps.columns);
    to[0] = scale(0);
    to[1] = scale(1);
    to[2 * taps.columns] = scale(2);
    to[2 * taps.columns + 1] = 0;
  }
}

void BlendRows(const std::int16_t* above, const std::int16_t* below, int weight_above,
               int weight_below, std::int64_t columns, std::int64_t count,
               const CropPlanes& planes) {
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const std::int64_t first = channel == 2 ? 2 * columns : static_cast<std::int64_t>(channel);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t at = first + 2 * i;
      const int level =
          (((weight_above * above[at]) >> 16) + ((weight_below * below[at]) >> 16) + 2) >> 2;
      planes.row[channel][i] =
          (static_cast<float>(level) - planes.mean[channel]) * planes.factor[channel];
    }
  }
}

// How much of a row SumRow takes.
std::int64_t SumRow(const std::uint8_t*, std::int64_t, std::array<std::uint64_t, 3>&) { return 0; }

#else

using D16 = hn::ScalableTag<std::int16_t>;
using D8 = hn::Repartition<std::uint8_t, D16>;

void ScaleRow(const CropTaps& taps, std::int16_t* scaled) {
  const D16 d;
  const D8 d8;
  const hn::Repartition<std::int64_t, D16> d64;
  constexpr std::uint8_t kNone = 0x80;
  // B and G of two columns, then their R, to 16 bits.
  HWY_ALIGN static constexpr std::uint8_t kLeft[16] = {
      0, kNone, 1, kNone, 8, kNone, 9, kNone, 2, kNone, kNone, kNone, 10, kNone, kNone, kNone};
  HWY_ALIGN static constexpr std::uint8_t kRight[16] = {
      3, kNone, 4, kNone, 11, kNone, 12, kNone, 5, kNone, kNone, kNone, 13, kNone, kNone, kNone};
  const auto left = hn::LoadDup128(d8, kLeft), right = hn::LoadDup128(d8, kRight);
  const std::int64_t half = 2 * taps.columns;  // values of half the columns
  const auto scale = [&](std::int64_t i) HWY_ATTR {
    const auto pixels = hn::Load(d8, taps.pairs + 2 * i);
    const auto a = hn::BitCast(d, hn::TableLookupBytesOr0(pixels, left));
    const auto b = hn::BitCast(d, hn::TableLookupBytesOr0(pixels, right));
    const std::int64_t j = i + 2 * half;
    const auto high =
        hn::Add(hn::Mul(a, hn::Load(d, taps.high + i)), hn::Mul(b, hn::Load(d, taps.high + j)));
    const auto low =
        hn::Add(hn::Mul(a, hn::Load(d, taps.low + i)), hn::Mul(b, hn::Load(d, taps.low + j)));
    return hn::BitCast(d64, hn::Add(hn::Add(high, high), hn::ShiftRight<4>(low)));
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i < half; i += lanes) {
    const auto first = scale(i), second = scale(i + half);
    hn::Store(hn::BitCast(d, hn::InterleaveLower(d64, first, second)), d, scaled + i);
    hn::Store(hn::BitCast(d, hn::InterleaveUpper(d64, first, second)), d, scaled + i + half);
  }
}

void BlendRows(const std::int16_t* above, const std::int16_t* below, int weight_above,
               int weight_below, std::int64_t columns, std::int64_t count,
               const CropPlanes& planes) {
  const D16 d;
  const hn::Repartition<std::uint32_t, D16> d32;
  const hn::Repartition<float, D16> df;
  const hn::RebindToSigned<decltype(d32)> di;
  static_assert(kCropGroup % hn::MaxLanes(df) == 0);
  const auto above_weight = hn::Set(d, static_cast<std::int16_t>(weight_above));
  const auto below_weight = hn::Set(d, static_cast<std::int16_t>(weight_below));
  const auto two = hn::Set(d, std::int16_t{2});
  const auto blend = [&](std::int64_t i) HWY_ATTR {
    const auto sum = hn::Add(hn::MulHigh(hn::Load(d, above + i), above_weight),
                             hn::MulHigh(hn::Load(d, below + i), below_weight));
    return hn::BitCast(d32, hn::ShiftRight<2>(hn::Add(sum, two)));
  };
  const auto mean_b = hn::Set(df, planes.mean[0]), factor_b = hn::Set(df, planes.factor[0]);
  const auto mean_g = hn::Set(df, planes.mean[1]), factor_g = hn::Set(df, planes.factor[1]);
  const auto mean_r = hn::Set(df, planes.mean[2]), factor_r = hn::Set(df, planes.factor[2]);
  const auto convert = [&](auto level, auto mean, auto factor) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::ConvertTo(df, hn::BitCast(di, level)), mean), factor);
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(df));
  for (std::int64_t i = 0; i < count; i += lanes) {
    const auto bg = blend(2 * i), r = blend(2 * (columns + i));
    const auto b = hn::And(bg, hn::Set(d32, 0xFFFFu));
    hn::StoreU(convert(b, mean_b, factor_b), df, planes.row[0] + i);
    hn::StoreU(convert(hn::ShiftRight<16>(bg), mean_g, factor_g), df, planes.row[1] + i);
    hn::StoreU(convert(r, mean_r, factor_r), df, planes.row[2] + i);
  }
}

// How much of a row SumRow takes.
std::int64_t SumRow(const std::uint8_t* row, std::int64_t width,
                    std::array<std::uint64_t, 3>& sums) {
  const hn::ScalableTag<std::uint8_t> d;
  const hn::Repartition<std::uint64_t, decltype(d)> d64;
  auto sum_b = hn::Zero(d64), sum_g = sum_b, sum_r = sum_b;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    hn::Vec<decltype(d)> b, g, r;
    hn::LoadInterleaved3(d, row + 3 * i, b, g, r);
    sum_b = hn::Add(sum_b, hn::SumsOf8(b));
    sum_g = hn::Add(sum_g, hn::SumsOf8(g));
    sum_r = hn::Add(sum_r, hn::SumsOf8(r));
  }
  sums[0] += hn::GetLane(hn::SumOfLanes(d64, sum_b));
  sums[1] += hn::GetLane(hn::SumOfLanes(d64, sum_g));
  sums[2] += hn::GetLane(hn::SumOfLanes(d64, sum_r));
  return i;
}

#endif

}  // namespace
}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(ScaleRow);
HWY_EXPORT(BlendRows);
HWY_EXPORT(SumRow);

}  // namespace

void ScaleCropRow(const CropTaps& taps, std::int16_t* scaled) {
  HWY_DYNAMIC_DISPATCH(ScaleRow)(taps, scaled);
}

void BlendCropRows(const std::int16_t* above, const std::int16_t* below, int weight_above,
                   int weight_below, std::int64_t columns, std::int64_t count,
                   const CropPlanes& planes) {
  HWY_DYNAMIC_DISPATCH(BlendRows)
  (above, below, weight_above, weight_below, columns, count, planes);
}

void AddRow(const std::uint8_t* row, std::int64_t width, std::array<std::uint64_t, 3>& sums) {
  std::int64_t x = HWY_DYNAMIC_DISPATCH(SumRow)(row, width, sums);
  for (; x < width; ++x)
    for (std::size_t c = 0; c < 3; ++c) sums[c] += row[3 * static_cast<std::size_t>(x) + c];
}

}  // namespace tessera
#endif  // HWY_ONCE
