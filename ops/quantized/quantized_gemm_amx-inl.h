// Tiles of the int8 convolution on Intel AMX: 16 to 64 pixels, with the packed weights as they are.
// Included once per target.
#if defined(TESSERA_OPS_QUANTIZED_GEMM_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_GEMM_AMX_INL_H_
#undef TESSERA_OPS_QUANTIZED_GEMM_AMX_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_GEMM_AMX_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/quantized/quantized_gemm-inl.h"
#include "simd/amx.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

inline constexpr std::int64_t kAmxPixels = 16, kAmxQuads = 16;

// Tile registers: 0 to 3 for sums, 4 for pixels and 6 for weights of 16 quads, 5 and 7 for those
// of the quads that are left of a segment. While it lives, this thread can use them.
class AmxTiles {
 public:
  explicit AmxTiles(std::int64_t segment_quads) {
    const auto rest = static_cast<std::uint8_t>(segment_quads % kAmxQuads);
    AmxConfiguration shapes;
    if (rest != 0) {
      shapes.row_bytes[5] = static_cast<std::uint16_t>(4 * rest);
      shapes.rows[7] = rest;
    }
    BeginAmx(shapes);
  }
  ~AmxTiles() { EndAmx(); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

template <int kVectors, int kPixelTile>
HWY_INLINE void MultiplyAmx(const std::uint8_t* in, std::int64_t in_stride,
                            const std::int8_t* weights) {
  constexpr std::int64_t kVectorBytes = 4 * kSumLanes, kQuadBytes = kVectors * kVectorBytes;
  constexpr int kWeightTile = kPixelTile + 2;
  LoadTile<kPixelTile>(in, in_stride);
  LoadTile<kWeightTile>(weights, kQuadBytes);
  MultiplyTiles<0, kPixelTile, kWeightTile>();
  if constexpr (kVectors > 1) {
    LoadTile<kWeightTile>(weights + kVectorBytes, kQuadBytes);
    MultiplyTiles<1, kPixelTile, kWeightTile>();
  }
  if constexpr (kVectors > 2) {
    LoadTile<kWeightTile>(weights + 2 * kVectorBytes, kQuadBytes);
    MultiplyTiles<2, kPixelTile, kWeightTile>();
  }
  if constexpr (kVectors > 3) {
    LoadTile<kWeightTile>(weights + 3 * kVectorBytes, kQuadBytes);
    MultiplyTiles<3, kPixelTile, kWeightTile>();
  }
}

// SumTile of 16 pixels.
template <int kVectors>
void SumAmxTile(const TileArgs& t) {
  constexpr std::int64_t kQuadBytes = kVectors * 4 * kSumLanes;
  LoadTile<0>(t.bias, 0);
  if constexpr (kVectors > 1) LoadTile<1>(t.bias + kSumLanes, 0);
  if constexpr (kVectors > 2) LoadTile<2>(t.bias + 2 * kSumLanes, 0);
  if constexpr (kVectors > 3) LoadTile<3>(t.bias + 3 * kSumLanes, 0);
  const std::int8_t* weights = t.weights;
  for (std::int64_t s = 0; s < t.num_segments; ++s) {
    const std::uint8_t* in = t.in + t.segments[s];
    std::int64_t quads = t.segment_quads;
    for (; quads >= kAmxQuads; quads -= kAmxQuads) {
      MultiplyAmx<kVectors, 4>(in, t.in_stride, weights);
      in += 4 * kAmxQuads;
      weights += kAmxQuads * kQuadBytes;
    }
    if (quads > 0) MultiplyAmx<kVectors, 5>(in, t.in_stride, weights);
    weights += quads * kQuadBytes;
  }
  StoreTile<0>(t.sums, kQuadBytes);
  if constexpr (kVectors > 1) StoreTile<1>(t.sums + kSumLanes, kQuadBytes);
  if constexpr (kVectors > 2) StoreTile<2>(t.sums + 2 * kSumLanes, kQuadBytes);
  if constexpr (kVectors > 3) StoreTile<3>(t.sums + 3 * kSumLanes, kQuadBytes);
}

// SumTile of 32 pixels and an even number of vectors, where segments are whole tiles: weights,
// which may come from the outer cache, are loaded half as often.
template <int kVectors>
void SumAmxTilePair(const TileArgs& t) {
  constexpr std::int64_t kVectorBytes = 4 * kSumLanes, kQuadBytes = kVectors * kVectorBytes;
  for (int v = 0; v < kVectors; v += 2) {
    LoadTile<0>(t.bias + v * kSumLanes, 0);
    LoadTile<1>(t.bias + (v + 1) * kSumLanes, 0);
    LoadTile<2>(t.bias + v * kSumLanes, 0);
    LoadTile<3>(t.bias + (v + 1) * kSumLanes, 0);
    const std::int8_t* weights = t.weights + v * kVectorBytes;
    for (std::int64_t s = 0; s < t.num_segments; ++s) {
      const std::uint8_t* in = t.in + t.segments[s];
      for (std::int64_t quad = 0; quad < t.segment_quads; quad += kAmxQuads) {
        LoadTile<4>(in, t.in_stride);
        LoadTile<6>(weights, kQuadBytes);
        MultiplyTiles<0, 4, 6>();
        LoadTile<7>(weights + kVectorBytes, kQuadBytes);
        MultiplyTiles<1, 4, 7>();
        LoadTile<5>(in + kAmxPixels * t.in_stride, t.in_stride);
        MultiplyTiles<2, 5, 6>();
        MultiplyTiles<3, 5, 7>();
        in += 4 * kAmxQuads;
        weights += kAmxQuads * kQuadBytes;
      }
    }
    std::int32_t* const sums = t.sums + v * kSumLanes;
    std::int32_t* const next = sums + kAmxPixels * kVectors * kSumLanes;
    StoreTile<0>(sums, kQuadBytes);
    StoreTile<1>(sums + kSumLanes, kQuadBytes);
    StoreTile<2>(next, kQuadBytes);
    StoreTile<3>(next + kSumLanes, kQuadBytes);
  }
}

// SumTile of 64 pixels and one vector: weights are loaded once.
template <int kPixelTile>
HWY_INLINE void MultiplyAmxPixels(const std::uint8_t* in, std::int64_t in_stride,
                                  const std::int8_t* weights) {
  constexpr int kWeightTile = kPixelTile + 2;
  LoadTile<kWeightTile>(weights, 4 * kSumLanes);
  LoadTile<kPixelTile>(in, in_stride);
  MultiplyTiles<0, kPixelTile, kWeightTile>();
  LoadTile<kPixelTile>(in + kAmxPixels * in_stride, in_stride);
  MultiplyTiles<1, kPixelTile, kWeightTile>();
  LoadTile<kPixelTile>(in + 2 * kAmxPixels * in_stride, in_stride);
  MultiplyTiles<2, kPixelTile, kWeightTile>();
  LoadTile<kPixelTile>(in + 3 * kAmxPixels * in_stride, in_stride);
  MultiplyTiles<3, kPixelTile, kWeightTile>();
}

inline void SumAmxTilesOfVector(const TileArgs& t) {
  constexpr std::int64_t kQuadBytes = 4 * kSumLanes, kTileSums = kAmxPixels * kSumLanes;
  LoadTile<0>(t.bias, 0);
  LoadTile<1>(t.bias, 0);
  LoadTile<2>(t.bias, 0);
  LoadTile<3>(t.bias, 0);
  const std::int8_t* weights = t.weights;
  for (std::int64_t s = 0; s < t.num_segments; ++s) {
    const std::uint8_t* in = t.in + t.segments[s];
    std::int64_t quads = t.segment_quads;
    for (; quads >= kAmxQuads; quads -= kAmxQuads) {
      MultiplyAmxPixels<4>(in, t.in_stride, weights);
      in += 4 * kAmxQuads;
      weights += kAmxQuads * kQuadBytes;
    }
    if (quads > 0) MultiplyAmxPixels<5>(in, t.in_stride, weights);
    weights += quads * kQuadBytes;
  }
  StoreTile<0>(t.sums, kQuadBytes);
  StoreTile<1>(t.sums + kTileSums, kQuadBytes);
  StoreTile<2>(t.sums + 2 * kTileSums, kQuadBytes);
  StoreTile<3>(t.sums + 3 * kTileSums, kQuadBytes);
}

struct AmxTile {
  TileFn sum;
  int pixels;
};

inline AmxTile FindAmxTile(int vectors, std::int64_t segment_quads, std::int64_t pixels) {
  constexpr int kPixels = static_cast<int>(kAmxPixels);
  const bool whole = segment_quads % kAmxQuads == 0 && pixels >= 2 * kAmxPixels;
  if (vectors == 1 && pixels >= 4 * kAmxPixels) return {SumAmxTilesOfVector, 4 * kPixels};
  if (whole && vectors == 4) return {SumAmxTilePair<4>, 2 * kPixels};
  if (whole && vectors == 2) return {SumAmxTilePair<2>, 2 * kPixels};
  constexpr TileFn kTiles[] = {SumAmxTile<1>, SumAmxTile<2>, SumAmxTile<3>, SumAmxTile<4>};
  return {kTiles[vectors - 1], kPixels};
}

#endif  // HWY_AVX3

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
