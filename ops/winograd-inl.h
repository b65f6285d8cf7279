// Vector half of the Winograd convolution (see winograd.h). Included once per target.
#if defined(TESSERA_OPS_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_WINOGRAD_INL_H_
#undef TESSERA_OPS_WINOGRAD_INL_H_
#else
#define TESSERA_OPS_WINOGRAD_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "ops/epilogue-inl.h"
#include "ops/winograd.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE::winograd {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using VF = hn::Vec<F32>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(F32()));

// ---------------------------------------------------------------------------------------------
// Transforms of one column or row, for kLanes channels at a time.
//
// With z = x^2 and the points p_i, the rows of B^T are the coefficients of
//   prod_j (z - p_j^2)                                    for the point 0,
//   x (x +- p_i) prod_{j != i} (z - p_j^2)                for the points +-p_i,
//   x prod_j (z - p_j^2)                                  for infinity,
// so that even and odd elements are combined apart and shared by +p and -p. Column k of A holds
// the k-th powers of the points.

template <int kM>
struct TransformConstants {
  static constexpr int kPairs = kM / 2;
  float point[kPairs];
  float power[kPairs][kM];
  // Coefficients, lowest first, of the products above; the highest is 1 and left out.
  float all[kPairs];
  float others[kPairs][kPairs - 1];
  // Factors of G's rows: 1 / prod_j (p - p_j) over all finite points p_j but p itself, which +p and
  // -p share, and the same for the point 0.
  float weight[kPairs];
  float weight_zero;
};

template <int kM>
constexpr TransformConstants<kM> MakeTransformConstants() {
  constexpr int kPairs = kM / 2;
  const auto& points = kWinogradPoints<kM>;
  const auto product = [&](int skipped) {
    std::array<double, kPairs + 1> c{1.0};
    for (int j = 0, degree = 0; j < kPairs; ++j) {
      if (j == skipped) continue;
      ++degree;
      for (int k = degree; k >= 0; --k) {
        c[k] = (k > 0 ? c[k - 1] : 0.0) - points[j] * points[j] * (k < degree ? c[k] : 0.0);
      }
    }
    return c;
  };
  TransformConstants<kM> out{};
  for (int k = 0; k < kPairs; ++k) out.all[k] = static_cast<float>(product(-1)[k]);
  for (int i = 0; i < kPairs; ++i) {
    out.point[i] = static_cast<float>(points[i]);
    double power = 1;
    for (int k = 0; k < kM; ++k, power *= points[i]) out.power[i][k] = static_cast<float>(power);
    for (int k = 0; k + 1 < kPairs; ++k) out.others[i][k] = static_cast<float>(product(i)[k]);
    double divisor = 2 * points[i] * points[i];  // (p - 0) (p + p)
    for (int j = 0; j < kPairs; ++j) {
      if (j != i) divisor *= points[i] * points[i] - points[j] * points[j];
    }
    out.weight[i] = static_cast<float>(1 / divisor);
  }
  out.weight_zero = static_cast<float>(1 / product(-1)[0]);
  return out;
}

template <int kM>
inline constexpr TransformConstants<kM> kTransform = MakeTransformConstants<kM>();

// y = G x, where row p of G is (1, p, p^2) times the factor of the point.
template <int kM>
HWY_INLINE void TransformKernel(const VF (&x)[3], VF (&y)[kM + 2]) {
  constexpr const auto& c = kTransform<kM>;
  const F32 d;
  y[0] = hn::Mul(hn::Set(d, c.weight_zero), x[0]);
  y[kM + 1] = x[2];
  HWY_UNROLL(8) for (int i = 0; i < kM / 2; ++i) {
    const VF even = hn::Mul(hn::Set(d, c.weight[i]),
                            hn::MulAdd(hn::Set(d, c.point[i] * c.point[i]), x[2], x[0]));
    const VF odd = hn::Mul(hn::Set(d, c.weight[i] * c.point[i]), x[1]);
    y[1 + 2 * i] = hn::Add(even, odd);
    y[2 + 2 * i] = hn::Sub(even, odd);
  }
}

