#include "ops/quantized/quantized_input.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/quantize_pixels.h"

namespace tessera {

QuantizedInput::QuantizedInput(const QuantizedConvParams& params, std::int64_t most_cols)
    : p_(params.conv),
      x_(params.x),
      from_float_(params.from_float),
      in_({p_.batch, p_.in_channels, p_.in_height, p_.in_width}),
      most_pixels_(InputExtent(most_cols, p_.stride_w, p_.kernel_w, p_.dilation_w)),
      blank_row_(static_cast<std::size_t>(CanStack() ? StackedBytes() / StackedRows::kRows : 0),
                 static_cast<std::uint8_t>(x_.zero_point)) {}

bool QuantizedInput::CanStack() const {
  return p_.kernel_h == StackedRows::kRows && in_.pixel_stride == StackedRows::kPixelBytes;
}

QuantizedInput::Columns QuantizedInput::FindColumns(const Task& task) const {
  const std::int64_t left = task.x0 * p_.stride_w - p_.pad_left;
  const std::int64_t count = InputExtent(task.cols, p_.stride_w, p_.kernel_w, p_.dilation_w);
  const std::int64_t begin = std::clamp<std::int64_t>(-left, 0, count);
  return {left, count, begin, std::clamp<std::int64_t>(p_.in_width - left, begin, count)};
}

void QuantizedInput::Blank(std::uint8_t* row, std::int64_t pixel_bytes, std::int64_t first,
                           std::int64_t last) const {
  std::memset(row + first * pixel_bytes, x_.zero_point,
              static_cast<std::size_t>((last - first) * pixel_bytes));
}

const std::uint8_t* QuantizedInput::Bytes(const Task& task, std::int64_t y, std::int64_t x) const {
  return static_cast<const std::uint8_t*>(task.x) + task.image * in_.image_stride +
         y * in_.row_stride + x * in_.pixel_stride;
}

void QuantizedInput::Quantize(const Task& task, std::int64_t y, std::int64_t x, std::int64_t count,
                              std::uint8_t* pixels) const {
  const PixelRun run = {x_.scale, x_.zero_point, static_cast<std::size_t>(in_.channels),
                        static_cast<std::size_t>(in_.pixel_stride),
                        static_cast<std::size_t>(count)};
  const std::int64_t plane = in_.height * in_.width;
  QuantizePlanes(
      run,
      static_cast<const float*>(task.x) + task.image * in_.channels * plane + y * in_.width + x,
      static_cast<std::size_t>(plane), pixels);
}

void QuantizedInput::Copy(const Task& task, std::int64_t rows, std::int64_t pitch,
                          std::uint8_t* copy) const {
  const std::int64_t in_rows = InputExtent(rows, p_.stride_h, p_.kernel_h, p_.dilation_h);
  const std::int64_t top = task.y0 * p_.stride_h - p_.pad_top, pixel = in_.pixel_stride;
  const auto [left, count, begin, end] = FindColumns(task);
  for (std::int64_t y = top; y < top + in_rows; ++y, copy += pitch) {
    if (y < 0 || y >= p_.in_height || begin == end) {
      Blank(copy, pixel, 0, count);
      continue;
    }
    Blank(copy, pixel, 0, begin);
    if (from_float_) {
      Quantize(task, y, left + begin, end - begin, copy + begin * pixel);
    } else {
      std::memcpy(copy + begin * pixel, Bytes(task, y, left + begin),
                  static_cast<std::size_t>((end - begin) * pixel));
    }
    Blank(copy, pixel, end, count);
  }
}

void QuantizedInput::Stacker::Stack(std::int64_t y, std::int64_t rows, std::uint8_t* stacked) {
  for (const std::int64_t end = y + rows; y < end; ++y, stacked += input_.StackedBytes()) {
    StackRow(y, stacked);
  }
}

void QuantizedInput::Stacker::StackRow(std::int64_t y, std::uint8_t* stacked) {
  const ConvParams& p = input_.p_;
  const auto [left, count, begin, end] = input_.FindColumns(task_);
  const std::uint8_t* rows[StackedRows::kRows];
  for (std::int64_t r = 0; r < StackedRows::kRows; ++r) {
    const std::int64_t in_y = (task_.y0 + y) * p.stride_h - p.pad_top + r * p.dilation_h;
    if (in_y < 0 || in_y >= p.in_height || begin == end) {
      rows[r] = input_.blank_row_.data();
    } else if (input_.from_float_) {
      // Those of one output row have different places.
      const std::int64_t place = in_y / p.dilation_h % StackedRows::kRows;
      std::uint8_t* const row = ring_ + place * input_.most_pixels_ * StackedRows::kPixelBytes;
      if (std::exchange(held_[static_cast<std::size_t>(place)], in_y) != in_y) {
        input_.Quantize(task_, in_y, left + begin, end - begin, row);
      }
      rows[r] = row;
    } else {
      rows[r] = input_.Bytes(task_, in_y, left + begin);
    }
  }
  input_.Blank(stacked, StackedRows::kBytes, 0, begin);
  StackRows(rows, end - begin, stacked + begin * StackedRows::kBytes);
  input_.Blank(stacked, StackedRows::kBytes, end, count);
}

}  // namespace tessera
