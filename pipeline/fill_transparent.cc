#include "pipeline/fill_transparent.h"

#include <algorithm>
#include <limits>

#include "ops/error.h"

namespace tessera {

TransparentFill::TransparentFill(const Picture& picture)
    : picture_(picture),
      nearest_(static_cast<std::size_t>((2 * kReach + 1) * picture.width()), kNone) {
  Require(
      picture.format().HasAlpha() && picture.width() <= std::numeric_limits<std::int32_t>::max(),
      "no picture with alpha");
}

void TransparentFill::RowRead(std::int64_t y) {
  const bool narrow = picture_.format().bit_depth == 8;
  const std::int64_t height = picture_.height();
  narrow ? FindNearest<std::uint8_t>(y) : FindNearest<std::uint16_t>(y);
  const std::int64_t end = y + 1 == height ? height : std::max(filled_, y + 1 - kReach);
  for (; filled_ < end; ++filled_)
    narrow ? FillRow<std::uint8_t>(filled_) : FillRow<std::uint16_t>(filled_);
}

template <typename T>
void TransparentFill::FindNearest(std::int64_t y) {
  const std::int64_t width = picture_.width(), channels = picture_.format().channels;
  const T* alpha = picture_.Row<T>(y) + channels - 1;
  std::int32_t* nearest = Nearest(y);
  std::int32_t last = kNone;
  for (std::int64_t x = 0; x < width; ++x) {
    if (alpha[x * channels] != 0) last = static_cast<std::int32_t>(x);
    nearest[x] = last;
  }
  std::int32_t next = kNone;
  for (std::int64_t x = width - 1; x >= 0; --x) {
    if (alpha[x * channels] != 0) next = static_cast<std::int32_t>(x);
    if (next != kNone && (nearest[x] == kNone || next - x < x - nearest[x])) nearest[x] = next;
  }
}

template <typename T>
void TransparentFill::FillRow(std::int64_t y) {
  const std::int64_t width = picture_.width(), channels = picture_.format().channels;
  const std::int64_t colours = channels - 1;
  T* row = picture_.Row<T>(y);
  const T* above = y > 0 ? picture_.Row<T>(y - 1) : nullptr;
  const std::int64_t up = std::min(kReach, y), down = std::min(kReach, picture_.height() - 1 - y);
  for (std::int64_t x = 0; x < width; ++x) {
    if (row[x * channels + colours] != 0) continue;
    const T* from = above == nullptr ? nullptr : above + x * channels;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    const auto look = [&](std::int64_t dy) {
      const std::int64_t column = Nearest(y + dy)[x];
      if (column == kNone) return;
      const std::int64_t distance = dy * dy + (column - x) * (column - x);
      if (distance >= least) return;
      least = distance;
      from = picture_.Row<T>(y + dy) + column * channels;
    };
    for (std::int64_t dy = 0; dy <= kReach && dy * dy < least; ++dy) {
      if (dy <= up) look(-dy);
      if (dy <= down) look(dy);
    }
    if (from != nullptr) std::copy(from, from + colours, row + x * channels);
  }
}

}  // namespace tessera
