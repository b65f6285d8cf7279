#include "pipeline/tracking/draw_track.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "pipeline/format_text.h"
#include "pipeline/tracking/shapes.h"

namespace tessera {
namespace {

const cv::Scalar kTracked(96, 226, 64), kLost(48, 112, 255);

}  // namespace

TrackPainter::TrackPainter(std::size_t trail) : limit_(trail) {}

void TrackPainter::Paint(const TrackRecord& record, cv::Mat& frame) {
  const Box& box = record.box;
  const bool drawn = IsFinite(box);
  trail_.emplace_back();
  if (drawn && !record.lost) trail_.back() = {box.x + box.width / 2, box.y + box.height / 2};
  if (trail_.size() > limit_) trail_.pop_front();

  const int side = std::min(frame.cols, frame.rows);
  const int width = static_cast<int>(std::max(side < 160 ? 1L : 2L, std::lround(side / 300.0)));
  PaintTrail(frame, width);
  if (!drawn) return;
  const cv::Scalar& colour = record.lost ? kLost : kTracked;
  DrawOutline(frame, box, colour, width, record.lost ? LineStyle::kDashed : LineStyle::kSolid);
  DrawTab(frame, (record.lost ? "lost " : "") + Fixed(record.score, 2), box, TabPlace::kAbove,
          colour, width, std::max(9.0, side / 45.0));
}

// Fades towards its old end: how much of it covers the frame is drawn first.
void TrackPainter::PaintTrail(cv::Mat& frame, int width) const {
  cv::Rect2d bounds;
  for (const auto& place : trail_)
    if (place) bounds |= cv::Rect2d(*place - cv::Point2d(1, 1), cv::Size2d(2, 2));
  const double margin = 3.0 * width;
  bounds += cv::Size2d(2 * margin, 2 * margin);
  bounds -= cv::Point2d(margin, margin);
  bounds &= cv::Rect2d(0, 0, frame.cols, frame.rows);
  const cv::Rect area = cv::Rect(bounds) & cv::Rect({}, frame.size());  // the first is rounded
  if (area.empty()) return;

  cv::Mat cover = cv::Mat::zeros(area.size(), CV_8UC1);
  const cv::Point2d corner(area.x, area.y);
  for (std::size_t i = 1; i < trail_.size(); ++i)
    if (trail_[i - 1] && trail_[i])
      DrawLine(cover, *trail_[i - 1] - corner, *trail_[i] - corner,
               cv::Scalar::all(230 * (1 - static_cast<double>(trail_.size() - 1 - i) /
                                              static_cast<double>(limit_))),
               width + 1);
  cv::Mat part = frame(area);
  for (int y = 0; y < part.rows; ++y)
    for (int x = 0; x < part.cols; ++x) {
      const int share = cover.at<std::uint8_t>(y, x);
      if (share == 0) continue;
      auto& pixel = part.at<cv::Vec3b>(y, x);
      for (int c = 0; c < 3; ++c)
        pixel[c] = static_cast<std::uint8_t>(
            (pixel[c] * (255 - share) + static_cast<int>(kTracked[c]) * share + 127) / 255);
    }
}

}  // namespace tessera
