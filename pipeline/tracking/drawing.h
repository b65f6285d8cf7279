// What pictures of tracks are drawn of: smooth lines, boxes and text on 8-bit pictures.
#pragma once

#include <cstdint>
#include <opencv2/core/mat.hpp>
#include <string>

#include "pipeline/tracking/box.h"

namespace tessera {

// Places are in pixels of the picture, (0, 0) is its upper left corner. They may be beyond the
// picture, and finite. Colours are B, G, R, or a grey level for pictures of one channel.

void DrawLine(cv::Mat& picture, cv::Point2d from, cv::Point2d to, const cv::Scalar& colour,
              int width);
void DrawDisc(cv::Mat& picture, cv::Point2d centre, double radius, const cv::Scalar& colour);

enum class LineStyle : std::uint8_t { kSolid, kDashed };

// The outline of a box with a dark edge, so that it shows on any ground.
void DrawOutline(cv::Mat& picture, const Box& box, const cv::Scalar& colour, int width,
                 LineStyle style = LineStyle::kSolid);

// The height of capitals is `height`; (x, y) is the left end of the line that letters stand on.
void DrawText(cv::Mat& picture, const std::string& text, cv::Point2d place, double height,
              const cv::Scalar& colour);
double TextWidth(const std::string& text, double height);

enum class TabPlace : std::uint8_t { kAbove, kBelow };

// Text on a ground of `colour` that is joined to the left of a box's outline of that width: on the
// side that is asked for, else on the opposite one, and within the box where the picture has room
// for neither. Always wholly in the picture; left out if it is larger than that.
void DrawTab(cv::Mat& picture, const std::string& text, const Box& box, TabPlace place,
             const cv::Scalar& colour, int outline, double height);

}  // namespace tessera