// y = B^T x.
template <int kM>
HWY_INLINE void TransformInput(const VF (&x)[kM + 2], VF (&y)[kM + 2]) {
  constexpr const auto& c = kTransform<kM>;
  constexpr int kPairs = kM / 2;
  const F32 d;
  VF zero = x[kM], infinity = x[kM + 1];
  HWY_UNROLL(8) for (int k = kPairs - 1; k >= 0; --k) {
    zero = hn::MulAdd(hn::Set(d, c.all[k]), x[2 * k], zero);
    infinity = hn::MulAdd(hn::Set(d, c.all[k]), x[2 * k + 1], infinity);
  }
  y[0] = zero;
  y[kM + 1] = infinity;
  HWY_UNROLL(8) for (int i = 0; i < kPairs; ++i) {
    VF even = x[kM], odd = x[kM - 1];
    HWY_UNROLL(8) for (int k = kPairs - 2; k >= 0; --k) {
      even = hn::MulAdd(hn::Set(d, c.others[i][k]), x[2 * k + 2], even);
      odd = hn::MulAdd(hn::Set(d, c.others[i][k]), x[2 * k + 1], odd);
    }
    y[1 + 2 * i] = hn::MulAdd(hn::Set(d, c.point[i]), odd, even);
    y[2 + 2 * i] = hn::NegMulAdd(hn::Set(d, c.point[i]), odd, even);
  }
}

// y = A^T x.
template <int kM>
HWY_INLINE void TransformOutput(const VF (&x)[kM + 2], VF (&y)[kM]) {
  constexpr const auto& c = kTransform<kM>;
  constexpr int kPairs = kM / 2;
  const F32 d;
  VF sum[kPairs], difference[kPairs];
  HWY_UNROLL(8) for (int i = 0; i < kPairs; ++i) {
    sum[i] = hn::Add(x[1 + 2 * i], x[2 + 2 * i]);
    difference[i] = hn::Sub(x[1 + 2 * i], x[2 + 2 * i]);
  }
  y[0] = x[0];
  HWY_UNROLL(8) for (int i = 0; i < kPairs; ++i) y[0] = hn::Add(y[0], sum[i]);
  HWY_UNROLL(8) for (int k = 1; k < kM; ++k) {
    const auto& terms = k % 2 ? difference : sum;
    y[k] = k == kM - 1 ? hn::MulAdd(hn::Set(d, c.power[0][k]), terms[0], x[kM + 1])
                       : hn::Mul(hn::Set(d, c.power[0][k]), terms[0]);
    HWY_UNROLL(8) for (int i = 1; i < kPairs; ++i) {
      y[k] = hn::MulAdd(hn::Set(d, c.power[i][k]), terms[i], y[k]);
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Transforms of the weights of one channel, and of one tile.

// `w` holds 3 x 3 vectors.
template <int kM>
HWY_INLINE void TransformKernelTile(const float* HWY_RESTRICT w, float* HWY_RESTRICT u,
                                    std::ptrdiff_t u_stride) {
  constexpr int kN = kM + 2;
  const F32 d;
  HWY_ALIGN float half_done[kN * 3 * kLanes];
  VF x[3], y[kN];
  HWY_UNROLL(3) for (int col = 0; col < 3; ++col) {
    HWY_UNROLL(3) for (int i = 0; i < 3; ++i) x[i] = hn::Load(d, w + (i * 3 + col) * kLanes);
    TransformKernel<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      hn::Store(y[i], d, half_done + (i * 3 + col) * kLanes);
    }
  }
  for (int row = 0; row < kN; ++row) {
    HWY_UNROLL(3) for (int i = 0; i < 3; ++i) {
      x[i] = hn::Load(d, half_done + (row * 3 + i) * kLanes);
    }
    TransformKernel<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) hn::Store(y[i], d, u + (row * kN + i) * u_stride);
  }
}

template <int kM>
HWY_INLINE void TransformInputTile(const float* HWY_RESTRICT in, std::ptrdiff_t row_stride,
                                   float* HWY_RESTRICT v, std::ptrdiff_t v_stride) {
  constexpr int kN = kM + 2;
  const F32 d;
  HWY_ALIGN float half_done[kN * kN * kLanes];
  VF x[kN], y[kN];
  for (int col = 0; col < kN; ++col) {
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      x[i] = hn::LoadU(d, in + i * row_stride + col * kLanes);
    }
    TransformInput<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      hn::Store(y[i], d, half_done + (i * kN + col) * kLanes);
    }
  }
  for (int row = 0; row < kN; ++row) {
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      x[i] = hn::Load(d, half_done + (row * kN + i) * kLanes);
    }
    TransformInput<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) hn::Store(y[i], d, v + (row * kN + i) * v_stride);
  }
}

