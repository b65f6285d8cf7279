// Dot products along the input, for few output channels.
#include "ops/quantized/quantized_dots.h"

#include <algorithm>
#include <cstring>

#include "ops/error.h"
#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_dots.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantized/quantized_epilogue-inl.h"
#include "simd/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void RunDotsOfTarget(const QuantizedDots&, const QuantizedPixels&) {}  // does not apply

#else

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<std::int32_t>;
using V = hn::Vec<D>;

// Sums that are kept in registers, and pixels whose sums are kept in memory.
constexpr int kMaxSums = HWY_TARGET == HWY_AVX3 ? 16 : 8;
constexpr std::int64_t kChunkPixels = 128;

// The sums of the lanes of four vectors.
HWY_INLINE hn::Vec<hn::FixedTag<std::int32_t, 4> > SumsOfLanes(D d, V a, V b, V c, V e) {
  const hn::Repartition<std::int64_t, D> d64;
  const auto add_pairs = [&](V x, V y) HWY_ATTR {
    return hn::Add(hn::InterleaveLower(d, x, y), hn::InterleaveUpper(d, x, y));
  };
  const auto ab = hn::BitCast(d64, add_pairs(a, b)), ce = hn::BitCast(d64, add_pairs(c, e));
  const V blocks = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, ab, ce)),
                           hn::BitCast(d, hn::InterleaveUpper(d64, ab, ce)));
#if HWY_TARGET == HWY_AVX3
  const hn::Half<D> half;
  const hn::Half<decltype(half)> quarter;
  const auto two = hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks));
  return hn::Add(hn::LowerHalf(quarter, two), hn::UpperHalf(quarter, two));
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<D> half;
  return hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks));
#else
  return blocks;
#endif
}

// Sums of kPixels pixels, [pixel][channel], without bias.
template <bool kVnni, int kChannels, int kPixels>
void SumPixels(const QuantizedDots& dots, const std::uint8_t* in, std::int64_t stride,
               const std::ptrdiff_t* places, std::int32_t* out) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr int kSums = (kPixels * kChannels + 3) / 4 * 4;
  V sums[kSums];
  HWY_UNROLL(16) for (int i = 0; i < kSums; ++i) sums[i] = hn::Zero(d);
  const auto* weights = dots.weights->As<const std::int32_t>();
  const auto load = [&](const std::uint8_t* at) HWY_ATTR {
    return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, D>(), at));
  };
  for (std::int64_t i = 0; i < dots.num_places; ++i, weights += kChannels * lanes) {
    const std::uint8_t* const at = in + places[i];
    V w[kChannels];
    HWY_UNROLL(4) for (int c = 0; c < kChannels; ++c) w[c] = hn::Load(d, weights + c * lanes);
    HWY_UNROLL(16) for (int p = 0; p < kPixels; ++p) {
      const V x = load(at + p * stride);
      HWY_UNROLL(4) for (int c = 0; c < kChannels; ++c) {
        sums[p * kChannels + c] = DotBytes<kVnni>(d, sums[p * kChannels + c], x, w[c]);
      }
    }
  }
  HWY_UNROLL(4) for (int i = 0; i < kSums; i += 4) {
    hn::StoreU(SumsOfLanes(d, sums[i], sums[i + 1], sums[i + 2], sums[i + 3]),
               hn::FixedTag<std::int32_t, 4>(), out + i);
  }
}

// sums[channel][pixel] of `count` pixels, bias included.
template <bool kVnni, int kChannels>
void SumRow(const QuantizedDots& dots, const QuantizedPixels& row, std::int64_t first,
            std::int64_t count, std::int32_t (*sums)[kChunkPixels]) {
  constexpr int kPixels = kMaxSums / kChannels;
  alignas(16) std::int32_t block[kMaxSums + 4];
  for (std::int64_t x = 0; x < count;) {
    // The last block repeats pixels rather than to have fewer.
    const bool whole = count >= kPixels;
    if (whole) x = std::min(x, count - kPixels);
    const std::uint8_t* in = row.in + (first + x) * row.in_stride;
    if (whole) {
      SumPixels<kVnni, kChannels, kPixels>(dots, in, row.in_stride, row.segments, block);
    } else {
      SumPixels<kVnni, kChannels, 1>(dots, in, row.in_stride, row.segments, block);
    }
    const int pixels = whole ? kPixels : 1;
    for (int c = 0; c < kChannels; ++c) {
      const std::int32_t bias = dots.epilogue.Bias()[c];
      for (int p = 0; p < pixels; ++p) {
        sums[c][x + p] =
            static_cast<std::int32_t>(static_cast<std::uint32_t>(bias) +
                                      static_cast<std::uint32_t>(block[p * kChannels + c]));
      }
    }
    x += pixels;
  }
}

