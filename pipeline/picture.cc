#include "pipeline/picture.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/error.h"

namespace tessera {

Picture::Picture(const PictureFormat& format, std::int64_t held_rows)
    : format_(format),
      held_rows_(std::clamp<std::int64_t>(held_rows, 1, std::max<std::int64_t>(1, format.height))) {
  Require(format.width > 0 && format.height > 0 && format.channels >= 1 && format.channels <= 4 &&
              (format.bit_depth == 8 || format.bit_depth == 16),
          "no picture can have ", format.width, "x", format.height, " pixels of ", format.channels,
          " channels and ", format.bit_depth, " bits");
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(format.RowBytes(), static_cast<std::size_t>(held_rows_), &bytes))
    throw std::bad_alloc();
  samples_ = AlignedBuffer(bytes);
}

Picture Oriented(const Picture& stored, int orientation) {
  Require(orientation >= 1 && orientation <= 8, "there is no orientation ", orientation);
  const bool exchanged = orientation >= 5;
  // Whether the shown columns or rows begin at the far end of the stored ones.
  const bool from_right = orientation == 2 || orientation == 3 || orientation >= 7;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  PictureFormat format = stored.format();
  if (exchanged) std::swap(format.width, format.height);
  Picture shown(format);
  const std::size_t pixel = format.BytesPerPixel();
  for (std::int64_t y = 0; y < format.height; ++y) {
    std::byte* to = shown.Row(y);
    for (std::int64_t x = 0; x < format.width; ++x, to += pixel) {
      const std::int64_t column = exchanged ? y : x, row = exchanged ? x : y;
      const std::int64_t from_column = from_right ? stored.width() - 1 - column : column;
      const std::int64_t from_row = from_bottom ? stored.height() - 1 - row : row;
      std::memcpy(to, stored.Row(from_row) + static_cast<std::size_t>(from_column) * pixel, pixel);
    }
  }
  return shown;
}

}  // namespace tessera
