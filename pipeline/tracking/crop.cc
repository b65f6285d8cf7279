#include "pipeline/tracking/crop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "hwy/cache_control.h"
#include "ops/error.h"
#include "pipeline/tracking/crop_rows.h"
#include "simd/aligned_buffer.h"

namespace tessera {
namespace {

// No frame reaches so far, and sums of such numbers are far from overflow.
constexpr std::int64_t kFarAway = std::int64_t{1} << 40;

// The weights of two taps add up to 2048 then: in single precision 1 - t is off by 2^-25 at most,
// and t is a tie between two weights or at least 1 / (4096 * kMaxOut) away from one.
constexpr std::int64_t kMaxOut = 4096;

// Rows of the patch between the fetching of their pixels and their use.
constexpr std::int64_t kRowsAhead = 2;

std::int64_t FirstPixel(double centre, std::int64_t side) {
  const double first = std::floor(centre - (static_cast<double>(side) + 1) / 2 + 0.5);
  constexpr auto kLimit = static_cast<double>(kFarAway);
  if (!(first > -kLimit)) return -kFarAway;
  return first < kLimit ? static_cast<std::int64_t>(first) : kFarAway;
}

std::size_t Size(std::int64_t n) { return static_cast<std::size_t>(n); }

// Between which source pixels an output pixel lies, and their weights.
struct Tap {
  std::int64_t first = 0;  // the other one follows; may lie outside by one
  int weight0 = 2048, weight1 = 0;
};

// Single precision, as the resize that is followed has it.
class Axis {
 public:
  Axis(std::int64_t side, std::int64_t out)
      : scale_(1 / (static_cast<double>(out) / static_cast<double>(side))) {}

  Tap operator[](std::int64_t i) const {
    const auto at = static_cast<float>((static_cast<double>(i) + 0.5) * scale_ - 0.5);
    auto first = static_cast<std::int64_t>(at);
    if (static_cast<float>(first) > at) --first;
    const float t = at - static_cast<float>(first);
    return {first, Weight(1 - t), Weight(t)};
  }

 private:
  // The sum has no bits for fractions: it is rounded to nearest, ties to even.
  static int Weight(float share) {
    constexpr float kRound = 1 << 23;
    return static_cast<int>((share * 2048 + kRound) - kRound);
  }

  double scale_;
};

// The pixels of a window, row by row, with the fill where the frame has none.
class WindowRows {
 public:
  static constexpr std::int64_t kOutside = -1;

  // For windows that show so many pixels of a row.
  void Reserve(std::int64_t pixels);

  void Start(const FrameView& frame, const CropWindow& window,
             const std::array<std::uint8_t, 3>& fill);

  // The row of the frame that a row of the window is; kOutside beyond the frame. Rows beyond the
  // window are its first or last one.
  std::int64_t FrameRow(std::int64_t row) const {
    const std::int64_t y = window_.y + std::clamp<std::int64_t>(row, 0, window_.side - 1);
    return y >= 0 && y < frame_.height ? y : kOutside;
  }

  // Fetches a row that is needed soon: frames are larger than the caches, and each row begins where
  // no pattern leads to.
  void Prefetch(std::int64_t frame_row) const {
    if (frame_row == kOutside) return;
    const std::uint8_t* pixels = frame_.Row(frame_row);
    for (std::int64_t i = 3 * begin_; i < 3 * end_; i += kCacheLine) hwy::Prefetch(pixels + i);
  }

  // Pixels of a row of the frame: 16 bytes are readable from the Offset of any of the window's
  // columns on.
  const std::uint8_t* Pixels(std::int64_t frame_row);
  std::ptrdiff_t Offset(std::int64_t column) const {
    if (inside_) return 3 * column;
    return 3 * (std::clamp(window_.x + column, begin_ - kLeft, end_) - (begin_ - kLeft));
  }

 private:
  // Filled columns on both sides of the visible ones: all that lies beyond has the same pixels.
  static constexpr std::int64_t kLeft = 2, kRight = 6;
  static constexpr std::int64_t kCacheLine = 64;

