// Winograd's products (see winograd.h), for a block of tiles. Included once per target.
#if defined(TESSERA_OPS_WINOGRAD_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_WINOGRAD_PRODUCTS_INL_H_
#undef TESSERA_OPS_WINOGRAD_PRODUCTS_INL_H_
#else
#define TESSERA_OPS_WINOGRAD_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/winograd_transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE::winograd {

// Tiles by vectors whose sums fit in the registers beside one weight vector each and one
// broadcast; [vectors - 1].
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
inline constexpr int kMaxTiles[] = {12, 6, 4};  // 16 registers
#else
inline constexpr int kMaxTiles[] = {14, 14, 8};  // 32 registers
#endif
inline constexpr int kMaxVectors = 3;

// Memory to fetch into the L2 cache while products are computed, which need none: runs of
// kRunLines cache lines, one for each row of a tile's pixels in a block of channels. (Hardware
// prefetchers do not follow the transforms from row to row and from plane to plane.)
inline constexpr int kRunLines = kLanes / 2;
inline constexpr std::ptrdiff_t kRunFloats = kRunLines * kAlignment / sizeof(float);
using Run = const float*;

// m[vector][tile] = sum over the channels c of v[c / kLanes][tile][c % kLanes] * u[c][vector], for
// kTiles tiles and kVectors vectors. Blocks of channels lie v_stride and m_stride floats apart.
// Fetches two of `runs` for each whole block of channels, unless it is null.
template <int kTiles, int kVectors>
void Multiply(const float* HWY_RESTRICT v, std::ptrdiff_t v_stride, const float* HWY_RESTRICT u,
              std::int64_t channels, float* HWY_RESTRICT m, std::ptrdiff_t m_stride,
              const Run* runs) {
  // The calls for a block read the weights as one stream out of the L2 cache, faster than hardware
  // prefetchers bring it.
  constexpr std::ptrdiff_t kAhead = 2048 / sizeof(float), kLine = kAlignment / sizeof(float);
  const F32 d;
  VF sums[kTiles][kVectors];
  HWY_UNROLL(16) for (int t = 0; t < kTiles; ++t) {
    HWY_UNROLL(4) for (int j = 0; j < kVectors; ++j) sums[t][j] = hn::Zero(d);
  }
  const auto add_channel = [&](int c) HWY_ATTR {
    VF weights[kVectors];
    HWY_UNROLL(4) for (int j = 0; j < kVectors; ++j) weights[j] = hn::Load(d, u + j * kLanes);
    HWY_UNROLL(4) for (int j = 0; j < kVectors; ++j) hwy::Prefetch(u + j * kLanes + kAhead);
    u += kVectors * kLanes;
    HWY_UNROLL(16) for (int t = 0; t < kTiles; ++t) {
      const VF value = hn::Set(d, v[t * kLanes + c]);
      HWY_UNROLL(4) for (int j = 0; j < kVectors; ++j) {
        sums[t][j] = hn::MulAdd(value, weights[j], sums[t][j]);
      }
    }
  };
  for (; channels >= kLanes; channels -= kLanes, v += v_stride) {
    if (runs == nullptr) {
      HWY_UNROLL(4) for (int c = 0; c < kLanes; ++c) add_channel(c);
      continue;
    }
    static_assert(kLanes == 1 || kRunLines * 2 == kLanes);
    // One line at a time: more at once would keep the loads of the products waiting.
    const Run run[2] = {*runs++, *runs++};
    HWY_UNROLL(1) for (int line = 0; line < kRunLines; ++line) {
      HWY_UNROLL(2) for (int i = 0; i < 2; ++i) {
        __builtin_prefetch(run[i] + line * kLine, 0, 2);
        add_channel(line * 2 + i);
      }
    }
  }
  HWY_UNROLL(1) for (int c = 0; c < channels; ++c) add_channel(c);
  HWY_UNROLL(16) for (int t = 0; t < kTiles; ++t) {
    HWY_UNROLL(4) for (int j = 0; j < kVectors; ++j) {
      hn::Store(sums[t][j], d, m + j * m_stride + t * kLanes);
    }
  }
}

using MultiplyFn = decltype(&Multiply<1, 1>);

// Multiply<t, kVectors> for t = 1 .. kMaxTiles[kVectors - 1].
template <int kVectors>
constexpr auto MakeMultiplyTable() {
  return []<int... kT>(std::integer_sequence<int, kT...>) {
    return std::array<MultiplyFn, sizeof...(kT)>{&Multiply<kT + 1, kVectors>...};
  }
  (std::make_integer_sequence<int, kMaxTiles[kVectors - 1]>());
}

inline MultiplyFn FindMultiply(int tiles, int vectors) {
  static constexpr auto kOne = MakeMultiplyTable<1>();
  static constexpr auto kTwo = MakeMultiplyTable<2>();
  static constexpr auto kThree = MakeMultiplyTable<3>();
  const MultiplyFn* const tables[kMaxVectors] = {kOne.data(), kTwo.data(), kThree.data()};
  return tables[vectors - 1][tiles - 1];
}

// M = U V for `tiles` tiles. Before each product, next_runs(v, first_vector) says what to fetch
// meanwhile, given the first V that it reads and the first vector of M that it makes.
template <class NextRuns>
void MultiplyBlock(const WinogradPlan& plan, const float* weights,
                   const TransformedTiles& transformed, float* m, std::int64_t tiles,
                   const NextRuns& next_runs) {
  const std::int64_t channels = plan.in.channels;
  const std::ptrdiff_t m_stride = tiles * kLanes;
  for (std::int64_t position = 0; position < plan.NumPositions(); ++position) {
    const float* u = weights;
    for (const WinogradGroup& group : plan.groups) {
      const float* v = transformed.data + position * transformed.position_stride;
      float* m_group = m + group.first_vector * m_stride;
      const std::int64_t max = kMaxTiles[group.vectors - 1];
      std::int64_t parts = (tiles + max - 1) / max;
      for (std::int64_t left = tiles, count; left > 0; left -= count, --parts) {
        count = (left + parts - 1) / parts;
        FindMultiply(static_cast<int>(count), group.vectors)(v, transformed.vector_stride, u,
                                                             channels, m_group, m_stride,
                                                             next_runs(v, group.first_vector));
        v += count * kLanes;
        m_group += count * kLanes;
      }
      u += channels * group.vectors * kLanes;
    }
    weights += plan.u_stride;
    m += plan.position_stride;
  }
}

}  // namespace tessera::HWY_NAMESPACE::winograd
HWY_AFTER_NAMESPACE();

#endif  // include guard
