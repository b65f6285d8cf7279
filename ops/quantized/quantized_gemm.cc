// Products of pixels with packed weights: packing and dispatch.
#include "ops/quantized/quantized_gemm.h"

#include <algorithm>
#include <utility>

#include "ops/error.h"
#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_gemm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantized/quantized_gemm-inl.h"
#include "ops/quantized/quantized_gemm_amx-inl.h"
#include "ops/quantized/quantized_gemm_store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

// Pixels whose input stays in the cache from one group to the next.
constexpr std::int64_t kChunkPixels = 192;

// Pixels [first, first + pixels) of a group.
HWY_INLINE void RunTile(const QuantizedGemm& gemm, const QuantizedGroup& group,
                        const QuantizedPixels& row, std::int64_t first, int pixels, TileFn tile,
                        StoreFn store, std::int32_t* sums) {
  tile({
      .in = row.in + first * row.in_stride,
      .in_stride = row.in_stride,
      .segments = row.segments,
      .num_segments = gemm.segments.count,
      .segment_quads = gemm.segments.quads,
      .weights = gemm.weights->As<std::int8_t>() + group.weights,
      .bias = gemm.epilogue.Bias() + group.first_channel,
      .sums = sums,
  });
  store({gemm, group, row, first, pixels, sums});
}

template <bool kVnni>
void RunGroups(const QuantizedGemm& gemm, const QuantizedPixels& row) {
  HWY_ALIGN std::int32_t sums[kMaxTileVectors * kSumLanes];
  for (std::int64_t begin = 0; begin < row.count; begin += kChunkPixels) {
    const std::int64_t count = std::min(kChunkPixels, row.count - begin);
    for (const QuantizedGroup& group : gemm.groups) {
      const StoreFn store = FindStore(gemm, group.vectors);
      const std::int64_t most = kMaxTilePixels<kVnni>[static_cast<std::size_t>(group.vectors - 1)];
      const std::int64_t tiles = (count + most - 1) / most;
      for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t first = begin + t * count / tiles;
        const int pixels = static_cast<int>(begin + (t + 1) * count / tiles - first);
        RunTile(gemm, group, row, first, pixels, FindTile<kVnni>(pixels, group.vectors), store,
                sums);
      }
    }
  }
}

#if HWY_TARGET == HWY_AVX3
// While AmxTiles live.
void RunGroupsOnAmx(const QuantizedGemm& gemm, const QuantizedPixels& row) {
  HWY_ALIGN std::int32_t sums[2 * kAmxPixels * 4 * kSumLanes];
  for (std::int64_t begin = 0; begin < row.count; begin += kChunkPixels) {
    const std::int64_t end = std::min(begin + kChunkPixels, row.count);
    for (const QuantizedGroup& group : gemm.groups) {
      const StoreFn store = FindStore(gemm, group.vectors);
      const AmxTile tile = FindAmxTile(group.vectors, gemm.segments.quads, end - begin);
      for (std::int64_t x = begin; x < end; x += tile.pixels) {
        // The last tile repeats pixels rather than to have fewer.
        RunTile(gemm, group, row, std::min(x, row.count - tile.pixels), tile.pixels, tile.sum,
                store, sums);
      }
    }
  }
}
#endif

void RunGemmOfTarget(const QuantizedGemm& gemm, const QuantizedPixels& pixels) {
#if HWY_TARGET == HWY_AVX3
  if (gemm.amx && pixels.count >= kAmxPixels) {
    const AmxTiles tiles(gemm.segments.quads);
    return ForRows(RunGroupsOnAmx, gemm, pixels);
  }
#endif
  if constexpr (kTargetHasVnni) {
    if (gemm.vnni) return ForRows(RunGroups<true>, gemm, pixels);
  }
  ForRows(RunGroups<false>, gemm, pixels);
}

// Whether weights are packed as int16.
bool SplitsWeights(bool vnni) {
  return vnni ? kWeightsAreSplit<kTargetHasVnni> : kWeightsAreSplit<false>;
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunGemmOfTarget);
HWY_EXPORT(SplitsWeights);

std::int64_t PaddedChannels(const QuantizedConvParams& p) {
  return static_cast<std::int64_t>(RoundUp(static_cast<std::size_t>(p.conv.out_channels), 16));
}

// Channel of a lane of a group, from the group's first.
std::int64_t ChannelOfLane(const QuantizedGemm& gemm, const QuantizedGroup& group,
                           std::int64_t vector, std::int64_t lane) {
  const bool quads = gemm.store == QuantizedStore::kBytes && group.vectors == 4;
  return quads ? QuadOrder(gemm.lanes, vector, lane) : vector * gemm.lanes + lane;
}