  FrameView frame_;
  CropWindow window_;
  std::int64_t begin_ = 0, end_ = 0;  // columns of the frame that are seen
  bool inside_ = false;               // rows are read from the frame itself
  std::vector<std::uint8_t> row_, fill_row_;
};

void WindowRows::Reserve(std::int64_t pixels) {
  const std::size_t bytes = 3 * Size(kLeft + pixels + kRight);
  if (bytes <= row_.size()) return;
  row_.resize(bytes);
  fill_row_.resize(bytes);
}

void WindowRows::Start(const FrameView& frame, const CropWindow& window,
                       const std::array<std::uint8_t, 3>& fill) {
  frame_ = frame;
  window_ = window;
  begin_ = std::clamp<std::int64_t>(window.x, 0, frame.width);
  end_ = std::clamp<std::int64_t>(window.x + window.side, 0, frame.width);
  inside_ = window.x >= 0 && window.x + window.side + kRight <= frame.width;
  Reserve(end_ - begin_);
  const auto fill_pixels = [&](std::uint8_t* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) std::copy(fill.begin(), fill.end(), to + 3 * i);
  };
  fill_pixels(fill_row_.data(), kLeft + end_ - begin_ + kRight);
  fill_pixels(row_.data(), kLeft);
  fill_pixels(row_.data() + 3 * (kLeft + end_ - begin_), kRight);
}

const std::uint8_t* WindowRows::Pixels(std::int64_t frame_row) {
  if (frame_row == kOutside) return fill_row_.data();
  const std::uint8_t* visible = frame_.Row(frame_row) + 3 * begin_;
  if (inside_) return visible;
  std::copy_n(visible, 3 * (end_ - begin_), row_.data() + 3 * kLeft);
  return row_.data();
}

}  // namespace

CropWindow WindowAround(double centre_x, double centre_y, std::int64_t side) {
  return {FirstPixel(centre_x, side), FirstPixel(centre_y, side), side};
}

std::array<double, 3> MeanColour(const FrameView& frame) {
  Require(frame.width > 0 && frame.height > 0, "a frame has no pixels");
  std::array<std::uint64_t, 3> sums{};
  for (std::int64_t y = 0; y < frame.height; ++y) AddRow(frame.Row(y), frame.width, sums);
  std::array<double, 3> mean;
  const double pixels = static_cast<double>(frame.width) * static_cast<double>(frame.height);
  for (std::size_t c = 0; c < 3; ++c) mean[c] = static_cast<double>(sums[c]) / pixels;
  return mean;
}

struct PatchCutter::Impl {
  Impl(std::int64_t out, const PixelScaling& scaling);

  void SetColumns(std::int64_t side);
  // A row of the frame, scaled, as one of two that are kept; `other` is not the one that goes.
  const std::int16_t* Scaled(std::int64_t row, std::int64_t other);

  std::int64_t out, columns;
  PixelScaling scaling;
  WindowRows rows;
  CropTaps taps;
  AlignedBuffer offsets, places, weights;  // of the taps
  std::array<AlignedBuffer, 2> scaled;
  std::array<std::int64_t, 2> scaled_rows;
  std::vector<float> last_rows;  // for those whose vectors would reach beyond a plane
};

PatchCutter::Impl::Impl(std::int64_t out_size, const PixelScaling& pixel_scaling)
    : out(out_size),
      columns(static_cast<std::int64_t>(RoundUp(Size(out_size), Size(kCropGroup)))),
      scaling(pixel_scaling),
      offsets(Size(columns) * sizeof(std::ptrdiff_t)),
      places(Size(columns) * 8),
      weights(Size(columns) * 4 * sizeof(std::int16_t)),
      last_rows(3 * Size(columns)) {
  for (AlignedBuffer& row : scaled) row = AlignedBuffer(Size(columns) * 4 * sizeof(std::int16_t));
  std::memset(places.data(), 0x80, places.size());
  taps = {columns, offsets.As<std::ptrdiff_t>(), false, places.As<std::uint8_t>(),
          weights.As<std::int16_t>()};
}

