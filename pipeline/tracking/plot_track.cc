#include "pipeline/tracking/plot_track.h"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <optional>
#include <string>

#include "pipeline/format_text.h"
#include "pipeline/tracking/drawing.h"
#include "pipeline/tracking/presence.h"

namespace tessera {
namespace {

// The page, in its pixels.
constexpr int kLeft = 84, kRight = 32, kTop = 28;  // margins
constexpr int kMinWidth = 720;                     // between the margins left and right
constexpr int kChartTop = 60, kChartHeight = 200;  // from the picture's lower side
constexpr int kStrip = 8;                          // height of the colours of time
constexpr int kBottom = 76;                        // from the chart's lower side
constexpr double kLetters = 10;

const cv::Scalar kPaper(255, 255, 255), kInk(64, 56, 48), kGrid(232, 228, 224);
const cv::Scalar kLostShade(206, 216, 250), kScore(150, 84, 32), kEdge(24, 24, 24);

// From 0, the first record, to 1, the last one.
cv::Scalar TimeColour(double time) {
  static const cv::Mat colours = [] {
    cv::Mat levels(1, 256, CV_8UC1), map;
    for (int i = 0; i < 256; ++i) levels.at<std::uint8_t>(0, i) = static_cast<std::uint8_t>(i);
    cv::applyColorMap(levels, map, cv::COLORMAP_TURBO);
    return map;
  }();
  // Both ends of the map are nearly black.
  const auto& colour = colours.at<cv::Vec3b>(0, static_cast<int>(std::lround(28 + time * 212)));
  return {1.0 * colour[0], 1.0 * colour[1], 1.0 * colour[2]};
}

struct Frames {
  std::int64_t first = 0, last = 0;

  double Time(std::int64_t frame) const {
    return last > first ? static_cast<double>(frame - first) / static_cast<double>(last - first)
                        : 0;
  }
};

// Such that a small frame is enlarged and a large one reduced.
double PictureScale(cv::Size frame) {
  const auto fit = [&](double width, double height) {
    return std::min(width / frame.width, height / frame.height);
  };
  return std::clamp(1.0, fit(kMinWidth, 540), fit(1280, 960));
}

// The least of 1, 2, 5, 10, 20, 50, ... that is not less.
std::int64_t RoundStep(double least) {
  for (std::int64_t power = 1;; power *= 10)
    for (const std::int64_t digit : {1, 2, 5})
      if (static_cast<double>(digit * power) >= least) return digit * power;
}

Box Scaled(const Box& box, double scale) {
  return {box.x * scale, box.y * scale, box.width * scale, box.height * scale};
}

void DrawWay(cv::Mat& picture, double scale, std::span<const TrackRecord> records,
             const Frames& frames) {
  const auto draw = [&](int width, auto&& colour) {
    std::optional<cv::Point2d> before;
    for (const TrackRecord& record : records) {
      const Box box = Scaled(record.box, scale);
      if (record.lost || !IsFinite(box)) {
        before.reset();
        continue;
      }
      const cv::Point2d centre(box.x + box.width / 2, box.y + box.height / 2);
      if (before) DrawLine(picture, *before, centre, colour(frames.Time(record.frame)), width);
      before = centre;
    }
  };
  draw(5, [](double) { return kEdge; });
  draw(3, TimeColour);

  const auto mark = [&](const TrackRecord& record, double time, const char* text, TabPlace place) {
    const Box box = Scaled(record.box, scale);
    if (!IsFinite(box)) return;
    const cv::Point2d centre(box.x + box.width / 2, box.y + box.height / 2);
    DrawOutline(picture, box, TimeColour(time), 2,
                record.lost ? LineStyle::kDashed : LineStyle::kSolid);
    DrawDisc(picture, centre, 6.5, kEdge);
    DrawDisc(picture, centre, 5.5, cv::Scalar(255, 255, 255));
    DrawDisc(picture, centre, 3.5, TimeColour(time));
    DrawTab(picture, text, box, place, TimeColour(time), 2, kLetters);
  };
  if (records.empty()) return;
  mark(records.front(), 0, "start", TabPlace::kAbove);
  if (records.size() > 1) mark(records.back(), 1, "end", TabPlace::kBelow);
}

// The score over the frames within `area` of the page. Networks are sure of nearly everything: what
// tells them apart is the logit, whose scale this is.
class ScoreChart {
 public:
  ScoreChart(cv::Mat& page, const cv::Rect& area, const Frames& frames)
      : page_(page), area_(area), frames_(frames) {}

  void Draw(std::span<const TrackRecord> records) {
    ShadeLost(records);
    DrawScoreAxis();
    if (records.empty()) {
      DrawText(page_, "no frames",
               {area_.x + (area_.width - TextWidth("no frames", kLetters)) / 2,
                area_.y + area_.height * 0.625 + kLetters / 2},
               kLetters, kInk);
      return;
    }
    DrawFrameAxis();
    DrawScores(records);
  }

