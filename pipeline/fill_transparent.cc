#include "pipeline/fill_transparent.h"

#include <algorithm>
#include <limits>

#include "ops/error.h"

namespace tessera {

std::int64_t TransparentFill::KeptRows(const PictureFormat& picture, const FillOptions& options) {
  return options.wrap_y ? picture.height : std::min(picture.height, 2 * options.reach + 1);
}

std::size_t TransparentFill::Bytes(const PictureFormat& picture, const FillOptions& options) {
  return static_cast<std::size_t>(KeptRows(picture, options) * picture.width) *
         sizeof(std::int32_t);
}

TransparentFill::TransparentFill(const Picture& picture, const FillOptions& options)
    : picture_(picture),
      options_(options),
      kept_rows_(KeptRows(picture.format(), options)),
      nearest_(static_cast<std::size_t>(kept_rows_ * picture.width())),
      has_colour_(static_cast<std::size_t>(kept_rows_)) {
  Require(
      picture.format().HasAlpha() && picture.width() <= std::numeric_limits<std::int32_t>::max(),
      "no picture with alpha");
}

void TransparentFill::RowRead(std::int64_t y) {
  const bool narrow = picture_.format().bit_depth == 8;
  const std::int64_t height = picture_.height();
  narrow ? FindNearest<std::uint8_t>(y) : FindNearest<std::uint16_t>(y);
  std::int64_t end = height;
  if (y + 1 < height) end = options_.wrap_y ? 0 : std::max(filled_, y + 1 - options_.reach);
  for (; filled_ < end; ++filled_)
    narrow ? FillRow<std::uint8_t>(filled_) : FillRow<std::uint16_t>(filled_);
}

template <typename T>
void TransparentFill::FindNearest(std::int64_t y) {
  const std::int64_t width = picture_.width(), channels = picture_.format().channels;
  const T* alpha = picture_.Row<T>(y) + channels - 1;
  const auto seen = [&](std::int64_t x) { return alpha[x * channels] != 0; };
  std::int64_t first = 0, last = width - 1;
  while (first < width && !seen(first)) ++first;
  has_colour_[static_cast<std::size_t>(y % kept_rows_)] = first < width;
  if (first == width) return;
  while (!seen(last)) --last;
  std::int32_t* nearest = Nearest(y);
  // Left of the first one, and right of the last one, there are those of the other side or none.
  constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();
  std::int64_t to_left = options_.wrap_x ? width - 1 - last : kFar;
  for (std::int64_t x = 0; x < width; ++x) {
    to_left = seen(x) ? 0 : std::min(kFar, to_left + 1);
    nearest[x] = static_cast<std::int32_t>(-to_left);
  }
  std::int64_t to_right = options_.wrap_x ? first : kFar;
  for (std::int64_t x = width - 1; x >= 0; --x) {
    to_right = seen(x) ? 0 : std::min(kFar, to_right + 1);
    if (to_right < -std::int64_t{nearest[x]}) nearest[x] = static_cast<std::int32_t>(to_right);
  }
}

template <typename T>
void TransparentFill::FillRow(std::int64_t y) {
  const std::int64_t width = picture_.width(), height = picture_.height();
  const std::int64_t channels = picture_.format().channels, colours = channels - 1;
  const auto row_at = [&](std::int64_t dy) {
    return options_.wrap_y ? ((y + dy) % height + height) % height : y + dy;
  };
  candidates_.clear();
  for (std::int64_t distance = 0; distance <= options_.reach; ++distance) {
    for (const std::int64_t dy : {-distance, distance}) {
      if (distance == 0 && !candidates_.empty()) break;
      const std::int64_t from = row_at(dy);
      if (from < 0 || from >= height) continue;
      if (has_colour_[static_cast<std::size_t>(from % kept_rows_)]) candidates_.push_back(dy);
    }
  }
  T* row = picture_.Row<T>(y);
  const T* above = y > 0 ? picture_.Row<T>(y - 1) : nullptr;
  for (std::int64_t x = 0; x < width; ++x) {
    if (row[x * channels + colours] != 0) continue;
    const T* from = above == nullptr ? nullptr : above + x * channels;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t dy : candidates_) {
      if (dy * dy >= least) break;
      const std::int64_t dx = Nearest(row_at(dy))[x];
      const std::int64_t distance = dy * dy + dx * dx;
      if (distance >= least) continue;
      least = distance;
      from = picture_.Row<T>(row_at(dy)) + (x + dx + width) % width * channels;
    }
    if (from != nullptr) std::copy(from, from + colours, row + x * channels);
  }
}

}  // namespace tessera
