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
  std::int32_t* sums;           // of SumRow: [tile][kDepthwiseTile][plane][lane]
};

// The sums of all windows. kRows and kCols: size of a window, or 0 if that is known at run time
// only. use(tile, plane, sums) gets those of kDepthwiseTile vectors, [step][phase].
template <bool kVnni, int kRows, int kCols, int kPhases, class Use>
HWY_INLINE void SumTiles(const QuadWindows& s, const Use& use) {
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
  for (std::int64_t j = 0; j < s.planes; ++j) {
    const V bias = hn::Load(d, s.bias + j * kLanes);
    const std::uint8_t* w = s.weights + j * rows * kPhases * cols * kBytes;
    const auto begin = [&](V(&sum)[kSteps][kPhases]) HWY_ATTR {
#pragma GCC unroll 4
      for (int k = 0; k < kSteps; ++k) {
#pragma GCC unroll 2
        for (int i = 0; i < kPhases; ++i) sum[k][i] = bias;
      }
    };
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
        begin(sum);
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
        use(tile, j, sum);
      }
    } else {
      for (std::int64_t tile = 0; tile < s.tiles; ++tile) {
        V sum[kSteps][kPhases];
        begin(sum);
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
        use(tile, j, sum);
      }
    }
  }
}

// What `use` returns for the kind of windows, as integral constants: rows, columns, phases.
template <class Use>
auto WithWindow(const QuantizedDepthwisePlan& plan, const Use& use) {
  const std::integral_constant<int, 0> any;
  const std::integral_constant<int, 2> two;
  const std::integral_constant<int, 3> three;
  const auto with_phases = [&](auto phases) {
    if (plan.rows == 2 && plan.cols == 2) return use(two, two, phases);
    if (plan.rows == 3 && plan.cols == 3) return use(three, three, phases);
    return use(any, any, phases);
  };
  return plan.col_phases == 2 ? with_phases(two) : with_phases(std::integral_constant<int, 1>());
}

// The sums to s.sums.
template <bool kVnni, int kRows, int kCols, int kPhases>
HWY_NOINLINE void SumRow(const QuadWindows& s) {
  const hn::ScalableTag<std::int32_t> d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const std::int64_t next_sum = s.planes * kLanes;
  SumTiles<kVnni, kRows, kCols, kPhases>(
      s, [&](std::int64_t tile, std::int64_t plane, const auto& sum) HWY_ATTR {
        std::int32_t* to = s.sums + tile * kDepthwiseTile * next_sum + plane * kLanes;
#pragma GCC unroll 4
        for (const auto& step : sum) {
#pragma GCC unroll 2
          for (const auto& v : step) {
            hn::Store(v, d, to);
            to += next_sum;
          }
        }
      });
}

using DepthwiseSumRow = void (*)(const QuadWindows&);

template <bool kVnni>
DepthwiseSumRow ChooseSumRow(const QuantizedDepthwisePlan& plan) {
  return WithWindow(plan, [](auto rows, auto cols, auto phases) -> DepthwiseSumRow {
    return SumRow<kVnni, decltype(rows)::value, decltype(cols)::value, decltype(phases)::value>;
  });
}

#endif  // HWY_TARGET

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
