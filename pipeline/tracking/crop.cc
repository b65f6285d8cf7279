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

// The weights of two taps add up to 2048 then: in single precision 1 - t is off by 2^-25 at most,
// and t is a tie between two weights or at least 1 / (4096 * kMaxOut) away from one.
constexpr std::int64_t kMaxOut = 4096;

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

  // Columns around the visible ones, so that whatever lies beyond has a place; blocks of taps that
  // begin at the last one do not reach further.
  static constexpr std::int64_t kLeft = 2, kRight = 6;

  std::int64_t out, columns;
  PixelScaling scaling;
  // See CropTaps.
  bool apart = false;
  AlignedBuffer offset, near, far, weight;
  AlignedBuffer scaled[2];
  std::vector<std::uint8_t> row, fill_row;
  std::vector<float> last;  // rows whose vectors would reach beyond a plane
};

PatchCutter::Impl::Impl(std::int64_t out_size, const PixelScaling& pixel_scaling)
    : out(out_size),
      columns(static_cast<std::int64_t>(RoundUp(Size(out_size), Size(kCropGroup)))),
      scaling(pixel_scaling),
      offset(Size(columns) * sizeof(std::ptrdiff_t)),
      near(Size(columns) * 8),
      far(near.size()),
      weight(Size(columns) * 4 * sizeof(std::int16_t)),
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
  auto* offsets = offset.As<std::ptrdiff_t>();
  auto* weights = weight.As<std::int16_t>();
  auto* near_places = near.As<std::uint8_t>();
  auto* far_places = far.As<std::uint8_t>();
  apart = false;
  for (std::int64_t block = 0; block < columns / 2; ++block) {
    for (std::int64_t i = 0; i < 2; ++i) {
      Tap tap = axis[std::min(2 * block + i, out - 1)];
      if (tap.first < 0) tap = Tap{};
      if (tap.first >= window.side - 1) tap = Tap{window.side - 1};
      offsets[2 * block + i] =
          3 * (inside ? tap.first
                      : std::clamp(window.x + tap.first, begin - kLeft, end) - (begin - kLeft));
      const bool second_is_near = tap.weight1 > tap.weight0;
      const int far_weight = second_is_near ? tap.weight0 : tap.weight1;
      const std::int64_t at = 8 * block + 2 * i;
      for (const std::int64_t value : {at, at + 1, at + 4, at + 5}) {
        weights[value] = static_cast<std::int16_t>(-32 * far_weight);
        near_places[2 * value] = far_places[2 * value] = 0x80;
        near_places[2 * value + 1] = second_is_near ? 3 : 0;
        far_places[2 * value + 1] = second_is_near ? 0 : 3;
      }
    }
    apart |= offsets[2 * block + 1] - offsets[2 * block] > 16 - 6;
  }
  for (std::int64_t block = 0; block < columns / 2; ++block) {
    for (std::int64_t i = 0; i < 2; ++i) {
      const auto place =
          static_cast<std::uint8_t>(i * (apart ? 8 : offsets[2 * block + 1] - offsets[2 * block]));
      const std::int64_t at = 2 * (8 * block + 2 * i) + 1;
      for (std::uint8_t* places : {near_places + at, far_places + at}) {
        places[0] += place;
        places[2] = places[0] + 1;
        places[8] = places[0] + 2;
        places[10] = 0x80;
      }
    }
  }
}

PatchCutter::PatchCutter(std::int64_t out, const PixelScaling& scaling) {
  Require(out > 0 && out <= kMaxOut, "patches of ", out, " pixels");
  impl_ = std::make_unique<Impl>(out, scaling);
}
PatchCutter::~PatchCutter() = default;
PatchCutter::PatchCutter(PatchCutter&&) noexcept = default;

void PatchCutter::Reserve(std::int64_t max_side) { impl_->Reserve(max_side); }

void PatchCutter::Cut(const FrameView& frame, const CropWindow& window,
                      const std::array<std::uint8_t, 3>& fill, float* planes) {
  Impl& m = *impl_;
  const auto [x, y, side] = window;
  const auto is_near = [](std::int64_t v) { return -kFarAway <= v && v <= kFarAway; };
  Require(side > 0 && is_near(side) && is_near(x) && is_near(y), "a window of ", side,
          " pixels at ", x, ", ", y);
  const std::int64_t begin = std::clamp<std::int64_t>(x, 0, frame.width);
  const std::int64_t end = std::clamp<std::int64_t>(x + side, 0, frame.width);
  m.Reserve(end - begin);
  const bool inside = x >= 0 && x + side + Impl::kRight <= frame.width;
  m.SetColumns(window, begin, end, inside);
  const CropTaps taps{m.columns,
                      m.offset.As<std::ptrdiff_t>(),
                      m.apart,
                      m.near.As<std::uint8_t>(),
                      m.far.As<std::uint8_t>(),
                      m.weight.As<std::int16_t>()};
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
    ScaleCropRow(taps, pixels, m.scaled[slot].As<std::int16_t>());
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
