#include "pipeline/tracking/search_path.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {
namespace {

constexpr double kFar = SearchPath::kMaxEnlargement;
constexpr std::array kNear = {1.0, 1.5, kFar};   // where the target was lost
constexpr std::array kCloser = {1.0, 1.4, 0.7};  // round by round
constexpr double kReach = 0.3;                   // from the middle, of the side

double Closer(std::int64_t round) {
  return kCloser[static_cast<std::size_t>(round % static_cast<std::int64_t>(kCloser.size()))];
}

}  // namespace

SearchPath::SearchPath(double width, double height, double x, double y, double side)
    : width_(width),
      height_(height),
      x_(x),
      y_(y),
      step_(std::max(1.0, 2 * kReach * kFar * side)) {}

SearchPath::Place SearchPath::Next() {
  const std::int64_t look = looks_++;
  constexpr auto kCount = static_cast<std::int64_t>(kNear.size());
  // First all of the near ones, then these and the others by turns.
  const auto near = [&](std::int64_t i) -> Place {
    return {x_, y_, kNear[static_cast<std::size_t>(i % kCount)], Closer(i / kCount)};
  };
  if (look < kCount) return near(look);
  const std::int64_t turn = look - kCount;
  if (turn % 2 == 1) return near(kCount + turn / 2);
  return NextOfGrid();
}

SearchPath::Place SearchPath::NextOfGrid() {
  // Rings that reach the corner of the picture that is farthest away hold all of it.
  const double farthest = std::max({x_, width_ - x_, y_, height_ - y_});
  const auto last_ring = static_cast<std::int64_t>(std::ceil(farthest / step_));
  for (;;) {
    if (ring_ > last_ring) {
      ring_ = place_in_ring_ = 0;
      ++round_;
    }
    const std::int64_t around = ring_ == 0 ? 1 : 8 * ring_;
    if (place_in_ring_ == around) {
      ++ring_;
      place_in_ring_ = 0;
      continue;
    }
    // Along one side of the ring's square after the other.
    const std::int64_t place = place_in_ring_++;
    const std::int64_t side = ring_ == 0 ? 0 : place / (2 * ring_),
                       along = ring_ == 0 ? 0 : place % (2 * ring_) - ring_;
    static constexpr int kAlong[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    static constexpr int kAcross[4][2] = {{0, -1}, {1, 0}, {0, 1}, {-1, 0}};
    const auto offset = [&](int axis) {
      return static_cast<double>(along * kAlong[side][axis] + ring_ * kAcross[side][axis]) * step_;
    };
    const double x = x_ + offset(0), y = y_ + offset(1);
    // A window whose middle lies less than half a step outside has part of the picture that no
    // other one looks at.
    if (x < -step_ / 2 || y < -step_ / 2 || x > width_ + step_ / 2 || y > height_ + step_ / 2)
      continue;
    return {std::clamp(x, 0.0, width_), std::clamp(y, 0.0, height_), kFar, Closer(round_)};
  }
}

}  // namespace tessera
