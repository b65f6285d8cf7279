// Square patches of a frame, as a network wants to see them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "pipeline/video/frame_view.h"

namespace tessera {

// Pixels of a frame, whole ones; the window may lie beyond the frame in part or wholly.
struct CropWindow {
  std::int64_t x = 0, y = 0, side = 0;  // x, y: upper left pixel

  bool operator==(const CropWindow&) const = default;
};

// The window of `side` pixels around a point: x = floor(centre_x - (side + 1) / 2 + 0.5), y
// likewise. For odd sides its middle pixel lies one before that of the centre; the trackers were
// made so (SiamTrackers, get_subwindow). Centres that are no number or further away than 2^40
// pixels give a window that far away.
CropWindow WindowAround(double centre_x, double centre_y, std::int64_t side);

// From a pixel's level 0..255 to what the network is fed: (level - mean) * (1 / deviation), in
// single precision.
struct PixelScaling {
  bool rgb = false;                       // order of the planes, else B, G, R
  std::array<float, 3> mean = {0, 0, 0};  // in the order of the planes
  std::array<float, 3> deviation = {1, 1, 1};
};

// Mean over all pixels, in the order B, G, R. Throws Error if the frame has none.
std::array<double, 3> MeanColour(const FrameView& frame);

// Has memory of its own for what it computes: one thread at a time.
class PatchCutter {
 public:
  // Patches of out x out pixels, 4096 at the most; throws Error otherwise.
  PatchCutter(std::int64_t out, const PixelScaling& scaling);
  ~PatchCutter();

  // Makes room for windows of up to so many pixels: Cut allocates for larger ones only. A frame's
  // width is enough for all windows of that frame.
  void Reserve(std::int64_t max_side);

  // Scales the window's pixels to out x out and writes them to `planes`, [3, out, out]. What lies
  // beyond the frame has the colour `fill` (B, G, R). Scaling is OpenCV's bilinear resize of 8-bit
  // pixels to the bit: fixed-point weights of 11 bits, the result rounded to whole levels; the same
  // on every CPU. Throws Error if the window has no pixels, or is larger or further away than 2^40.
  void Cut(const FrameView& frame, const CropWindow& window,
           const std::array<std::uint8_t, 3>& fill, float* planes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
