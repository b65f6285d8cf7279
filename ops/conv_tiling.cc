#include "ops/conv_tiling.h"

namespace tessera {
namespace {

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t PhaseCols(const ConvParams& p, std::int64_t cols) {
  return cols + (p.kernel_w - 1) * p.dilation_w / p.stride_w;
}
std::int64_t InRows(const ConvParams& p, std::int64_t rows) {
  return (rows - 1) * p.stride_h + (p.kernel_h - 1) * p.dilation_h + 1;
}

}  // namespace

ConvTiling ChooseTiling(const ConvParams& p, InputCopy copy, std::int64_t floats_per_pixel,
                        std::int64_t col_multiple, std::int64_t parallel_parts) {
  // A share of the smallest L2 cache that is still common (256 KB); weights pass through it too.
  constexpr std::int64_t kInputFloats = 160 * 1024 / sizeof(float);
  // Tiles that keep a few threads busy to the end. A tile of fewer rows spends its time on copying.
  constexpr std::int64_t kWantedTasks = 8, kMinRows = 4;

  ConvTiling t;
  const std::int64_t width = std::max<std::int64_t>(1, p.out_width);
  const std::int64_t height = std::max<std::int64_t>(1, p.out_height);
  const auto in_rows = [&](std::int64_t rows) {
    return InRows(p, copy == InputCopy::kRolling ? 1 : rows);
  };
  const auto floats = [&](std::int64_t rows, std::int64_t cols) {
    return in_rows(rows) * PhaseCols(p, cols) * p.stride_w * floats_per_pixel;
  };

  // An empty batch has no tasks at all.
  const std::int64_t parts = std::max<std::int64_t>(1, parallel_parts);
  t.cols = CeilDiv(width, CeilDiv(kWantedTasks, height * parts));
  while (t.cols > col_multiple && floats(1, t.cols) > kInputFloats / 2) t.cols = CeilDiv(t.cols, 2);
  if (t.cols < width) t.cols = std::min(width, CeilDiv(t.cols, col_multiple) * col_multiple);
  t.col_tiles = CeilDiv(width, t.cols);

  const std::int64_t other_tasks = t.col_tiles * parts;
  const std::int64_t most_rows = std::max(kMinRows, height / CeilDiv(kWantedTasks, other_tasks));
  t.rows = 1;
  while (t.rows < std::min(height, most_rows) && floats(t.rows + 1, t.cols) <= kInputFloats) {
    ++t.rows;
  }
  t.row_tiles = CeilDiv(height, t.rows);
  t.rows = CeilDiv(height, t.row_tiles);  // evenly
  t.row_tiles = CeilDiv(height, t.rows);

  t.in_rows = in_rows(t.rows);
  t.phase_cols = PhaseCols(p, t.cols);
  return t;
}

bool FitsTiling(const ConvParams& p) {
  constexpr std::int64_t kMaxPixels = std::int64_t{1} << 14, kMaxFloats = std::int64_t{1} << 26;
  const std::int64_t rows = InRows(p, 1);
  const std::int64_t cols = PhaseCols(p, 64);  // 64: no kernel needs wider tiles than that
  if (rows > kMaxPixels || cols > kMaxPixels || p.stride_w > kMaxPixels / cols) return false;
  return rows * cols * p.stride_w <= kMaxFloats / p.in_channels;
}

std::vector<std::ptrdiff_t> TapOffsets(const ConvParams& p, std::int64_t phase_cols,
                                       std::int64_t pixel_stride, std::int64_t row_stride) {
  std::vector<std::ptrdiff_t> offsets;
  for (std::int64_t kh = 0; kh < p.kernel_h; ++kh) {
    for (std::int64_t kw = 0; kw < p.kernel_w; ++kw) {
      const std::int64_t column = kw * p.dilation_w;
      offsets.push_back(kh * p.dilation_h * row_stride +
                        (column % p.stride_w * phase_cols + column / p.stride_w) * pixel_stride);
    }
  }
  return offsets;
}

bool PhaseIsRead(const ConvParams& p, std::int64_t phase) {
  for (std::int64_t kw = 0; kw < p.kernel_w; ++kw) {
    if (kw * p.dilation_w % p.stride_w == phase) return true;
  }
  return false;
}

bool RowIsRead(const ConvParams& p, std::int64_t r, std::int64_t rows) {
  for (std::int64_t kh = 0; kh < p.kernel_h; ++kh) {
    const std::int64_t offset = r - kh * p.dilation_h;
    if (offset >= 0 && offset % p.stride_h == 0 && offset / p.stride_h < rows) return true;
  }
  return false;
}

}  // namespace tessera
