// Tiles of the int8 convolution: sums of a few pixels and a group of channels, in registers.
// Included once per target.
#if defined(TESSERA_OPS_QUANTIZED_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_GEMM_INL_H_
#undef TESSERA_OPS_QUANTIZED_GEMM_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_GEMM_INL_H_
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "hwy/highway.h"
#include "simd/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using SumTag = hn::ScalableTag<std::int32_t>;
using SumVector = hn::Vec<SumTag>;

// Vectors of 128 bits or less keep quad order the natural one and every group full.
inline constexpr std::int64_t kSumLanes = HWY_TARGET == HWY_AVX3     ? 16
                                          : HWY_TARGET == HWY_AVX2   ? 8
                                          : HWY_TARGET == HWY_SCALAR ? 1
                                                                     : 4;

// Weights as int16: the products of pairs of them are exact where those of bytes would saturate.
template <bool kVnni>
inline constexpr bool kWeightsAreSplit =
    HWY_ARCH_X86 && !kVnni && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128;

// Most pixels of a tile, by the number of vectors: what the registers hold.
template <bool kVnni>
inline constexpr std::array<int, 4> kMaxTilePixels = [] {
  using Pixels = std::array<int, 4>;
  if (kSumLanes == 16) return kVnni ? Pixels{16, 12, 8, 6} : Pixels{16, 10, 7, 4};
  return kVnni ? Pixels{8, 6, 4, 3} : Pixels{8, 4, 3, 2};
}();
inline constexpr int kMaxTileVectors = 24;

struct TileArgs {
  const std::uint8_t* in;
  std::int64_t in_stride;
  const std::ptrdiff_t* segments;
  std::int64_t num_segments, segment_quads;
  const std::int8_t* weights;
  const std::int32_t* bias;
  std::int32_t* sums;  // [pixel][vector][lane]
};

HWY_INLINE SumVector BroadcastQuad(const std::uint8_t* in) {
  std::int32_t quad;
  std::memcpy(&quad, in, sizeof(quad));
  return hn::Set(SumTag(), quad);
}

// A vector of weights that are split: pairs of even bytes, and of odd ones. So are quads of pixels.
template <class D>
struct SplitQuads {
  using V16 = hn::Vec<hn::Repartition<std::int16_t, D>>;
  V16 even, odd;
};

template <class D>
HWY_INLINE SplitQuads<D> Split(D, hn::Vec<D> quads) {
  const hn::Repartition<std::int16_t, D> d16;
  const hn::Repartition<std::uint16_t, D> du16;
  return {hn::And(hn::BitCast(d16, quads), hn::Set(d16, 0xFF)),
          hn::BitCast(d16, hn::ShiftRight<8>(hn::BitCast(du16, quads)))};
}

