#include "pipeline/tracking/crop_rows.h"

#include <cstddef>
#include <cstring>

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

void ScaleRow(const CropTaps& taps, const std::uint8_t* row, std::int16_t* scaled) {
  for (std::int64_t block = 0; block < taps.columns / 2; ++block) {
    const std::ptrdiff_t* offset = taps.offsets + 2 * block;
    std::uint8_t levels[16];
    std::memcpy(levels, row + offset[0], 16);
    if (taps.apart) std::memcpy(levels + 8, row + offset[1], 8);
    std::int16_t* to = scaled + 4 * block;
    for (std::int64_t i = 0; i < 8; ++i) {
      const auto level = [&](std::uint8_t place) { return place < 16 ? levels[place] : 0; };
      const std::int64_t at = 8 * block + i;
      const int far = level(taps.places[2 * at]), near = level(taps.places[2 * at + 1]);
      to[i < 4 ? i : 2 * taps.columns + i - 4] =
          static_cast<std::int16_t>(128 * near + (((near - far) * taps.weights[at]) >> 9));
    }
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

template <bool kApart, class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const std::uint8_t* row, const std::ptrdiff_t* offset) {
  const hn::Half<D> half;
  constexpr std::size_t kBlocks = hn::MaxLanes(d) / 16;
  if constexpr (kBlocks > 1) {
    return hn::Combine(d, LoadBlocks<kApart>(half, row, offset + kBlocks),
                       LoadBlocks<kApart>(half, row, offset));
  } else if constexpr (kApart) {
    return hn::Combine(d, hn::LoadU(half, row + offset[1]), hn::LoadU(half, row + offset[0]));
  } else {
    return hn::LoadU(d, row + offset[0]);
  }
}

template <bool kApart>
void ScaleBlocks(const CropTaps taps, const std::uint8_t* row, std::int16_t* scaled) {
  const D16 d;
  const D8 d8;
  const hn::Repartition<std::uint16_t, D16> du;
  const hn::Repartition<std::int64_t, D16> d64;
  // Value i and those after it. The high half of the product is what the far level adds to 128
  // times the near one, rounded down.
  const auto levels = hn::Set(du, std::uint16_t{255 << 7});
  const auto scale = [&](std::int64_t i) HWY_ATTR {
    const auto block = LoadBlocks<kApart>(d8, row, taps.offsets + i / 4);
    const auto pairs =
        hn::BitCast(du, hn::TableLookupBytesOr0(block, hn::Load(d8, taps.places + 2 * i)));
    const auto near = hn::BitCast(d, hn::And(hn::ShiftRight<1>(pairs), levels));
    const auto far = hn::BitCast(d, hn::And(hn::ShiftLeft<7>(pairs), levels));
    const auto weight = hn::Load(d, taps.weights + i);
    return hn::BitCast(d64, hn::Add(near, hn::MulHigh(hn::Sub(near, far), weight)));
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int16_t* red = scaled + 2 * taps.columns;
  for (std::int64_t i = 0; i < 4 * taps.columns; i += 2 * lanes) {
    const auto first = scale(i), second = scale(i + lanes);
    hn::Store(hn::BitCast(d, hn::ConcatEven(d64, second, first)), d, scaled + i / 2);
    hn::Store(hn::BitCast(d, hn::ConcatOdd(d64, second, first)), d, red + i / 2);
  }
}

void ScaleRow(const CropTaps& taps, const std::uint8_t* row, std::int16_t* scaled) {
  if (taps.apart) {
    ScaleBlocks<true>(taps, row, scaled);
  } else {
    ScaleBlocks<false>(taps, row, scaled);
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

void ScaleCropRow(const CropTaps& taps, const std::uint8_t* row, std::int16_t* scaled) {
  HWY_DYNAMIC_DISPATCH(ScaleRow)(taps, row, scaled);
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
