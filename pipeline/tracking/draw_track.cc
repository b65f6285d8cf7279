#include "pipeline/tracking/draw_track.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "pipeline/format_text.h"
#include "pipeline/tracking/drawing.h"

namespace tessera {
namespace {

const cv::Scalar kTracked(96, 226, 64), kLost(48, 112, 255);

}  // namespace

TrackPainter::TrackPainter(std::size_t trail) : steps_(trail) {}

void TrackPainter::Paint(const TrackRecord& record, cv::Mat& frame) {
  const Box& box = record.box;
  const bool drawn = IsFinite(box);
  const int side = std::min(frame.cols, frame.rows);
  const int width = static_cast<int>(std::max(side < 160 ? 1L : 2L, std::lround(side / 300.0)));
  std::optional<cv::Point2d> centre;
  if (drawn && !record.lost) centre = {box.x + box.width / 2, box.y + box.height / 2};
  if (!steps_.empty()) {
    TakeStep(centre, frame.size(), width + 1);
    PaintTrail(frame);
  }

  if (!drawn) return;
  const cv::Scalar& colour = record.lost ? kLost : kTracked;
  DrawOutline(frame, box, colour, width, record.lost ? LineStyle::kDashed : LineStyle::kSolid);
  DrawTab(frame, record.lost ? "lost" : Fixed(record.score, 2), box, TabPlace::kAbove, colour,
          width, std::max(9.0, side / 45.0));
}

void TrackPainter::TakeStep(const std::optional<cv::Point2d>& centre, cv::Size frame, int width) {
  if (frame != cover_.size()) {
    cover_ = cv::Mat::zeros(frame, CV_8UC1);
    for (std::vector<Covered>& step : steps_) step.clear();
    centre_.reset();
  }
  newest_ = (newest_ + 1) % steps_.size();
  std::vector<Covered>& step = steps_[newest_];
  step.clear();
  const std::optional<cv::Point2d> from = std::exchange(centre_, centre);
  if (!from || !centre) return;

  DrawLine(cover_, *from, *centre, cv::Scalar::all(255), width);
  const double margin = 3.0 * width;
  const cv::Rect2d bounds =
      cv::Rect2d(std::min(from->x, centre->x) - margin, std::min(from->y, centre->y) - margin,
                 std::abs(from->x - centre->x) + 2 * margin,
                 std::abs(from->y - centre->y) + 2 * margin) &
      cv::Rect2d({}, cv::Size2d(frame));
  const cv::Rect area = cv::Rect(bounds) & cv::Rect({}, frame);  // the first is rounded
  for (int y = area.y; y < area.br().y; ++y)
    for (int x = area.x; x < area.br().x; ++x)
      if (const std::uint8_t share = std::exchange(cover_.at<std::uint8_t>(y, x), 0))
        step.push_back({x, y, share});
}

// Steps overlap where they meet. There the newest counts, so that the trail has no knots.
void TrackPainter::PaintTrail(cv::Mat& frame) {
  for (std::size_t age = 0; age < steps_.size(); ++age) {
    // Of 256.
    const int strength = static_cast<int>(230 * (steps_.size() - age) / steps_.size());
    for (const Covered& pixel : steps_[(newest_ + steps_.size() - age) % steps_.size()]) {
      auto& share = cover_.at<std::uint8_t>(pixel.y, pixel.x);
      share = std::max(share, static_cast<std::uint8_t>(pixel.share * strength / 256));
    }
  }
  for (const std::vector<Covered>& step : steps_)
    for (const Covered& at : step) {
      const int share = std::exchange(cover_.at<std::uint8_t>(at.y, at.x), 0);
      if (share == 0) continue;
      auto& pixel = frame.at<cv::Vec3b>(at.y, at.x);
      for (int c = 0; c < 3; ++c)
        pixel[c] = static_cast<std::uint8_t>(
            (pixel[c] * (255 - share) + static_cast<int>(kTracked[c]) * share + 127) / 255);
    }
}

}  // namespace tessera