// `addend`, where the epilogue has one, has the row stride of `out`.
template <int kM, class Finisher>
HWY_NOINLINE void TransformOutputTile(const float* HWY_RESTRICT m, std::ptrdiff_t m_stride, VF bias,
                                      VF slope, const Finisher& finish, const float* addend,
                                      float* out, std::ptrdiff_t row_stride) {
  constexpr int kN = kM + 2;
  const F32 d;
  HWY_ALIGN float half_done[kM * kN * kLanes];
  VF x[kN], y[kM];
  for (int col = 0; col < kN; ++col) {
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) x[i] = hn::Load(d, m + (i * kN + col) * m_stride);
    TransformOutput<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kM; ++i) {
      hn::Store(y[i], d, half_done + (i * kN + col) * kLanes);
    }
  }
  for (int row = 0; row < kM; ++row) {
    HWY_UNROLL(8) for (int i = 0; i < kN; ++i) {
      x[i] = hn::Load(d, half_done + (row * kN + i) * kLanes);
    }
    TransformOutput<kM>(x, y);
    HWY_UNROLL(8) for (int i = 0; i < kM; ++i) {
      const std::ptrdiff_t pixel = row * row_stride + i * kLanes;
      hn::StoreU(finish(d, hn::Add(y[i], bias), slope, addend ? addend + pixel : nullptr), d,
                 out + pixel);
    }
  }
}

// ---------------------------------------------------------------------------------------------
// Products.

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

// ---------------------------------------------------------------------------------------------
// A block of tiles.

struct TilePlace {
  std::int64_t image, row, col;  // of the first output pixel
};

inline TilePlace FindTile(const WinogradPlan& plan, std::int64_t tile) {
  constexpr std::int64_t kBandRows = 2;
  const std::int64_t per_image = plan.tiles_down * plan.tiles_across;
  const std::int64_t image = tile / per_image;
  tile %= per_image;
  const std::int64_t band = tile / (kBandRows * plan.tiles_across);
  tile -= band * kBandRows * plan.tiles_across;
  const std::int64_t rows = std::min(kBandRows, plan.tiles_down - band * kBandRows);
  return {image, (band * kBandRows + tile % rows) * plan.m, tile / rows * plan.m};
}

// Pixels of one block of channels that a tile reads or writes: rows x cols of them at `offset`.
// For inputs, that is what the image has of a square of (m + 2) x (m + 2) pixels, from its pixel
// (skipped_rows, skipped_cols) on.
struct Window {
  std::ptrdiff_t offset;
  std::int64_t rows, cols;
  std::int64_t skipped_rows = 0, skipped_cols = 0;
};

template <int kM>
Window FindInput(const WinogradPlan& plan, std::int64_t tile) {
  constexpr std::int64_t kN = kM + 2;
  const BlockedLayout& in = plan.in;
  const TilePlace place = FindTile(plan, tile);
  const std::int64_t row = place.row - plan.pad_top, col = place.col - plan.pad_left;
  const std::int64_t first_row = std::max<std::int64_t>(row, 0),
                     first_col = std::max<std::int64_t>(col, 0);
  return {.offset = place.image * in.image_stride + first_row * in.row_stride + first_col * kLanes,
          .rows = std::min(row + kN, in.height) - first_row,
          .cols = std::min(col + kN, in.width) - first_col,
          .skipped_rows = first_row - row,
          .skipped_cols = first_col - col};
}

template <int kM>
Window FindOutput(const WinogradPlan& plan, std::int64_t tile) {
  const BlockedLayout& out = plan.out;
  const TilePlace place = FindTile(plan, tile);
  return {
      .offset = place.image * out.image_stride + place.row * out.row_stride + place.col * kLanes,
      .rows = std::min<std::int64_t>(kM, out.height - place.row),
      .cols = std::min<std::int64_t>(kM, out.width - place.col)};
}

