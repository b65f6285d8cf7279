#include "pipeline/tracking/point_ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tessera {
namespace {

double Change(double ratio) { return std::max(ratio, 1 / ratio); }

}  // namespace

PointRanking::PointRanking(const TrackerConfig& config, std::int64_t side)
    : config_(config), side_(side), window_(static_cast<std::size_t>(side), 1.0) {
  if (side < 2) return;
  for (std::int64_t i = 0; i < side; ++i) {
    window_[static_cast<std::size_t>(i)] =
        0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) /
                             static_cast<double>(side - 1));
  }
}

double PointRanking::Score(const float* classes, std::int64_t point) const {
  const double value = classes[point];
  switch (config_.score) {
    case ScoreKind::kSoftmax:
      return 1 / (1 + std::exp(value - static_cast<double>(classes[side_ * side_ + point])));
    case ScoreKind::kSigmoid:
      return 1 / (1 + std::exp(-value));
    case ScoreKind::kProbability:
      return std::clamp(value, 0.0, 1.0);
  }
  return 0;
}

PointChoice PointRanking::Choose(const SiameseNetwork::Maps& maps, double width, double height,
                                 double window_influence) const {
  const auto size = [this](double w, double h) {
    const double context = config_.context * (w + h);
    return std::sqrt((w + context) * (h + context));
  };
  const double target_size = size(width, height), proportions = width / height;
  const std::int64_t points = side_ * side_;
  PointChoice best;
  double best_rank = -std::numeric_limits<double>::infinity(), second_rank = best_rank;
  for (std::int64_t row = 0; row < side_; ++row) {
    for (std::int64_t column = 0; column < side_; ++column) {
      const std::int64_t point = row * side_ + column;
      const auto distance = [&](int direction) {
        const double value = maps.boxes[direction * points + point];
        switch (config_.box) {
          case BoxKind::kPixels:
            return value;
          case BoxKind::kLogPixels:
            return std::exp(value);
          case BoxKind::kCells:
            return value * config_.stride;
        }
        return value;
      };
      const double left = distance(0), top = distance(1), right = distance(2), bottom = distance(3);
      const double w = left + right, h = top + bottom;
      if (!(w > 0 && h > 0)) continue;
      const double score = Score(maps.classes, point);
      const double penalty =
          std::exp(-config_.penalty *
                   (Change(size(w, h) / target_size) * Change(proportions / (w / h)) - 1));
      const double rank = (1 - window_influence) * penalty * score +
                          window_influence * window_[static_cast<std::size_t>(row)] *
                              window_[static_cast<std::size_t>(column)];
      // What is no number comes from a network that is none for such pictures.
      if (!std::isfinite(rank) || !std::isfinite(w) || !std::isfinite(h)) continue;
      if (rank <= best_rank) {
        second_rank = std::max(second_rank, rank);
        continue;
      }
      second_rank = best_rank;
      best_rank = rank;
      best = {.row = row,
              .column = column,
              .score = score,
              .penalty = penalty,
              .dx = static_cast<double>((column - side_ / 2) * config_.stride) + (right - left) / 2,
              .dy = static_cast<double>((row - side_ / 2) * config_.stride) + (bottom - top) / 2,
              .width = w,
              .height = h};
    }
  }
  if (std::isfinite(second_rank)) best.rank_margin = best_rank - second_rank;
  return best;
}

}  // namespace tessera
