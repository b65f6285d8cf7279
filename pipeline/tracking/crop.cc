#include "pipeline/tracking/crop.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "ops/error.h"
#include "pipeline/tracking/crop_rows.h"
#include "simd/aligned_buffer.h"

namespace tessera {
namespace {

// No frame reaches so far, and sums of such numbers are far from overflow.
constexpr std::int64_t kFarAway = std::int64_t{1} << 40;

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
    const float first = std::floor(at), t = at - first;
    return {static_cast<std::int64_t>(first), static_cast<int>(std::nearbyint((1 - t) * 2048)),
            static_cast<int>(std::nearbyint(t * 2048))};
  }

 private:
  double scale_;
};

void FillPixels(const std::array<std::uint8_t, 3>& colour, std::int64_t count, std::uint8_t* to) {
  for (std::int64_t i = 0; i < count; ++i) std::copy(colour.begin(), colour.end(), to + 3 * i);
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

  void Reserve(std::int64_t pixels);
  void SetColumns(const CropWindow& window, std::int64_t begin, std::int64_t end, bool inside);
  void ScaleRow(const std::uint8_t* row, std::int16_t* scaled);

  // Columns of the frame around the visible ones, so that whatever lies beyond has a place.
  static constexpr std::int64_t kLeft = 2, kRight = 3;

  std::int64_t out, columns;
  PixelScaling scaling;
  AlignedBuffer pairs, high, low;
  std::vector<std::int64_t> offsets;  // in the order of CropTaps
  AlignedBuffer scaled[2];
  std::vector<std::uint8_t> row, fill_row;
  std::vector<float> last;  // rows whose vectors would reach beyond a plane
};

PatchCutter::Impl::Impl(std::int64_t out_size, const PixelScaling& pixel_scaling)
    : out(out_size),
      columns(static_cast<std::int64_t>(RoundUp(Size(out_size), Size(kCropGroup)))),
      scaling(pixel_scaling),
      pairs(Size(columns) * 8),
      high(Size(columns) * 8 * sizeof(std::int16_t)),
      low(high.size()),
      offsets(Size(columns)),
      last(3 * Size(columns)) {
  for (AlignedBuffer& buffer : scaled)
    buffer = AlignedBuffer(Size(columns) * 4 * sizeof(std::int16_t));
}

void PatchCutter::Impl::Reserve(std::int64_t pixels) {
  const std::size_t bytes = 3 * Size(kLeft + pixels + kRight);
  if (bytes <= row.size()) return;
  row.resize(bytes);
  fill_row.resize(bytes);
}

// Columns [begin, end) of the frame are seen. They are read from the frame itself if the window is
// `inside`, else from `row`.
void PatchCutter::Impl::SetColumns(const CropWindow& window, std::int64_t begin, std::int64_t end,
                                   bool inside) {
  const Axis axis(window.side, out);
  for (std::int64_t place = 0; place < columns; ++place) {
    Tap tap = axis[std::min(CropColumn(place, columns), out - 1)];
    if (tap.first < 0) tap = Tap{};
    if (tap.first >= window.side - 1) tap = Tap{window.side - 1};
    offsets[Size(place)] =
        3 * (inside ? tap.first
                    : std::clamp(window.x + tap.first, begin - kLeft, end) - (begin - kLeft));
    const int weights[2] = {tap.weight0, tap.weight1};
    for (std::int64_t side = 0; side < 2; ++side) {
      const std::int64_t at = side * 4 * columns + place / 2 * 8 + place % 2 * 2;
      for (const std::int64_t i : {at, at + 1, at + 4, at + 5}) {
        high.As<std::int16_t>()[i] = static_cast<std::int16_t>(weights[side] / 32);
        low.As<std::int16_t>()[i] = static_cast<std::int16_t>(weights[side] % 32);
      }
    }
  }
}

void PatchCutter::Impl::ScaleRow(const std::uint8_t* from, std::int16_t* to) {
  auto* pair = pairs.As<std::uint8_t>();
  for (const std::int64_t offset : offsets) {
    std::memcpy(pair, from + offset, 8);
    pair += 8;
  }
  ScaleCropRow({columns, pairs.As<std::uint8_t>(), high.As<std::int16_t>(), low.As<std::int16_t>()},
               to);
}