// Fetches a window into the L1 cache. The transforms jump from row to row and from plane to plane,
// where hardware prefetchers do not follow: fetching the next tile's pixels early saves a third of
// their time.
template <bool kToWrite>
HWY_INLINE void PrefetchPixels(const float* p, std::ptrdiff_t row_stride, const Window& window) {
  for (std::int64_t row = 0; row < window.rows; ++row) {
    for (std::int64_t col = 0; col < window.cols; ++col) {
      __builtin_prefetch(p + window.offset + row * row_stride + col * kLanes, kToWrite, 3);
    }
  }
}

inline void CopyPixels(const float* from, std::ptrdiff_t from_stride, float* to,
                       std::ptrdiff_t to_stride, const Window& window) {
  for (std::int64_t row = 0; row < window.rows; ++row) {
    std::copy_n(from + row * from_stride, window.cols * kLanes, to + row * to_stride);
  }
}

template <int kM>
void TransformInputBlock(const WinogradPlan& plan, const float* input, std::int64_t first,
                         std::int64_t tiles, const TransformedTiles& v) {
  constexpr int kN = kM + 2, kRowStride = kN * kLanes;
  const BlockedLayout& in = plan.in;
  Window window = FindInput<kM>(plan, first);
  for (std::int64_t t = 0; t < tiles; ++t) {
    const Window next = FindInput<kM>(plan, std::min(first + t + 1, plan.NumTiles() - 1));
    const bool whole = window.rows == kN && window.cols == kN;
    HWY_ALIGN float bordered[kN * kRowStride];
    if (!whole) std::fill(std::begin(bordered), std::end(bordered), 0.0f);
    for (std::int64_t block = 0; block < in.blocks; ++block) {
      const float* const plane = input + block * in.plane_stride;
      const float* const source = plane + window.offset;
      float* const target = v.data + block * v.vector_stride + t * kLanes;
      PrefetchPixels<false>(plane, in.row_stride, next);
      if (whole) {
        TransformInputTile<kM>(source, in.row_stride, target, v.position_stride);
      } else {
        CopyPixels(source, in.row_stride,
                   bordered + window.skipped_rows * kRowStride + window.skipped_cols * kLanes,
                   kRowStride, window);
        TransformInputTile<kM>(bordered, kRowStride, target, v.position_stride);
      }
    }
    window = next;
  }
}

template <int kM, class Finisher>
void TransformOutputBlock(const WinogradPlan& plan, const WinogradData& data,
                          const Finisher& finish, std::int64_t first, std::int64_t tiles,
                          const float* m) {
  constexpr int kRowStride = kM * kLanes;
  const F32 d;
  const BlockedLayout& out = plan.out;
  Window window = FindOutput<kM>(plan, first);
  for (std::int64_t t = 0; t < tiles; ++t) {
    const Window next = FindOutput<kM>(plan, std::min(first + t + 1, plan.NumTiles() - 1));
    const bool whole = window.rows == kM && window.cols == kM;
    for (std::int64_t block = 0; block < out.blocks; ++block) {
      const float* const source = m + (block * tiles + t) * kLanes;
      const VF bias = hn::Load(d, data.bias + block * kLanes);
      const VF slope = hn::Load(d, data.slope + block * kLanes);
      float* const plane = data.output + block * out.plane_stride;
      float* const target = plane + window.offset;
      const float* const addend =
          data.addend ? data.addend + block * out.plane_stride + window.offset : nullptr;
      PrefetchPixels<true>(plane, out.row_stride, next);
      if (data.addend && data.addend != data.output) {
        PrefetchPixels<false>(data.addend + block * out.plane_stride, out.row_stride, next);
      }
      if (whole) {
        TransformOutputTile<kM>(source, plan.position_stride, bias, slope, finish, addend, target,
                                out.row_stride);
        continue;
      }
      HWY_ALIGN float partial[kM * kRowStride];
      if (addend) {
        std::fill(std::begin(partial), std::end(partial), 0.0f);
        CopyPixels(addend, out.row_stride, partial, kRowStride, window);
      }
      TransformOutputTile<kM>(source, plan.position_stride, bias, slope, finish,
                              addend ? partial : nullptr, partial, kRowStride);
      CopyPixels(partial, kRowStride, target, out.row_stride, window);
    }
    window = next;
  }
}

