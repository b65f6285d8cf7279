// Boxes in frames.
#pragma once

namespace tessera {

// In pixels of the frame: the upper left corner, which need not be whole nor within the frame, and
// the size. (0, 0) is the frame's upper left corner.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;

  bool operator==(const Box&) const = default;
};

// Whether none of the four is NaN or infinite.
bool IsFinite(const Box& box);

// Intersection over union; 0 for boxes that do not meet or are empty.
double Overlap(const Box& a, const Box& b);

// Between the centres, in pixels.
double CentreDistance(const Box& a, const Box& b);

}  // namespace tessera