// `elements`, one for each padded channel, in the order of the groups.
template <typename T>
void SortChannels(const QuantizedGemm& gemm, T* elements) {
  const std::vector<T> natural(elements, elements + gemm.padded_channels);
  for (const QuantizedGroup& group : gemm.groups) {
    for (std::int64_t v = 0; v < group.vectors; ++v) {
      for (std::int64_t lane = 0; lane < gemm.lanes; ++lane) {
        elements[group.first_channel + v * gemm.lanes + lane] = natural[static_cast<std::size_t>(
            group.first_channel + ChannelOfLane(gemm, group, v, lane))];
      }
    }
  }
}

AlignedBuffer PackWeights(const QuantizedGemm& gemm, const Tensor& weights, bool split) {
  const QuantizedSegments& segments = gemm.segments;
  const std::int64_t quads = segments.count * segments.quads;
  const std::int64_t bytes = gemm.padded_channels * quads * 4;
  AlignedBuffer packed(static_cast<std::size_t>(bytes) * (split ? 2 : 1));
  auto* bytes_out = packed.As<std::int8_t>();
  auto* words_out = packed.As<std::int16_t>();
  for (const QuantizedGroup& group : gemm.groups) {
    for (std::int64_t quad = 0; quad < quads; ++quad) {
      for (std::int64_t v = 0; v < group.vectors; ++v) {
        const auto weight = [&](std::int64_t lane, std::int64_t byte) {
          return segments.Weight(weights, group.first_channel + ChannelOfLane(gemm, group, v, lane),
                                 quad / segments.quads, quad % segments.quads * 4 + byte);
        };
        for (std::int64_t i = 0; i < 4 * gemm.lanes && !split; ++i) {
          *bytes_out++ = weight(i / 4, i % 4);
        }
        for (std::int64_t i = 0; i < 4 * gemm.lanes && split; ++i) {
          const std::int64_t odd = i / (2 * gemm.lanes);
          *words_out++ = weight(i / 2 % gemm.lanes, i % 2 * 2 + odd);
        }
      }
    }
  }
  return packed;
}

}  // namespace

QuantizedGemm::QuantizedGemm(const QuantizedConvParams& params,
                             const QuantizedConvConstants& constants, QuantizedStore store_as,
                             const QuantizedSegments& segments_of_pixel, PackCache& packs)
    : out_channels(params.conv.out_channels),
      padded_channels(PaddedChannels(params)),
      segments(segments_of_pixel),
      lanes(FloatLanes()),
      vnni(HasVnni()),
      amx(HasAmx() && segments_of_pixel.quads >= 4),
      store(store_as),
      epilogue(params, constants, padded_channels) {
  const bool split = HWY_DYNAMIC_DISPATCH(SplitsWeights)(vnni);
  const std::int64_t quads = segments.count * segments.quads;
  for (std::int64_t c = 0; c < padded_channels;) {
    const auto vectors = static_cast<int>(std::min<std::int64_t>(4, (padded_channels - c) / lanes));
    groups.push_back({vectors, c, c * quads * 4 * (split ? 2 : 1)});
    c += vectors * lanes;
  }
  epilogue.OffsetSums();
  SortChannels(*this, epilogue.bias.As<std::int32_t>());
  SortChannels(*this, epilogue.positive.As<float>());
  SortChannels(*this, epilogue.negative.As<float>());

  const std::string kind = StrCat("quantized_gemm ", lanes, ' ', split, ' ', segments.count, ' ',
                                  segments.stacked_rows, ' ', store == QuantizedStore::kBytes);
  weights = packs.Get<AlignedBuffer>(constants.weights, kind,
                                     [&] { return PackWeights(*this, *constants.weights, split); });
}

std::int8_t QuantizedSegments::Weight(const Tensor& weights, std::int64_t out_channel,
                                      std::int64_t segment, std::int64_t byte) const {
  const Shape& shape = weights.shape();
  const std::int64_t kernel = shape[2] * shape[3];
  std::int64_t tap = segment * taps + byte / tap_stride;
  if (stacked_rows > 1) tap = tap % stacked_rows * shape[3] + tap / stacked_rows;
  const std::int64_t c = byte % tap_stride;
  if (out_channel >= shape[0] || c >= shape[1]) return 0;
  return weights.data<const std::int8_t>()[(out_channel * shape[1] + c) * kernel + tap];
}

void RunQuantizedPixels(const QuantizedGemm& gemm, const QuantizedPixels& pixels) {
  HWY_DYNAMIC_DISPATCH(RunGemmOfTarget)(gemm, pixels);
}

}  // namespace tessera
#endif  // HWY_ONCE