void PatchCutter::Impl::SetColumns(std::int64_t side) {
  const Axis axis(side, out);
  // The two columns of a block begin 3 pixels apart at the most: 5 pixels hold their neighbours.
  taps.apart = 2 * side > 5 * out;
  for (std::int64_t block = 0; block < columns / 2; ++block) {
    auto* offset = offsets.As<std::ptrdiff_t>() + 2 * block;
    auto* place = places.As<std::uint8_t>() + 16 * block;
    auto* weight = weights.As<std::int16_t>() + 8 * block;
    for (std::int64_t i = 0; i < 2; ++i) {
      Tap tap = axis[std::min(2 * block + i, out - 1)];
      if (tap.first < 0) tap = Tap{};
      if (tap.first >= side - 1) tap = Tap{side - 1};
      offset[i] = rows.Offset(tap.first);
      const std::ptrdiff_t begin = i == 0 ? 0 : taps.apart ? 8 : offset[1] - offset[0];
      const auto near = static_cast<std::uint8_t>(begin + (tap.weight1 > tap.weight0 ? 3 : 0));
      const auto far = static_cast<std::uint8_t>(begin + (tap.weight1 > tap.weight0 ? 0 : 3));
      for (std::uint8_t channel = 0; channel < 3; ++channel) {
        const std::int64_t value = 2 * i + channel + (channel == 2 ? 2 : 0);
        place[2 * value] = static_cast<std::uint8_t>(far + channel);
        place[2 * value + 1] = static_cast<std::uint8_t>(near + channel);
        weight[value] = static_cast<std::int16_t>(-32 * std::min(tap.weight0, tap.weight1));
      }
      weight[2 * i + 5] = 0;
    }
  }
}

const std::int16_t* PatchCutter::Impl::Scaled(std::int64_t row, std::int64_t other) {
  for (std::size_t i = 0; i < 2; ++i)
    if (scaled_rows[i] == row) return scaled[i].As<std::int16_t>();
  const std::size_t i = scaled_rows[0] == other ? 1 : 0;
  ScaleCropRow(taps, rows.Pixels(row), scaled[i].As<std::int16_t>());
  scaled_rows[i] = row;
  return scaled[i].As<std::int16_t>();
}

PatchCutter::PatchCutter(std::int64_t out, const PixelScaling& scaling) {
  Require(out > 0 && out <= kMaxOut, "patches of ", out, " pixels");
  impl_ = std::make_unique<Impl>(out, scaling);
}
PatchCutter::~PatchCutter() = default;

void PatchCutter::Reserve(std::int64_t max_side) { impl_->rows.Reserve(max_side); }

void PatchCutter::Cut(const FrameView& frame, const CropWindow& window,
                      const std::array<std::uint8_t, 3>& fill, float* planes) {
  const auto is_near = [](std::int64_t v) { return -kFarAway <= v && v <= kFarAway; };
  Require(window.side > 0 && is_near(window.side) && is_near(window.x) && is_near(window.y),
          "a window of ", window.side, " pixels at ", window.x, ", ", window.y);
  Impl& m = *impl_;
  m.rows.Start(frame, window, fill);
  m.SetColumns(window.side);
  m.scaled_rows.fill(WindowRows::kOutside - 1);  // none

  CropPlanes to;
  std::array<float*, 3> plane;
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t place = m.scaling.rgb ? 2 - c : c;
    plane[c] = planes + static_cast<std::ptrdiff_t>(place) * m.out * m.out;
    to.mean[c] = m.scaling.mean[place];
    to.factor[c] = 1 / m.scaling.deviation[place];
  }
  const Axis axis(window.side, m.out);
  for (std::int64_t row = 0; row < m.out; ++row) {
    const Tap tap = axis[row];
    const std::int64_t first = m.rows.FrameRow(tap.first), second = m.rows.FrameRow(tap.first + 1);
    if (row + kRowsAhead < m.out) {
      const Tap later = axis[row + kRowsAhead];
      m.rows.Prefetch(m.rows.FrameRow(later.first));
      m.rows.Prefetch(m.rows.FrameRow(later.first + 1));
    }
    const std::int16_t* above = m.Scaled(first, second);
    const std::int16_t* below = m.Scaled(second, first);
    // Rows end with a whole vector. The next row overwrites what is too much; after the last ones
    // there is no room for it.
    const bool has_room = (m.out - row) * m.out >= m.columns;
    for (std::size_t c = 0; c < 3; ++c)
      to.row[c] = has_room ? plane[c] + row * m.out : m.last_rows.data() + Size(m.columns) * c;
    BlendCropRows(above, below, tap.weight0, tap.weight1, m.columns, m.out, to);
    if (has_room) continue;
    for (std::size_t c = 0; c < 3; ++c) std::copy_n(to.row[c], m.out, plane[c] + row * m.out);
  }
}

}  // namespace tessera
