// A decoded picture: interleaved integer samples, row by row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd/aligned_buffer.h"

namespace tessera {

// Width, height and what a pixel is made of.
struct PictureFormat {
  std::int64_t width = 0, height = 0;
  int channels = 3;   // 1: grey, 2: grey + alpha, 3: RGB, 4: RGB + alpha
  int bit_depth = 8;  // 8 or 16, unsigned

  bool HasAlpha() const { return channels % 2 == 0; }
  int ColourChannels() const { return HasAlpha() ? channels - 1 : channels; }  // 1 or 3
  int MaxValue() const { return (1 << bit_depth) - 1; }
  std::size_t BytesPerPixel() const {
    return static_cast<std::size_t>(channels) * static_cast<std::size_t>(bit_depth / 8);
  }
  std::size_t RowBytes() const { return static_cast<std::size_t>(width) * BytesPerPixel(); }
  bool operator==(const PictureFormat&) const = default;
};

// A rectangle of pixels: columns [x, x + width), rows [y, y + height).
struct Rect {
  std::int64_t x = 0, y = 0, width = 0, height = 0;

  std::int64_t right() const { return x + width; }
  std::int64_t bottom() const { return y + height; }
  bool operator==(const Rect&) const = default;
};

// Pixels that an input may have, unless more are allowed.
inline constexpr std::int64_t kMaxInputPixels = std::int64_t{1} << 30;

// Rows follow each other without gaps; 16-bit samples are in the machine's byte order; alpha is
// not premultiplied. Movable.
//
// A picture may hold a window of its rows only, while it passes from file to file: then rows
// y and y + held_rows() share their memory, and whoever uses it sees to it that the one is done
// with before the other comes.
class Picture {
 public:
  Picture() = default;
  // Uninitialised. Throws Error for empty sizes and std::bad_alloc.
  explicit Picture(const PictureFormat& format) : Picture(format, format.height) {}
  Picture(const PictureFormat& format, std::int64_t held_rows);

  const PictureFormat& format() const { return format_; }
  std::int64_t width() const { return format_.width; }
  std::int64_t height() const { return format_.height; }

  std::int64_t held_rows() const { return held_rows_; }

  std::byte* Row(std::int64_t y) const {
    return samples_.data() + static_cast<std::size_t>(y % held_rows_) * format_.RowBytes();
  }
  // T is std::uint8_t or std::uint16_t, as the bit depth says.
  template <typename T>
  T* Row(std::int64_t y) const {
    return reinterpret_cast<T*>(Row(y));
  }
  std::size_t bytes() const { return samples_.size(); }

 private:
  PictureFormat format_;
  std::int64_t held_rows_ = 1;
  AlignedBuffer samples_;
};

// The picture as it is to be looked at, by the value of an EXIF or TIFF orientation tag: 2 to 4
// turn and mirror, 5 to 8 exchange rows and columns besides.
Picture Oriented(const Picture& stored, int orientation);

}  // namespace tessera
