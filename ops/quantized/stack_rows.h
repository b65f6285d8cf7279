// Rows of pixels, stacked: the pixels of three rows that lie above each other, side by side. What a
// convolution's kernel of three rows covers becomes one run of memory.
#pragma once

#include <cstdint>

namespace tessera {

// Pixels are of 4 bytes: those of rows[0], rows[1], rows[2] at x make 12 bytes of `out`, for
// x < pixels.
struct StackedRows {
  static constexpr std::int64_t kRows = 3, kPixelBytes = 4, kBytes = kRows * kPixelBytes;
};
void StackRows(const std::uint8_t* const (&rows)[StackedRows::kRows], std::int64_t pixels,
               std::uint8_t* out);

}  // namespace tessera
