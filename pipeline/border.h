// How a picture goes on beyond its border.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera {

enum class BorderMode : std::uint8_t {
  kReflect,  // about the outermost pixel, as far as that goes, then the last value of it
  kWrap,     // with the other end
};

// The pixel of an axis of `length` pixels that stands for pixel i, which may lie beyond its ends.
inline std::int64_t BorderSource(std::int64_t i, std::int64_t length, BorderMode mode) {
  if (i >= 0 && i < length) return i;
  if (mode == BorderMode::kWrap) return (i % length + length) % length;
  if (i < 0) return std::min(-i, length - 1);
  return std::max<std::int64_t>(2 * (length - 1) - i, 0);
}

struct Border {
  BorderMode x = BorderMode::kReflect, y = BorderMode::kReflect;
};

// Pixels [begin, end) of an axis.
struct Span {
  std::int64_t begin = 0, end = 0;
  std::int64_t length() const { return end - begin; }
};

// The least span that holds everything that stands for the pixels of `wanted`.
inline Span BorderSources(const Span& wanted, std::int64_t length, BorderMode mode) {
  if (wanted.begin >= 0 && wanted.end <= length) return wanted;
  if (mode == BorderMode::kWrap) return {0, length};
  const std::int64_t first = BorderSource(wanted.begin, length, mode);
  const std::int64_t last = BorderSource(wanted.end - 1, length, mode);
  Span sources{std::min(first, last), std::max(first, last) + 1};
  if (wanted.begin <= 0 && wanted.end > 0) sources.begin = 0;
  if (wanted.begin < length && wanted.end >= length) sources.end = length;
  return sources;
}

}  // namespace tessera