// A channel of pixels [first, first + count).
template <QuantizedForm kForm>
void StorePixels(const QuantizedDots& dots, const QuantizedPixels& row, std::int64_t channel,
                 std::int64_t first, std::int64_t count, const std::int32_t* sums) {
  const D d;
  const hn::Rebind<float, D> df;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const QuantizedOutput<kForm> output(dots.epilogue);
  const auto positive = hn::Set(df, dots.epilogue.Positive()[channel]);
  const auto negative = hn::Set(df, dots.epilogue.Negative()[channel]);
  HWY_ALIGN std::int32_t addend[16] = {};
  HWY_ALIGN float floats[16];
  HWY_ALIGN std::uint8_t bytes[16];
  for (std::int64_t x = 0; x < count; x += lanes) {
    const std::int64_t n = std::min(lanes, count - x);
    for (std::int64_t i = 0; i < n && row.addend != nullptr; ++i) {
      addend[i] = row.addend[(first + x + i) * row.addend_stride + channel];
    }
    const V sum = hn::LoadU(d, sums + x), added = hn::Load(d, addend);
    if (dots.store == QuantizedStore::kPlanes) {
      if constexpr (kForm == QuantizedForm::kGeneral) {
        hn::Store(output.Real(d, sum, positive, negative, added), df, floats);
      }
      std::memcpy(static_cast<float*>(row.out) + channel * row.plane_stride + first + x, floats,
                  static_cast<std::size_t>(n) * sizeof(float));
      continue;
    }
    output.Store(d, output.Round(d, sum, positive, negative, added), bytes);
    for (std::int64_t i = 0; i < n; ++i) {
      static_cast<std::uint8_t*>(row.out)[(first + x + i) * row.out_stride + channel] = bytes[i];
    }
  }
}

template <bool kVnni>
void RunDots(const QuantizedDots& dots, const QuantizedPixels& row) {
  HWY_ALIGN std::int32_t sums[kMaxDotChannels][kChunkPixels];
  const auto sum = dots.channels == 1   ? SumRow<kVnni, 1>
                   : dots.channels == 2 ? SumRow<kVnni, 2>
                   : dots.channels == 3 ? SumRow<kVnni, 3>
                                        : SumRow<kVnni, 4>;
  const auto store =
      WithForm(dots.epilogue, [](auto form) { return &StorePixels<decltype(form)::value>; });
  for (std::int64_t first = 0; first < row.count; first += kChunkPixels) {
    const std::int64_t count = std::min(kChunkPixels, row.count - first);
    sum(dots, row, first, count, sums);
    for (std::int64_t c = 0; c < dots.channels; ++c) store(dots, row, c, first, count, sums[c]);
  }
}

void RunDotsOfTarget(const QuantizedDots& dots, const QuantizedPixels& pixels) {
  if constexpr (kTargetHasVnni) {
    if (dots.vnni) return ForRows(RunDots<true>, dots, pixels);
  }
  ForRows(RunDots<false>, dots, pixels);
}

#endif  // HWY_SCALAR

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunDotsOfTarget);

AlignedBuffer PackDotWeights(const QuantizedDots& dots, const QuantizedSegments& segments,
                             const Tensor& weights) {
  const std::int64_t vector = 4 * dots.lanes;
  AlignedBuffer packed(static_cast<std::size_t>(dots.num_places * dots.channels * vector));
  auto* out = packed.As<std::int8_t>();
  for (std::int64_t s = 0; s < segments.count; ++s) {
    for (std::size_t i = 0; i < dots.places.size(); ++i) {
      for (std::int64_t c = 0; c < dots.channels; ++c) {
        for (std::int64_t b = dots.places[i]; b < dots.places[i] + vector; ++b) {
          const bool is_shared = b < static_cast<std::int64_t>(i) * vector;
          *out++ = is_shared ? std::int8_t{0} : segments.Weight(weights, c, s, b);
        }
      }
    }
  }
  return packed;
}

}  // namespace

QuantizedDots::QuantizedDots(const QuantizedConvParams& params,
                             const QuantizedConvConstants& constants, QuantizedStore store_as,
                             const QuantizedSegments& segments, PackCache& packs)
    : channels(params.conv.out_channels),
      lanes(FloatLanes()),
      vnni(HasVnni()),
      store(store_as),
      epilogue(params, constants, kMaxDotChannels) {
  const std::int64_t bytes = segments.quads * 4, vector = 4 * lanes;
  for (std::int64_t at = 0; at < bytes; at += vector)
    places.push_back(std::min(at, bytes - vector));
  num_places = segments.count * static_cast<std::int64_t>(places.size());
  weights = packs.Get<AlignedBuffer>(
      constants.weights, StrCat("quantized_dots ", lanes, ' ', segments.count, ' ', segments.quads),
      [&] { return PackDotWeights(*this, segments, *constants.weights); });
}

bool QuantizedDots::Applies(const QuantizedConvParams& params, QuantizedStore store,
                            const QuantizedSegments& segments) {
  const bool stores = store == QuantizedStore::kFewBytes || store == QuantizedStore::kPlanes;
  return stores && params.conv.out_channels <= kMaxDotChannels && FloatLanes() >= 4 &&
         segments.quads >= FloatLanes();
}

void RunQuantizedPixels(const QuantizedDots& dots, const QuantizedPixels& pixels) {
  HWY_DYNAMIC_DISPATCH(RunDotsOfTarget)(dots, pixels);
}

}  // namespace tessera
#endif  // HWY_ONCE
