#include "pipeline/tracking/box.h"

#include <algorithm>
#include <cmath>

namespace tessera {

bool IsFinite(const Box& box) {
  return std::isfinite(box.x) && std::isfinite(box.y) && std::isfinite(box.width) &&
         std::isfinite(box.height);
}

double Overlap(const Box& a, const Box& b) {
  const double width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const double height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  if (!(width > 0 && height > 0)) return 0;
  const double both = width * height;
  return both / (a.width * a.height + b.width * b.height - both);
}

double CentreDistance(const Box& a, const Box& b) {
  return std::hypot(a.x + a.width / 2 - b.x - b.width / 2, a.y + a.height / 2 - b.y - b.height / 2);
}

}  // namespace tessera