// U of all channels; `weights` are [group][input channel][vector of group][3 x 3][lane].
template <int kM>
void TransformWeights(const WinogradPlan& plan, const float* weights, float* u) {
  const std::int64_t vectors = plan.in.channels * plan.out.blocks;
  for (std::int64_t i = 0; i < vectors; ++i) {
    TransformKernelTile<kM>(weights + i * 9 * kLanes, u + i * kLanes, plan.u_stride);
  }
}

// What the tiles [first, first + tiles) write, and what those after them read. Returns the end.
template <int kM>
const Run* FindRuns(const WinogradPlan& plan, const WinogradData& data, std::int64_t first,
                    std::int64_t tiles, Run* runs) {
  if (plan.max_runs == 0) return runs;
  const auto add_rows = [&](const float* image, const BlockedLayout& layout, const Window& window) {
    for (std::int64_t block = 0; block < layout.blocks; ++block) {
      const float* const plane = image + block * layout.plane_stride + window.offset;
      const std::int64_t rows = std::min<std::int64_t>(window.rows, kM);
      for (std::int64_t row = 0; row < rows; ++row) *runs++ = plane + row * layout.row_stride;
    }
  };
  const Run* const begin = runs;
  const std::int64_t end = first + tiles, next_end = std::min(end + tiles, plan.NumTiles());
  for (std::int64_t t = end; t < next_end; ++t) {
    add_rows(data.input, plan.in, FindInput<kM>(plan, t));
  }
  const bool separate_addend = data.addend != nullptr && data.addend != data.output;
  for (std::int64_t t = first; t < end; ++t) {
    const Window window = FindOutput<kM>(plan, t);
    add_rows(data.output, plan.out, window);
    if (separate_addend) add_rows(data.addend, plan.out, window);
  }
  // In whole portions, so that the products need not count.
  while ((runs - begin) % plan.RunsPerProduct() != 0) *runs++ = data.output;
  return runs;
}

// Computes the output tiles [first, first + tiles), tiles <= plan.block_tiles.
template <int kM>
void RunBlock(const WinogradPlan& plan, const WinogradData& data, std::int64_t first,
              std::int64_t tiles, float* scratch) {
  float* const m = scratch;
  float* const end = m + (plan.NumPositions() + 1) * plan.position_stride;
  auto* const runs = reinterpret_cast<Run*>(end);
  const std::int64_t runs_a_call = plan.RunsPerProduct();
  if (data.transformed.data != nullptr) {
    TransformedTiles v = data.transformed;
    v.data += first * kLanes;
    // V comes from the outer cache: what the next position reads of it.
    MultiplyBlock(plan, data.weights, v, m, tiles,
                  [&](const float* row, int first_vector) -> const Run* {
                    if (first_vector > 0 || plan.max_runs == 0) return nullptr;
                    row += v.position_stride;
                    for (std::int64_t i = 0; i < runs_a_call; i += 2, row += v.vector_stride) {
                      runs[i] = row;
                      runs[i + 1] = row + kRunFloats;
                    }
                    return runs;
                  });
  } else {
    const TransformedTiles v{m + plan.position_stride, plan.position_stride, tiles * kLanes};
    TransformInputBlock<kM>(plan, data.input, first, tiles, v);
    const Run* next = runs;
    const Run* const runs_end = FindRuns<kM>(plan, data, first, tiles, runs);
    MultiplyBlock(plan, data.weights, v, m, tiles, [&](const float*, int) -> const Run* {
      return next == runs_end ? nullptr : std::exchange(next, next + runs_a_call);
    });
  }
  WithFinisher(data.epilogue, [&](const auto& finish) HWY_ATTR {
    TransformOutputBlock<kM>(plan, data, finish, first, tiles, m);
  });
}

}  // namespace tessera::HWY_NAMESPACE::winograd
HWY_AFTER_NAMESPACE();

#endif  // include guard
