#include "ops/quantize_pixels.h"

#include <algorithm>

#include "ops/quantize.h"
#include "ops/reorder_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantize_pixels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;

#if HWY_TARGET != HWY_SCALAR
// Of a vector of each of up to 4 channels the pixels, 4 bytes each, of one vector; Quotient's.
template <std::size_t kChannels>
HWY_INLINE hn::Vec<DI> JoinChannels(const hn::Vec<DI> (&q)[kChannels]) {
#if HWY_TARGET == HWY_AVX3
  const auto channel = [&](std::size_t c) HWY_ATTR { return q[c < kChannels ? c : 0].raw; };
  // Packing leaves four bytes of each channel in each 128 bits.
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(channel(0), channel(1)),
                                            _mm512_packs_epi32(channel(2), channel(3)));
  return hn::Vec<DI>{_mm512_shuffle_epi8(bytes, order)};
#else
  hn::Vec<DI> pixel = q[0];
  if constexpr (kChannels > 1) pixel = hn::Or(pixel, hn::ShiftLeft<8>(q[1]));
  if constexpr (kChannels > 2) pixel = hn::Or(pixel, hn::ShiftLeft<16>(q[2]));
  if constexpr (kChannels > 3) pixel = hn::Or(pixel, hn::ShiftLeft<24>(q[3]));
  return pixel;
#endif
}
#endif

// Floats. Of short rows the next one is asked for: the caller wants it soon.
constexpr std::size_t kAhead = 256;

// Up to 4 channels.
template <std::size_t kChannels>
void QuantizeFewPlanes(const PixelRun& p, const float* planes, std::size_t plane_stride,
                       std::uint8_t* pixels) {
  std::size_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const hn::Repartition<std::uint8_t, D> d8;
  const Quotient<std::uint8_t, D> quotient(d, p.scale, p.zero_point);
  const std::size_t lanes = hn::Lanes(d);
  for (const std::size_t count = lanes <= p.count ? p.count : 0; x < count; x += lanes) {
    x = std::min(x, count - lanes);  // the last vector may repeat pixels
    hn::Vec<D> values[kChannels];
    hn::Vec<DI> q[kChannels];
    for (std::size_t c = 0; c < kChannels; ++c) {
      values[c] = hn::LoadU(d, planes + c * plane_stride + x);
      hwy::Prefetch(planes + c * plane_stride + x + kAhead);
    }
    quotient.Run(values, q);
    hn::StoreU(hn::BitCast(d8, JoinChannels(q)), d8, pixels + 4 * x);
  }
#endif
  for (; x < p.count; ++x) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      pixels[4 * x + c] =
          RoundAndSaturate<std::uint8_t>(planes[c * plane_stride + x] / p.scale, p.zero_point);
    }
  }
}

template <std::size_t kChannels>
void DequantizeFewPlanes(const PixelRun& p, const std::uint8_t* pixels, float* planes,
                         std::size_t plane_stride) {
  std::size_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const DI di;
  const hn::Repartition<std::uint8_t, D> d8;
  const auto scale = hn::Set(d, p.scale);
  const auto zero_point = hn::Set(di, p.zero_point), byte = hn::Set(di, 0xFF);
  const auto store = [&](hn::Vec<DI> q, std::size_t c) HWY_ATTR {
    const auto value = hn::ConvertTo(d, hn::Sub(hn::And(q, byte), zero_point));
    hn::StoreU(hn::Mul(value, scale), d, planes + c * plane_stride + x);
  };
  for (const std::size_t lanes = hn::Lanes(d); x + lanes <= p.count; x += lanes) {
    const auto pixel = hn::BitCast(di, hn::LoadU(d8, pixels + 4 * x));
    store(pixel, 0);
    if constexpr (kChannels > 1) store(hn::ShiftRight<8>(pixel), 1);
    if constexpr (kChannels > 2) store(hn::ShiftRight<16>(pixel), 2);
    if constexpr (kChannels > 3) store(hn::ShiftRight<24>(pixel), 3);
  }
#endif
  for (; x < p.count; ++x) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      const std::int32_t q = pixels[4 * x + c];
      planes[c * plane_stride + x] = static_cast<float>(q - p.zero_point) * p.scale;
    }
  }
}

