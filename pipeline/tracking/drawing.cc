#include "pipeline/tracking/drawing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <opencv2/imgproc.hpp>

namespace tessera {
namespace {

constexpr int kShift = 4;  // binary digits of a pixel's fraction

// OpenCV counts from the middle of the first pixel. Places far away are brought near, where they
// do not overflow: of what is seen, only the slope of slanting lines changes.
cv::Point ToFixed(const cv::Mat& picture, cv::Point2d place) {
  const auto fixed = [](double value, int size) {
    const double reach = 2.0 * size + 1000;
    return static_cast<int>(
        std::lround((std::clamp(value, -reach, size + reach) - 0.5) * (1 << kShift)));
  };
  return {fixed(place.x, picture.cols), fixed(place.y, picture.rows)};
}

constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
constexpr double kCapitals = 21;  // height at scale 1

int StrokeWidth(double height) { return std::max(1, static_cast<int>(std::lround(height / 8))); }

// Of the dark edge of an outline, on either side.
int EdgeWidth(int outline) { return std::max(1, outline / 2); }

void DrawSides(cv::Mat& picture, const Box& box, const cv::Scalar& colour, int width,
               LineStyle style) {
  // Within reach of the picture, or the dashes of a huge box would be without number.
  const double margin = 4.0 * width;
  const double x0 = std::clamp(box.x, -margin, picture.cols + margin);
  const double y0 = std::clamp(box.y, -margin, picture.rows + margin);
  const double x1 = std::clamp(box.x + box.width, -margin, picture.cols + margin);
  const double y1 = std::clamp(box.y + box.height, -margin, picture.rows + margin);
  const std::array<cv::Point2d, 5> corners = {{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}, {x0, y0}}};
  for (std::size_t i = 0; i + 1 < corners.size(); ++i) {
    const cv::Point2d from = corners[i], way = corners[i + 1] - from;
    // An odd number of pieces, every other one drawn: the corners are always there.
    const double length = std::abs(way.x) + std::abs(way.y);
    const int pieces =
        style == LineStyle::kSolid ? 1 : 2 * static_cast<int>(length / (14.0 * width)) + 1;
    for (int piece = 0; piece < pieces; piece += 2)
      DrawLine(picture, from + way * (1.0 * piece / pieces), from + way * ((piece + 1.0) / pieces),
               colour, width);
  }
}

}  // namespace

void DrawLine(cv::Mat& picture, cv::Point2d from, cv::Point2d to, const cv::Scalar& colour,
              int width) {
  cv::line(picture, ToFixed(picture, from), ToFixed(picture, to), colour, width, cv::LINE_AA,
           kShift);
}

void DrawDisc(cv::Mat& picture, cv::Point2d centre, double radius, const cv::Scalar& colour) {
  cv::circle(picture, ToFixed(picture, centre),
             static_cast<int>(std::lround(radius * (1 << kShift))), colour, cv::FILLED, cv::LINE_AA,
             kShift);
}

void DrawOutline(cv::Mat& picture, const Box& box, const cv::Scalar& colour, int width,
                 LineStyle style) {
  DrawSides(picture, box, cv::Scalar(24, 24, 24), width + 2 * EdgeWidth(width), LineStyle::kSolid);
  DrawSides(picture, box, colour, width, style);
}

void DrawText(cv::Mat& picture, const std::string& text, cv::Point2d place, double height,
              const cv::Scalar& colour) {
  cv::putText(picture, text,
              {static_cast<int>(std::lround(place.x)), static_cast<int>(std::lround(place.y))},
              kFont, height / kCapitals, colour, StrokeWidth(height), cv::LINE_AA);
}

double TextWidth(const std::string& text, double height) {
  int baseline = 0;
  return cv::getTextSize(text, kFont, height / kCapitals, StrokeWidth(height), &baseline).width;
}

void DrawTab(cv::Mat& picture, const std::string& text, const Box& box, TabPlace place,
             const cv::Scalar& colour, int outline, double height) {
  const double padding = std::round(height * 0.55);
  const cv::Size size(static_cast<int>(std::ceil(TextWidth(text, height) + 2 * padding)),
                      static_cast<int>(std::ceil(height + 2 * padding)));
  if (size.width > picture.cols || size.height > picture.rows) return;

  const double half = outline / 2.0 + EdgeWidth(outline);
  const double above = box.y - half - size.height, below = box.y + box.height + half;
  const bool has_above = above >= 0, has_below = below + size.height <= picture.rows;
  double top = place == TabPlace::kAbove ? box.y + half : below - 2 * half - size.height;
  if (has_above && (place == TabPlace::kAbove || !has_below)) {
    top = above;
  } else if (has_below) {
    top = below;
  }
  const cv::Rect area(
      cv::Point(
          static_cast<int>(
              std::lround(std::clamp(box.x - half, 0.0, 1.0 * picture.cols - size.width))),
          static_cast<int>(std::lround(std::clamp(top, 0.0, 1.0 * picture.rows - size.height)))),
      size);
  cv::rectangle(picture, area, colour, cv::FILLED);
  const double brightness = 0.114 * colour[0] + 0.587 * colour[1] + 0.299 * colour[2];
  DrawText(picture, text, {area.x + padding, area.y + padding + height}, height,
           brightness > 120 ? cv::Scalar(24, 24, 24) : cv::Scalar(255, 255, 255));
}

}  // namespace tessera
