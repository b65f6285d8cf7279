// What a task of a QuantizedConv reads: the pixels of its input with the pads around them, as they
// are or stacked (stack_rows.h). Those of a float32 input are quantised on their way.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/quantized/quantized_conv.h"
#include "ops/quantized/stack_rows.h"

namespace tessera {

// Input pixels along an axis that so many outputs need.
inline std::int64_t InputExtent(std::int64_t outputs, std::int64_t stride, std::int64_t kernel,
                                std::int64_t dilation) {
  return (outputs - 1) * stride + (kernel - 1) * dilation + 1;
}

class QuantizedInput {
 public:
  // The input is channels-last, or float32 as CanQuantizeInput has it. Tasks are up to `most_cols`
  // output pixels wide.
  QuantizedInput(const QuantizedConvParams& params, std::int64_t most_cols);

  // The output pixels of a task: rows from y0 on, of which the caller says how many, and columns.
  struct Task {
    const void* x;  // the whole input
    std::int64_t image, y0, x0, cols;
  };

  // Input rows of `rows` output rows, `pitch` bytes from one to the next.
  void Copy(const Task& task, std::int64_t rows, std::int64_t pitch, std::uint8_t* copy) const;

  // Stacks input rows, StackedBytes() for each output row, of kernels of three rows and pixels of 4
  // bytes.
  class Stacker {
   public:
    // Of a task; `ring`, of RingBytes(), holds quantised rows.
    Stacker(const QuantizedInput& input, const Task& task, std::uint8_t* ring)
        : input_(input), task_(task), ring_(ring) {}
    // For `rows` output rows from the task's row y on. From top to bottom, no row is quantised
    // twice.
    void Stack(std::int64_t y, std::int64_t rows, std::uint8_t* stacked);

   private:
    void StackRow(std::int64_t y, std::uint8_t* stacked);

    const QuantizedInput& input_;
    Task task_;
    std::uint8_t* ring_;
    std::array<std::int64_t, StackedRows::kRows> held_ = {-1, -1, -1};  // rows in the ring
  };
  std::int64_t StackedBytes() const { return most_pixels_ * StackedRows::kBytes; }
  std::int64_t RingBytes() const {
    const std::int64_t row = StackedRows::kPixelBytes * most_pixels_;
    return from_float_ ? (StackedRows::kRows * row + 63) / 64 * 64 : 0;
  }

 private:
  // The input's columns that a task reads.
  struct Columns {
    std::int64_t left, count;  // the first, which may lie outside of the image
    std::int64_t begin, end;   // of `count`, those in the image
  };
  Columns FindColumns(const Task& task) const;

  bool CanStack() const;

  // Pixels [first, last) of a row of pixels of so many bytes become x's zero point.
  void Blank(std::uint8_t* row, std::int64_t pixel_bytes, std::int64_t first,
             std::int64_t last) const;

  // Pixels of row y from x on: where they lie in an input of bytes, and from one of floats.
  const std::uint8_t* Bytes(const Task& task, std::int64_t y, std::int64_t x) const;
  void Quantize(const Task& task, std::int64_t y, std::int64_t x, std::int64_t count,
                std::uint8_t* pixels) const;

  ConvParams p_;
  Quantization x_;
  bool from_float_;
  ChannelsLastLayout in_;
  std::int64_t most_pixels_;  // in a row of a task
  std::vector<std::uint8_t> blank_row_;
};

}  // namespace tessera