// By the scale of all channels, or those of channels from `first`.
template <class DF>
Quotient<std::uint8_t, DF> QuotientOf(DF d, const PixelRun& p, std::size_t first) {
  const auto scale = p.scales == nullptr ? hn::Set(d, p.scale) : hn::LoadU(d, p.scales + first);
  return {d, scale, p.zero_point};
}

// As many channels of all pixels as d has lanes, `lanes` to a block's pixel.
template <class DF, class Rounding>
void QuantizeBlock(DF d, const Rounding& quotient, const PixelRun& p, const float* block,
                   std::size_t lanes, std::uint8_t* pixels) {
  const hn::Rebind<std::uint8_t, DF> d8;
  std::size_t x = 0;
  for (; x + 4 <= p.count; x += 4) {
    hn::Vec<DF> values[4];
    hn::Vec<hn::RebindToSigned<DF>> q[4];
    for (std::size_t i = 0; i < 4; ++i) values[i] = hn::LoadU(d, block + (x + i) * lanes);
    quotient.Run(values, q);
    for (std::size_t i = 0; i < 4; ++i) {
      hn::StoreU(hn::DemoteTo(d8, q[i]), d8, pixels + (x + i) * p.pixel_stride);
    }
  }
  for (; x < p.count; ++x) {
    quotient.Store(hn::LoadU(d, block + x * lanes), pixels + x * p.pixel_stride);
  }
}

template <class DF>
void DequantizeBlock(DF d, const PixelRun& p, const std::uint8_t* pixels, std::size_t lanes,
                     float* block) {
  const hn::Rebind<std::uint8_t, DF> d8;
  const hn::RebindToSigned<DF> di;
  const auto scale = hn::Set(d, p.scale);
  const auto zero_point = hn::Set(di, p.zero_point);
  for (std::size_t x = 0; x < p.count; ++x) {
    const auto q = hn::PromoteTo(di, hn::LoadU(d8, pixels + x * p.pixel_stride));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::Sub(q, zero_point)), scale), d, block + x * lanes);
  }
}

// A block is wider than a pixel of 4 bytes: then 4 of its lanes are enough.
void QuantizeAllBlocks(const PixelRun& p, const float* blocks, std::size_t block_stride,
                       std::uint8_t* pixels) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  if (lanes > p.pixel_stride) {
    const hn::CappedTag<float, 4> few;
    return QuantizeBlock(few, QuotientOf(few, p, 0), p, blocks, lanes, pixels);
  }
  auto quotient = QuotientOf(d, p, 0);
  for (std::size_t c = 0; c < p.channels; c += lanes) {
    if (c > 0 && p.scales != nullptr) quotient = QuotientOf(d, p, c);
    QuantizeBlock(d, quotient, p, blocks + c / lanes * block_stride, lanes, pixels + c);
  }
}

void DequantizeAllBlocks(const PixelRun& p, const std::uint8_t* pixels, float* blocks,
                         std::size_t block_stride) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  if (lanes > p.pixel_stride) {
    return DequantizeBlock(hn::CappedTag<float, 4>(), p, pixels, lanes, blocks);
  }
  for (std::size_t c = 0; c < p.channels; c += lanes) {
    DequantizeBlock(d, p, pixels + c, lanes, blocks + c / lanes * block_stride);
  }
}

void QuantizeUpTo4Planes(const PixelRun& p, const float* planes, std::size_t plane_stride,
                         std::uint8_t* pixels) {
  switch (p.channels) {
    case 1:
      return QuantizeFewPlanes<1>(p, planes, plane_stride, pixels);
    case 2:
      return QuantizeFewPlanes<2>(p, planes, plane_stride, pixels);
    case 3:
      return QuantizeFewPlanes<3>(p, planes, plane_stride, pixels);
    default:
      return QuantizeFewPlanes<4>(p, planes, plane_stride, pixels);
  }
}