PatchCutter::PatchCutter(std::int64_t out, const PixelScaling& scaling) {
  Require(out > 0, "patches of ", out, " pixels");
  impl_ = std::make_unique<Impl>(out, scaling);
}
PatchCutter::~PatchCutter() = default;
PatchCutter::PatchCutter(PatchCutter&&) noexcept = default;

void PatchCutter::Reserve(std::int64_t max_side) { impl_->Reserve(max_side); }

void PatchCutter::Cut(const FrameView& frame, const CropWindow& window,
                      const std::array<std::uint8_t, 3>& fill, float* planes) {
  Impl& m = *impl_;
  const auto [x, y, side] = window;
  Require(side > 0 && side <= kFarAway && std::abs(x) <= kFarAway && std::abs(y) <= kFarAway,
          "a window of ", side, " pixels at ", x, ", ", y);
  const std::int64_t begin = std::clamp<std::int64_t>(x, 0, frame.width);
  const std::int64_t end = std::clamp<std::int64_t>(x + side, 0, frame.width);
  m.Reserve(end - begin);
  // Taps are read by 8 bytes, which may reach beyond the window by two pixels.
  const bool inside = x >= 0 && x + side + 2 <= frame.width;
  m.SetColumns(window, begin, end, inside);
  const std::int64_t margins = Impl::kLeft + Impl::kRight;
  FillPixels(fill, end - begin + margins, m.fill_row.data());
  if (!inside) FillPixels(fill, end - begin + margins, m.row.data());

  CropPlanes to;
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t plane = m.scaling.rgb ? 2 - c : c;
    to.row[c] = planes + static_cast<std::ptrdiff_t>(plane) * m.out * m.out;
    to.mean[c] = m.scaling.mean[plane];
    to.factor[c] = 1 / m.scaling.deviation[plane];
  }

  // Rows of the frame, scaled; all rows beyond it are row -1.
  constexpr std::int64_t kOutside = -1, kNothing = -2;
  std::int64_t held[2] = {kNothing, kNothing};
  const auto source = [&](std::int64_t row) {
    const std::int64_t frame_row = y + std::clamp<std::int64_t>(row, 0, side - 1);
    return frame_row >= 0 && frame_row < frame.height ? frame_row : kOutside;
  };
  const auto scale = [&](std::int64_t row, std::size_t slot) {
    const std::uint8_t* pixels = m.fill_row.data();
    if (row != kOutside && inside) {
      pixels = frame.Row(row) + 3 * x;
    } else if (row != kOutside) {
      std::memcpy(m.row.data() + 3 * Impl::kLeft, frame.Row(row) + 3 * begin,
                  3 * Size(end - begin));
      pixels = m.row.data();
    }
    m.ScaleRow(pixels, m.scaled[slot].As<std::int16_t>());
    held[slot] = row;
  };

  const Axis axis(side, m.out);
  for (std::int64_t i = 0; i < m.out; ++i) {
    const Tap tap = axis[i];
    const std::int64_t above = source(tap.first), below = source(tap.first + 1);
    std::size_t slot = held[1] == above ? 1 : 0;
    if (held[slot] != above) {
      if (held[0] == below) slot = 1;
      scale(above, slot);
    }
    const std::size_t other = above == below ? slot : 1 - slot;
    if (held[other] != below) scale(below, other);

    // Rows end in whole vectors; the next row overwrites what is too much, but in the end.
    CropPlanes rows = to;
    const bool fits = (m.out - i) * m.out >= m.columns;
    for (std::size_t c = 0; c < 3; ++c)
      rows.row[c] =
          fits ? to.row[c] + i * m.out : m.last.data() + static_cast<std::int64_t>(c) * m.columns;
    BlendCropRows(m.scaled[slot].As<std::int16_t>(), m.scaled[other].As<std::int16_t>(),
                  tap.weight0, tap.weight1, m.columns, m.out, rows);
    if (fits) continue;
    for (std::size_t c = 0; c < 3; ++c) std::copy_n(rows.row[c], m.out, to.row[c] + i * m.out);
  }
}

}  // namespace tessera
