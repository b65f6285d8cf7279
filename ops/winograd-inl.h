// Vector half of the Winograd convolution (see winograd.h): a block of tiles from its input to its
// output. Included once per target.
#if defined(TESSERA_OPS_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_WINOGRAD_INL_H_
#undef TESSERA_OPS_WINOGRAD_INL_H_
#else
#define TESSERA_OPS_WINOGRAD_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hwy/highway.h"
#include "ops/epilogue-inl.h"
#include "ops/winograd.h"
#include "ops/winograd_products-inl.h"
#include "ops/winograd_transforms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE::winograd {

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
