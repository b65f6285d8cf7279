// Where to look for a target that was lost.
#pragma once

#include <cstdint>

namespace tessera {

// Places that are searched one after the other, nearer ones first: the area grows step by step
// until it is the whole picture, then the search begins anew. In between it comes back to where the
// target was lost, as most targets reappear there.
//
// Siamese networks still notice a target that is half as large as they expect, in up to 0.3 of the
// search window's side from its middle; its box then takes a second look.
class SearchPath {
 public:
  static constexpr double kMaxEnlargement = 2;

  struct Place {
    double x = 0, y = 0;     // middle of the window, in the picture
    double enlargement = 1;  // of the usual side of the window
    // Of the window around what is noticed there, for a closer look: as the target may come back
    // larger or smaller than it went.
    double closer = 1;
  };

  // A picture of width x height, a target that was lost at (x, y) and is looked for in windows of
  // `side` pixels usually.
  SearchPath(double width, double height, double x, double y, double side);

  Place Next();

 private:
  // The next window of the grid around (x_, y_) whose middle lies in the picture, ring by ring.
  Place NextOfGrid();

  double width_, height_, x_, y_, step_;
  std::int64_t looks_ = 0;
  std::int64_t round_ = 0, ring_ = 0, place_in_ring_ = 0;  // of the grid
};

}  // namespace tessera
