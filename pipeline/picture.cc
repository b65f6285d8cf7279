#include "pipeline/picture.h"

#include "ops/error.h"

namespace tessera {

Picture::Picture(const PictureFormat& format) : format_(format) {
  Require(format.width > 0 && format.height > 0 && format.channels >= 1 && format.channels <= 4 &&
              (format.bit_depth == 8 || format.bit_depth == 16),
          "no picture can have ", format.width, "x", format.height, " pixels of ", format.channels,
          " channels and ", format.bit_depth, " bits");
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(format.RowBytes(), static_cast<std::size_t>(format.height), &bytes))
    throw std::bad_alloc();
  samples_ = AlignedBuffer(bytes);
}

}  // namespace tessera