template <class D>
HWY_INLINE SplitQuads<D> LoadSplit(D, const void* weights) {
  const hn::Repartition<std::int16_t, D> d16;
  const auto* const words = static_cast<const std::int16_t*>(weights);
  return {hn::LoadU(d16, words), hn::LoadU(d16, words + 2 * kSumLanes)};
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Dot(D d, V sum, const SplitQuads<D>& a, const SplitQuads<D>& b) {
  V unused = hn::Zero(d);
  sum = hn::ReorderWidenMulAccumulate(d, a.even, b.even, sum, unused);
  return hn::ReorderWidenMulAccumulate(d, a.odd, b.odd, sum, unused);
}

// The two ways of a dot product: operands, and what to do with them.
template <bool kVnni, class D>
struct QuadProduct {
  static HWY_INLINE auto Pixel(D d, hn::Vec<D> quad) {
    if constexpr (kWeightsAreSplit<kVnni>) {
      return Split(d, quad);
    } else {
      return quad;
    }
  }
  static HWY_INLINE auto Weights(D d, const std::int8_t* weights) {
    if constexpr (kWeightsAreSplit<kVnni>) {
      return LoadSplit(d, weights);
    } else {
      return hn::LoadU(d, reinterpret_cast<const std::int32_t*>(weights));
    }
  }
  template <class A, class B>
  static HWY_INLINE hn::Vec<D> Add(D d, hn::Vec<D> sum, const A& a, const B& b) {
    if constexpr (kWeightsAreSplit<kVnni>) {
      return Dot(d, sum, a, b);
    } else {
      return DotBytes<kVnni>(d, sum, a, b);
    }
  }
};

template <bool kVnni, int kPixels, int kVectors>
void SumTile(const TileArgs& t) {
  using Product = QuadProduct<kVnni, SumTag>;
  const SumTag d;
  constexpr std::int64_t kVectorBytes = kSumLanes * 4 * (kWeightsAreSplit<kVnni> ? 2 : 1);
  // Three pixels share a pointer: their places are a register and 0, 1 and 2 times another.
  constexpr int kPointers = (kPixels + 2) / 3;

  SumVector sums[kPixels][kVectors];
  HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
    const SumVector bias = hn::LoadU(d, t.bias + v * kSumLanes);
    HWY_UNROLL(16) for (int p = 0; p < kPixels; ++p) sums[p][v] = bias;
  }
  const std::int8_t* HWY_RESTRICT weights = t.weights;
  const std::int64_t stride = t.in_stride;
  for (std::int64_t s = 0; s < t.num_segments; ++s) {
    const std::uint8_t* in[kPointers];
    HWY_UNROLL(16)
    for (int i = 0; i < kPointers; ++i) in[i] = t.in + t.segments[s] + 3 * i * stride;
    for (std::int64_t quad = 0; quad < t.segment_quads; ++quad) {
      const auto pixel = [&](int p) HWY_ATTR {
        return Product::Pixel(d, BroadcastQuad(in[p / 3] + p % 3 * stride));
      };
      if constexpr (kVectors > kPixels) {  // hold in registers whatever is fewer
        decltype(pixel(0)) a[kPixels];
        HWY_UNROLL(16) for (int p = 0; p < kPixels; ++p) a[p] = pixel(p);
        HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
          const auto w = Product::Weights(d, weights + v * kVectorBytes);
          HWY_UNROLL(16) for (int p = 0; p < kPixels; ++p) {
            sums[p][v] = Product::Add(d, sums[p][v], a[p], w);
          }
        }
      } else {
        decltype(Product::Weights(d, weights)) w[kVectors];
        HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
          w[v] = Product::Weights(d, weights + v * kVectorBytes);
        }
        HWY_UNROLL(16) for (int p = 0; p < kPixels; ++p) {
          const auto a = pixel(p);
          HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
            sums[p][v] = Product::Add(d, sums[p][v], a, w[v]);
          }
        }
      }
      HWY_UNROLL(16) for (int i = 0; i < kPointers; ++i) in[i] += 4;
      weights += kVectors * kVectorBytes;
    }
  }
  HWY_UNROLL(16) for (int p = 0; p < kPixels; ++p) {
    HWY_UNROLL(16) for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[p][v], d, t.sums + (p * kVectors + v) * kSumLanes);
    }
  }
}

using TileFn = void (*)(const TileArgs&);

template <bool kVnni, int kVectors, std::size_t... kPixels>
constexpr std::array<TileFn, sizeof...(kPixels)> TilesOf(std::index_sequence<kPixels...>) {
  return {&SumTile<kVnni, static_cast<int>(kPixels) + 1, kVectors>...};
}

// The tile of so many pixels and vectors.
template <bool kVnni>
TileFn FindTile(int pixels, int vectors) {
  const auto find = [&](auto number) -> TileFn {
    constexpr int kVectors = decltype(number)::value;
    constexpr int kMax = kMaxTilePixels<kVnni>[kVectors - 1];
    static constexpr auto kTiles = TilesOf<kVnni, kVectors>(std::make_index_sequence<kMax>());
    return kTiles[static_cast<std::size_t>(pixels - 1)];
  };
  if (vectors == 4) return find(std::integral_constant<int, 4>());
  if constexpr (kSumLanes > 4) {
    if (vectors == 2) return find(std::integral_constant<int, 2>());
  }
  if constexpr (kSumLanes > 8) {
    if (vectors == 3) return find(std::integral_constant<int, 3>());
    if (vectors == 1) return find(std::integral_constant<int, 1>());
  }
  return nullptr;
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
