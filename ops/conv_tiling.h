// How convolution kernels cut their work, and the copy of the input that they work on.
//
// A task is a tile of output pixels. The input pixels that it depends on are copied once into the
// thread's scratch memory, with zeros where the convolution pads, so that the inner loops know
// nothing of borders. Columns of the copy are sorted by phase (source column modulo stride): what
// neighbouring output pixels multiply with one tap lies side by side, whatever the stride. The
// copy costs a percent or less of the products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/conv.h"
#include "ops/window.h"

namespace tessera {

struct ConvTiling {
  // Output pixels of a tile (those at the right and bottom may be smaller), and numbers of tiles.
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_tiles = 0, col_tiles = 0;
  // Of the input copy: rows, and columns of one phase. Its columns are [stride_w][phase_cols].
  std::int64_t in_rows = 0, phase_cols = 0;

  std::int64_t NumTiles() const { return row_tiles * col_tiles; }
};

// What a copy of the input holds at a time.
enum class InputCopy {
  kTile,     // all that the tile depends on
  kRolling,  // what one output row depends on; input row r replaces row r - in_rows
};

// Tiles whose input copy, with `floats_per_pixel` for each input pixel, stays in the L2 cache, and
// that are enough of to keep several threads busy, if there are `parallel_parts` like this one.
// Columns are cut at multiples of `col_multiple`. Depends on nothing but its arguments.
ConvTiling ChooseTiling(const ConvParams& p, InputCopy copy, std::int64_t floats_per_pixel,
                        std::int64_t col_multiple, std::int64_t parallel_parts);

// Whether a tile of one row fits into a sensible amount of scratch memory (extreme dilations and
// kernel sizes do not).
bool FitsTiling(const ConvParams& p);

// Place of tap (kh, kw) in the input copy relative to tap (0, 0), for each tap in order; one pixel
// is `pixel_stride` floats, one row `row_stride`.
std::vector<std::ptrdiff_t> TapOffsets(const ConvParams& p, std::int64_t phase_cols,
                                       std::int64_t pixel_stride, std::int64_t row_stride);

// Kernel rows (taps kh) that fall into the image for output row `y`.
inline Range ValidTaps(std::int64_t y, std::int64_t stride, std::int64_t pad, std::int64_t dilation,
                       std::int64_t kernel, std::int64_t size) {
  return StepsInside(y * stride - pad, dilation, kernel, size);
}

// Places i in [0, count) of a phase that are inside of the image, whose source columns are
// first + i * stride.
struct PhaseColumns {
  std::int64_t first;
  Range inside;
};
inline PhaseColumns ColumnsOfPhase(const ConvParams& p, std::int64_t out_x, std::int64_t phase,
                                   std::int64_t count) {
  const std::int64_t first = out_x * p.stride_w - p.pad_left + phase;
  return {first, StepsInside(first, p.stride_w, count, p.in_width)};
}

// Whether any tap reads columns of `phase`, or row `r` of the copy for one of `rows` output rows.
bool PhaseIsRead(const ConvParams& p, std::int64_t phase);
bool RowIsRead(const ConvParams& p, std::int64_t r, std::int64_t rows);

}  // namespace tessera