 private:
  double X(double time) const { return area_.x + time * area_.width; }
  double Y(double score) const {
    static const double low = Logit(0.1), high = Logit(0.999995);
    return area_.y + (high - std::clamp(Logit(score), low, high)) / (high - low) * area_.height;
  }

  // From the first lost frame to the next that is not.
  void ShadeLost(std::span<const TrackRecord> records) {
    bool any = false;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (!records[i].lost) continue;
      any = true;
      const double begin = X(frames_.Time(records[i].frame));
      const double end = i + 1 < records.size() ? X(frames_.Time(records[i + 1].frame)) : begin;
      cv::rectangle(page_,
                    cv::Rect(cv::Point(static_cast<int>(begin), area_.y),
                             cv::Point(static_cast<int>(std::max(end, begin + 2)), area_.br().y)),
                    kLostShade, cv::FILLED);
    }
    if (!any) return;
    const double text = area_.br().x - TextWidth("lost", kLetters), line = area_.y - 14;
    DrawText(page_, "lost", {text, line}, kLetters, kInk);
    cv::rectangle(page_, cv::Rect(static_cast<int>(text) - 22, static_cast<int>(line) - 11, 14, 12),
                  kLostShade, cv::FILLED);
  }

  void DrawScoreAxis() {
    DrawText(page_, "score", {1.0 * area_.x, area_.y - 14.0}, kLetters, kInk);
    for (const double score : {0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999}) {
      const int y = static_cast<int>(Y(score));
      cv::line(page_, {area_.x, y}, {area_.br().x, y}, kGrid);
      const std::string text = Shortest(score);
      DrawText(page_, text, {area_.x - 12 - TextWidth(text, kLetters), y + kLetters / 2}, kLetters,
               kInk);
    }
  }

  void DrawFrameAxis() {
    const int axis = area_.br().y;
    for (int x = 0; x < area_.width; ++x)
      cv::line(page_, {area_.x + x, axis + 2}, {area_.x + x, axis + 1 + kStrip},
               TimeColour(1.0 * x / area_.width));
    const double widest = TextWidth(std::to_string(frames_.last), kLetters) + 36;
    const auto span = static_cast<double>(frames_.last - frames_.first);
    const std::int64_t step = RoundStep(span * widest / area_.width);
    for (std::int64_t frame = (frames_.first + step - 1) / step * step; frame <= frames_.last;
         frame += step) {
      const double x = X(frames_.Time(frame));
      const std::string text = std::to_string(frame);
      cv::line(page_, cv::Point(static_cast<int>(x), axis + 2 + kStrip),
               cv::Point(static_cast<int>(x), axis + 6 + kStrip), kInk);
      DrawText(page_, text, {x - TextWidth(text, kLetters) / 2, axis + kStrip + 24.0}, kLetters,
               kInk);
    }
    DrawText(page_, "frame",
             {area_.x + (area_.width - TextWidth("frame", kLetters)) / 2, axis + kStrip + 48.0},
             kLetters, kInk);
  }

  void DrawScores(std::span<const TrackRecord> records) {
    std::optional<cv::Point2d> before;
    for (const TrackRecord& record : records) {
      if (!std::isfinite(record.score)) {
        before.reset();
        continue;
      }
      const cv::Point2d place(X(frames_.Time(record.frame)), Y(record.score));
      if (before) DrawLine(page_, *before, place, kScore, 2);
      before = place;
    }
    if (records.size() == 1 && before) DrawDisc(page_, *before, 4, kScore);
  }

  cv::Mat& page_;
  cv::Rect area_;
  Frames frames_;
};

}  // namespace

cv::Mat PlotTrack(const cv::Mat& first_frame, std::span<const TrackRecord> records) {
  const double scale = PictureScale(first_frame.size());
  const cv::Size size(std::max(1, static_cast<int>(std::lround(first_frame.cols * scale))),
                      std::max(1, static_cast<int>(std::lround(first_frame.rows * scale))));
  const int width = std::max(size.width, kMinWidth);
  cv::Mat page(kTop + size.height + kChartTop + kChartHeight + kBottom, kLeft + width + kRight,
               CV_8UC3, kPaper);

  Frames frames;
  if (!records.empty()) frames = {records.front().frame, records.back().frame};
  cv::Mat picture = page(cv::Rect({kLeft + (width - size.width) / 2, kTop}, size));
  cv::resize(first_frame, picture, size, 0, 0, scale < 1 ? cv::INTER_AREA : cv::INTER_CUBIC);
  DrawWay(picture, scale, records, frames);
  ScoreChart(page, {kLeft, kTop + size.height + kChartTop, width, kChartHeight}, frames)
      .Draw(records);
  return page;
}

}  // namespace tessera
