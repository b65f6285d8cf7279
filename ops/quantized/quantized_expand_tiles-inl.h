// Of quantized_expand.h: quads of pixels from sums that Intel AMX computes. Included once per
// target.
#if defined(TESSERA_OPS_QUANTIZED_EXPAND_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_EXPAND_TILES_INL_H_
#undef TESSERA_OPS_QUANTIZED_EXPAND_TILES_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_EXPAND_TILES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "ops/quantized/quantized_expand_quads-inl.h"
#include "simd/amx.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Bytes of a pixel in a tile.
inline std::int64_t ExpandTileBytes(const QuantizedExpandPlan& plan) {
  return std::min<std::int64_t>(64, plan.input.pixel_stride);
}

// The tiles of a block: how many were begun, stored and made quads of, and where the next one is.
struct ExpandTiles {
  std::int64_t row, end_row;  // of the grid
  std::int64_t x = 0;
  std::int64_t begun = 0, stored = 0, used = 0;
};

#if HWY_TARGET == HWY_AVX3

// Tile kSum becomes the sums of 16 pixels; the first segment's weights are in tile 7.
template <int kSum>
HWY_INLINE void SumTile(const ExpandBlock& b, const std::uint8_t* in) {
  constexpr int kPixels = kSum % 2 + 4;
  const std::int64_t stride = b.plan.input.pixel_stride;
  LoadTile<kSum>(b.operands, 0);  // bias
  LoadTile<kPixels>(in, stride);
  MultiplyTiles<kSum, kPixels, 7>();
  for (std::int64_t s = 1; s < b.plan.weight_rows / 16; ++s) {
    LoadTile<6>(b.weights + s * 1024, 64);
    LoadTile<kPixels>(in + s * 64, stride);
    MultiplyTiles<kSum, kPixels, 6>();
  }
}

// Whether the sums of row `row` of the grid are computed by tiles, of 16 pixels of both of its
// rows. Those of the last tile may reach beyond the row, but not beyond the image. Their weights
// are zero where they reach beyond a pixel.
inline bool IsTiled(const ExpandBlock& b, std::int64_t row) {
  const ChannelsLastLayout& input = b.plan.input;
  const std::int64_t y = 2 * row - b.plan.depthwise.params.pad_top;
  const std::int64_t pixels = (input.width + 15) / 16 * 16;
  const std::int64_t pixel_bytes = b.plan.weight_rows * 4 - 64 + ExpandTileBytes(b.plan);
  return y >= 0 && y + 1 < input.height &&
         (y + 1) * input.row_stride + (pixels - 1) * input.pixel_stride + pixel_bytes <=
             input.image_stride;
}

// While the sums of one tile are computed, those of the one before are stored.
HWY_INLINE void NextTile(const ExpandBlock& b, ExpandTiles& tiles) {
  const auto place = [&](int i) {
    return b.sums + (tiles.stored % kTilesKept * 2 + i) * kTileSums;
  };
  if (tiles.stored < tiles.begun) {
    if (tiles.stored % 2 == 0) {
      StoreTile<0>(place(0), 64);
      StoreTile<1>(place(1), 64);
    } else {
      StoreTile<2>(place(0), 64);
      StoreTile<3>(place(1), 64);
    }
    ++tiles.stored;
  }
  if (tiles.x == 0) {
    while (tiles.row < tiles.end_row && !IsTiled(b, tiles.row)) ++tiles.row;
  }
  if (tiles.row == tiles.end_row) return;
  const ChannelsLastLayout& input = b.plan.input;
  const std::uint8_t* const in =
      b.step.in + (2 * tiles.row - b.plan.depthwise.params.pad_top) * input.row_stride +
      tiles.x * input.pixel_stride;
  if (tiles.begun % 2 == 0) {
    SumTile<0>(b, in);
    SumTile<1>(b, in + input.row_stride);
  } else {
    SumTile<2>(b, in);
    SumTile<3>(b, in + input.row_stride);
  }
  ++tiles.begun;
  tiles.x += 16;
  if (tiles.x >= input.width) {
    tiles.x = 0;
    ++tiles.row;
  }
}

// From the sums of a tile the quads of pixels [x - kBefore, x - kBefore + 16), x being the tile's
// first pixel; where x is 0, but the one with the pixel before.
template <QuantizedForm kForm, int kBefore>
HWY_INLINE void MakeTileQuads(const ExpandBlock& b, std::int64_t tile, std::int64_t x,
                              std::int32_t* quads) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  constexpr std::int64_t kLanes = FloatLanesOf();
  const QuantizedOutput<kForm> output(b.plan.epilogue);
  const auto* const reals = reinterpret_cast<const float*>(b.operands);
  const auto positive = hn::Load(df, reals + kLanes), negative = hn::Load(df, reals + 2 * kLanes);
  const auto round = [&](const std::int32_t* sums) HWY_ATTR {
    return output.Round(d, hn::Load(d, sums), positive, negative, hn::Zero(d));
  };
  // The pixel before is the last one of the tile before.
  const std::int32_t* const p = b.sums + tile % kTilesKept * 2 * kTileSums - kBefore * kLanes;
  const std::int32_t* const q = p + kTileSums;
  const std::int32_t* const p0 =
      kBefore == 0 ? p
                   : b.sums + (tile + kTilesKept - 1) % kTilesKept * 2 * kTileSums + 15 * kLanes;
  const std::int32_t* const q0 = p0 + kTileSums;
  std::int32_t* const to = quads + (x - kBefore + b.plan.depthwise.params.pad_left) / 2 * kLanes;
  if (kBefore == 0 || x > 0) {
    hn::Store(output.ToQuads(d, round(p0), round(p + kLanes), round(q0), round(q + kLanes)), d, to);
  }
#pragma GCC unroll 7
  for (int i = 1; i < 8; ++i) {
    hn::Store(output.ToQuads(d, round(p + 2 * i * kLanes), round(p + (2 * i + 1) * kLanes),
                             round(q + 2 * i * kLanes), round(q + (2 * i + 1) * kLanes)),
              d, to + i * kLanes);
  }
}

// Row `row` of the grid. Tiles are two ahead of the quads, and go on in the next row: so they are
// computed while vectors are.
template <QuantizedForm kForm>
HWY_NOINLINE void MakeQuadsByTiles(const ExpandBlock& b, ExpandTiles& tiles, std::int64_t row,
                                   std::int32_t* quads) {
  const DotQuads<true, kForm> others(b, row, quads);
  if (!IsTiled(b, row)) return others.Make(0, b.quads_in_row);
  if (tiles.begun == 0) {
    LoadTile<7>(b.weights, 64);
    NextTile(b, tiles);
    NextTile(b, tiles);
  }
  const std::int64_t width = b.plan.input.width, left = b.plan.depthwise.params.pad_left;
  for (std::int64_t x = 0; x < width; x += 16, ++tiles.used) {
    NextTile(b, tiles);
    if (left % 2 == 0) {
      MakeTileQuads<kForm, 0>(b, tiles.used, x, quads);
    } else {
      MakeTileQuads<kForm, 1>(b, tiles.used, x, quads);
    }
  }
  others.Make(0, (1 + left) / 2);
  others.Make((width + left) / 2, b.quads_in_row);
}

#endif  // HWY_AVX3

#endif  // HWY_TARGET

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