void DequantizeToUpTo4Planes(const PixelRun& p, const std::uint8_t* pixels, float* planes,
                             std::size_t plane_stride) {
  switch (p.channels) {
    case 1:
      return DequantizeFewPlanes<1>(p, pixels, planes, plane_stride);
    case 2:
      return DequantizeFewPlanes<2>(p, pixels, planes, plane_stride);
    case 3:
      return DequantizeFewPlanes<3>(p, pixels, planes, plane_stride);
    default:
      return DequantizeFewPlanes<4>(p, pixels, planes, plane_stride);
  }
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(QuantizeUpTo4Planes);
HWY_EXPORT(DequantizeToUpTo4Planes);
HWY_EXPORT(QuantizeAllBlocks);
HWY_EXPORT(DequantizeAllBlocks);

// Squares of bytes between the rows of planes and pixels.
constexpr std::size_t kChannels = 16, kPixels = 256;

// Calls square(x, c, count, channels) for parts of at most kPixels pixels and kChannels channels.
template <class Square>
void ForSquares(const PixelRun& p, const Square& square) {
  for (std::size_t x = 0; x < p.count; x += kPixels) {
    for (std::size_t c = 0; c < p.channels; c += kChannels) {
      square(x, c, std::min(kPixels, p.count - x), std::min(kChannels, p.channels - c));
    }
  }
}

}  // namespace

void QuantizePlanes(const PixelRun& p, const float* planes, std::size_t plane_stride,
                    std::uint8_t* pixels) {
  if (p.channels <= 4 && p.scales == nullptr) {
    return HWY_DYNAMIC_DISPATCH(QuantizeUpTo4Planes)(p, planes, plane_stride, pixels);
  }
  ForSquares(p, [&](std::size_t x, std::size_t c, std::size_t count, std::size_t channels) {
    std::uint8_t rows[kChannels * kPixels];
    for (std::size_t i = 0; i < channels; ++i) {
      QuantizeRow(planes + (c + i) * plane_stride + x, p.ScaleOf(c + i), p.zero_point,
                  DType::kUint8, rows + i * kPixels, static_cast<std::int64_t>(count));
    }
    BytePlanesToPixels(rows, kPixels, channels, count, pixels + x * p.pixel_stride + c,
                       p.pixel_stride);
  });
}

void DequantizeToPlanes(const PixelRun& p, const std::uint8_t* pixels, float* planes,
                        std::size_t plane_stride) {
  if (p.channels <= 4) {
    return HWY_DYNAMIC_DISPATCH(DequantizeToUpTo4Planes)(p, pixels, planes, plane_stride);
  }
  ForSquares(p, [&](std::size_t x, std::size_t c, std::size_t count, std::size_t channels) {
    std::uint8_t rows[kChannels * kPixels];
    BytePixelsToPlanes(pixels + x * p.pixel_stride + c, p.pixel_stride, channels, count, rows,
                       kPixels);
    for (std::size_t i = 0; i < channels; ++i) {
      DequantizeRow(rows + i * kPixels, DType::kUint8, p.scale, p.zero_point,
                    planes + (c + i) * plane_stride + x, static_cast<std::int64_t>(count));
    }
  });
}

void QuantizeBlocks(const PixelRun& p, const float* blocks, std::size_t block_stride,
                    std::uint8_t* pixels) {
  HWY_DYNAMIC_DISPATCH(QuantizeAllBlocks)(p, blocks, block_stride, pixels);
}

void DequantizeToBlocks(const PixelRun& p, const std::uint8_t* pixels, float* blocks,
                        std::size_t block_stride) {
  HWY_DYNAMIC_DISPATCH(DequantizeAllBlocks)(p, pixels, blocks, block_stride);
}

}  // namespace tessera
#endif  // HWY_ONCE
