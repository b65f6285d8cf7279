// Of a depthwise convolution of bytes (quantized_depthwise.h): sums over windows of interleaved
// quads. Included once per target.
#if defined(TESSERA_OPS_QUANTIZED_DEPTHWISE_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_DEPTHWISE_SUMS_INL_H_
#undef TESSERA_OPS_QUANTIZED_DEPTHWISE_SUMS_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_DEPTHWISE_SUMS_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"
#include "ops/quantized/quantized_depthwise.h"
#include "simd/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR  // without vectors there is nothing to interleave for

// A row of windows in rows of quads.
struct QuadWindows {
  const std::uint8_t* quads;  // [slot][plane][quad]
  std::int64_t slot_bytes, plane_bytes, quad_bytes;
  std::int64_t first_slot;  // of the windows, which go on in the next one and, after the last, in 0
  std::int64_t rows, cols;  // of a window
  std::int64_t planes;
  std::int64_t tiles;           // kDepthwiseTile vectors of windows
  const std::uint8_t* weights;  // [plane][row][col phase][col][vector]
  const std::int32_t* bias;     // [plane][lane]
  std::int32_t* sums;           // [tile][kDepthwiseTile][plane][lane]
};

// kRows and kCols: size of a window, or 0 if that is known at run time only.
template <bool kVnni, int kRows, int kCols, int kPhases>
HWY_NOINLINE void SumRow(const QuadWindows& s) {
  const hn::ScalableTag<std::int32_t> d;
  using V = hn::Vec<decltype(d)>;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr std::int64_t kBytes = 4 * kLanes;
  constexpr int kSteps = static_cast<int>(kDepthwiseTile) / kPhases;
  const std::int64_t rows = kRows != 0 ? kRows : s.rows;
  const std::int64_t cols = kCols != 0 ? kCols : s.cols;
  const std::int64_t quad_bytes = s.quad_bytes;
  const auto load = [&](const void* from)
                        HWY_ATTR { return hn::LoadU(d, static_cast<const std::int32_t*>(from)); };
  const auto row_of = [&](std::int64_t r) {
    const std::int64_t slot = s.first_slot + r;
    return s.quads + (slot < rows ? slot : slot - rows) * s.slot_bytes;
  };
  const std::int64_t next_sum = s.planes * kLanes;
  for (std::int64_t j = 0; j < s.planes; ++j) {
    const V bias = hn::Load(d, s.bias + j * kLanes);
    const std::uint8_t* w = s.weights + j * rows * kPhases * cols * kBytes;
    std::int32_t* sums = s.sums + j * kLanes;
    if constexpr (kRows != 0) {
      V taps[kRows][kPhases][kCols];
      const std::uint8_t* in[kRows];
      for (int r = 0; r < kRows; ++r) {
        in[r] = row_of(r) + j * s.plane_bytes;
        for (int i = 0; i < kPhases; ++i) {
          for (int c = 0; c < kCols; ++c, w += kBytes) taps[r][i][c] = load(w);
        }
      }
      for (std::int64_t tile = 0; tile < s.tiles; ++tile) {
        V sum[kSteps][kPhases];
#pragma GCC unroll 4
        for (int k = 0; k < kSteps; ++k) {
#pragma GCC unroll 2
          for (int i = 0; i < kPhases; ++i) sum[k][i] = bias;
        }
#pragma GCC unroll 3
        for (int r = 0; r < kRows; ++r) {
          const std::uint8_t* from = in[r] + tile * kSteps * kBytes;
#pragma GCC unroll 3
          for (int c = 0; c < kCols; ++c, from += quad_bytes) {
#pragma GCC unroll 4
            for (int k = 0; k < kSteps; ++k) {
              const V v = load(from + k * kBytes);
#pragma GCC unroll 2
              for (int i = 0; i < kPhases; ++i) {
                sum[k][i] = DotBytes<kVnni>(d, sum[k][i], v, taps[r][i][c]);
              }
            }
          }
        }
#pragma GCC unroll 4
        for (int k = 0; k < kSteps; ++k) {
#pragma GCC unroll 2
          for (int i = 0; i < kPhases; ++i, sums += next_sum) hn::Store(sum[k][i], d, sums);
        }
      }
    } else {
      for (std::int64_t tile = 0; tile < s.tiles; ++tile, sums += kDepthwiseTile * next_sum) {
        V sum[kSteps][kPhases];
        for (int k = 0; k < kSteps; ++k) {
          for (int i = 0; i < kPhases; ++i) sum[k][i] = bias;
        }
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::uint8_t* from = row_of(r) + j * s.plane_bytes + tile * kSteps * kBytes;
          for (std::int64_t c = 0; c < cols; ++c, from += quad_bytes) {
#pragma GCC unroll 2
            for (int i = 0; i < kPhases; ++i) {
              const V tap = load(w + ((r * kPhases + i) * cols + c) * kBytes);
#pragma GCC unroll 4
              for (int k = 0; k < kSteps; ++k) {
                sum[k][i] = DotBytes<kVnni>(d, sum[k][i], load(from + k * kBytes), tap);
              }
            }
          }
        }
        for (int k = 0; k < kSteps; ++k) {
          for (int i = 0; i < kPhases; ++i) {
            hn::Store(sum[k][i], d, sums + (k * kPhases + i) * next_sum);
          }
        }
      }
    }
  }
}

using DepthwiseSumRow = void (*)(const QuadWindows&);

template <bool kVnni>
DepthwiseSumRow ChooseSumRow(const QuantizedDepthwisePlan& plan) {
  const auto with_phases = [&](auto phases) -> DepthwiseSumRow {
    constexpr int kPhases = decltype(phases)::value;
    if (plan.rows == 2 && plan.cols == 2) return SumRow<kVnni, 2, 2, kPhases>;
    if (plan.rows == 3 && plan.cols == 3) return SumRow<kVnni, 3, 3, kPhases>;
    return SumRow<kVnni, 0, 0, kPhases>;
  };
  return plan.col_phases == 2 ? with_phases(std::integral_constant<int, 2>())
                              : with_phases(std::integral_constant<int, 1>());
}

#endif  // HWY_TARGET

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
