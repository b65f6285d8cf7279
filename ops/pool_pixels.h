// Vector kernel of MaxPool on uint8 in Layout::kChannelsLast.
#pragma once

#include <cstdint>

#include "ops/pool_rows.h"

namespace tessera {

// One output row of an image.
struct PixelPoolRow {
  const std::uint8_t* in;  // the image
  std::int64_t row_stride, pixel_stride;
  PoolTaps rows;
  std::int64_t row_dilation;
  const PoolTaps* columns;  // [width]
  std::int64_t column_dilation;
  std::int64_t width;  // of the output
  std::uint8_t* out;
};

// Windows without taps give 0.
void MaxPoolPixels(const PixelPoolRow& row);

}  // namespace tessera
