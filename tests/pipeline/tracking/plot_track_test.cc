#include "pipeline/tracking/plot_track.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <opencv2/core.hpp>
#include <vector>

namespace tessera {
namespace {

const cv::Scalar kGround(200, 60, 140);  // no colour of the plot
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// From the left to the right of a frame of 320 x 240, lost between two shares of the way.
std::vector<TrackRecord> Way(int count, std::int64_t first = 0, double lost_from = 2,
                             double lost_to = 2) {
  std::vector<TrackRecord> records;
  for (int i = 0; i < count; ++i) {
    const double way = count > 1 ? static_cast<double>(i) / (count - 1) : 0;
    records.push_back({.frame = first + i,
                       .seconds = i / 25.0,
                       .box = {40 + 200 * way, 110, 40, 30},
                       .score = 0.8,
                       .lost = way >= lost_from && way < lost_to});
  }
  return records;
}

cv::Mat Plot(const std::vector<TrackRecord>& records, cv::Size size = {320, 240}) {
  return PlotTrack(cv::Mat(size, CV_8UC3, kGround), records);
}

// The smallest rectangle with all pixels for which `is` holds.
template <typename Is>
cv::Rect Bounds(const cv::Mat& page, const cv::Rect& area, Is&& is) {
  cv::Rect bounds;
  for (int y = area.y; y < area.br().y; ++y)
    for (int x = area.x; x < area.br().x; ++x)
      if (is(page.at<cv::Vec3b>(y, x))) bounds |= cv::Rect(x, y, 1, 1);
  return bounds;
}

bool IsGround(const cv::Vec3b& p) { return p == cv::Vec3b(200, 60, 140); }
bool IsShade(const cv::Vec3b& p) {
  return p[2] > 230 && p[2] > p[1] + 20 && p[1] > 180 && p[0] > 180;
}
bool IsScore(const cv::Vec3b& p) { return p[0] > p[1] + 40 && p[1] > p[2] + 30; }
bool IsInk(const cv::Vec3b& p) { return std::max({p[0], p[1], p[2]}) < 140; }

cv::Rect Picture(const cv::Mat& page) { return Bounds(page, {{}, page.size()}, IsGround); }

// Below the picture, between its left and right side.
cv::Rect Chart(const cv::Mat& page) {
  const cv::Rect picture = Picture(page);
  return {picture.x, picture.br().y, picture.width, page.rows - picture.br().y};
}

bool SamePixels(const cv::Mat& a, const cv::Mat& b) { return cv::norm(a, b, cv::NORM_INF) == 0; }

TEST(PlotTrack, ShowsTheFrameInASizeToLookAt) {
  for (const cv::Size size : {cv::Size(1, 1),
                              {8, 8},
                              {320, 240},
                              {1280, 720},
                              {3840, 2160},
                              {10, 4000},
                              {4000, 10},
                              {720, 1280}}) {
    SCOPED_TRACE(testing::Message() << size);
    const cv::Mat page = Plot({}, size);
    EXPECT_EQ(page.type(), CV_8UC3);
    EXPECT_GE(page.cols, 720);
    EXPECT_LE(page.cols, 1400);
    EXPECT_GE(page.rows, 300);
    EXPECT_LE(page.rows, 1400);
    const cv::Rect picture = Picture(page);
    ASSERT_FALSE(picture.empty());
    if (std::max(size.width, size.height) < 4000) {
      EXPECT_NEAR(1.0 * picture.width / picture.height, 1.0 * size.width / size.height, 0.01);
      EXPECT_GE(std::max(picture.width, picture.height), 540);
    }
  }
}

TEST(PlotTrack, ShowsTheWayColouredByTime) {
  const cv::Mat page = Plot(Way(101));
  const cv::Rect picture = Picture(Plot({}));
  const auto at = [&](double x, double y) {
    return page.at<cv::Vec3b>(static_cast<int>(picture.y + y * picture.height / 240),
                              static_cast<int>(picture.x + x * picture.width / 320));
  };
  const cv::Vec3b early = at(110, 125), middle = at(160, 125), late = at(210, 125);
  EXPECT_GT(early[0], early[2] + 60);                         // blue
  EXPECT_GT(middle[1], std::max(middle[0], middle[2]) + 40);  // green
  EXPECT_GT(late[2], late[0] + 60);                           // red
  // The sides of the first box and of the last.
  EXPECT_FALSE(IsGround(at(40, 118)));
  EXPECT_FALSE(IsGround(at(80, 118)));
  EXPECT_FALSE(IsGround(at(240, 118)));
  EXPECT_FALSE(IsGround(at(280, 118)));
  // Far from all that there is only the frame.
  for (const cv::Rect& free : {cv::Rect(0, 0, 320, 85), cv::Rect(0, 165, 320, 75)})
    for (int y = free.y + 1; y < free.br().y - 1; ++y)
      for (int x = 1; x < 319; ++x) ASSERT_TRUE(IsGround(at(x, y))) << x << " " << y;
}

TEST(PlotTrack, ShadesTheFramesInWhichTheTargetWasLost) {
  const cv::Mat tracked = Plot(Way(101)), lost = Plot(Way(101, 0, 0.4, 0.6));
  const cv::Rect chart = Chart(tracked);
  EXPECT_TRUE(Bounds(tracked, chart, IsShade).empty());
  // Without the word "lost" above the chart.
  const cv::Rect shade = Bounds(lost, chart - cv::Size(chart.width / 5, 0), IsShade);
  EXPECT_NEAR(shade.x, chart.x + 0.4 * chart.width, 4);
  EXPECT_NEAR(shade.br().x, chart.x + 0.6 * chart.width, 4);
  EXPECT_GT(shade.height, 150);
  // The last frame too.
  EXPECT_FALSE(Bounds(Plot(Way(101, 0, 1, 1.1)), chart, IsShade).empty());
  // The way has a gap there.
  const cv::Rect picture = Picture(tracked);
  const cv::Point middle(picture.x + picture.width / 2, picture.y + picture.height * 125 / 240);
  EXPECT_FALSE(IsGround(tracked.at<cv::Vec3b>(middle)));
  EXPECT_TRUE(IsGround(lost.at<cv::Vec3b>(middle)));
}

TEST(PlotTrack, ShowsTheScoreAtItsHeight) {
  const auto height = [](double score) {
    auto records = Way(50);
    for (TrackRecord& record : records) record.score = score;
    const cv::Mat page = Plot(records);
    const cv::Rect chart = Chart(page);
    // Above the colours of time.
    const cv::Rect line = Bounds(page, chart - cv::Size(0, 90), IsScore);
    EXPECT_NEAR(line.width, chart.width, 4);
    EXPECT_LE(line.height, 6);
    return page.rows - line.y;
  };
  // Evenly in logits.
  EXPECT_NEAR(height(0.7) - height(0.5), height(0.5) - height(0.3), 2);
  EXPECT_NEAR(height(0.9999) - height(0.999), height(0.999) - height(0.99), 2);
  EXPECT_GT(height(0.9999) - height(0.3), 100);
  EXPECT_EQ(height(7), height(1));  // stays on the chart
}

TEST(PlotTrack, TheAxisHasTheNumbersOfTheFrames) {
  const cv::Mat from_0 = Plot(Way(101)), from_1000 = Plot(Way(101, 1000));
  ASSERT_EQ(from_0.size(), from_1000.size());
  const int numbers = from_0.rows - 76;  // where the chart ends
  const auto above = [&](const cv::Mat& page) { return page.rowRange(0, numbers); };
  const auto below = [&](const cv::Mat& page) { return page.rowRange(numbers, page.rows); };
  EXPECT_TRUE(SamePixels(above(from_0), above(from_1000)));
  EXPECT_FALSE(SamePixels(below(from_0), below(from_1000)));
  EXPECT_TRUE(SamePixels(from_0, Plot(Way(101))));
}

TEST(PlotTrack, FewRecordsAreEnough) {
  const cv::Mat none = Plot({}), one = Plot(Way(1, 7)), two = Plot(Way(2));
  EXPECT_FALSE(SamePixels(none, one));
  EXPECT_FALSE(SamePixels(one, two));
  EXPECT_FALSE(Bounds(none, Chart(none), IsInk).empty());  // the axis of the score
  EXPECT_FALSE(Bounds(one, Chart(none), IsScore).empty());
}

TEST(PlotTrack, WhatIsNoNumberIsLeftOut) {
  auto records = Way(101);
  records[50].box.x = kNan;
  records[60].score = kNan;
  const cv::Mat page = Plot(records);
  EXPECT_EQ(page.size(), Plot({}).size());
  records = Way(1);
  records[0].box.height = 1 / 0.0;
  EXPECT_EQ(Picture(Plot(records)), Picture(Plot({})));
  // Boxes that are somewhere else.
  records = Way(3);
  records[1].box.x = 1e15;
  records[2].box = {-1e300, 1e300, 1e300, 1e300};
  EXPECT_EQ(Plot(records).size(), page.size());
}

TEST(PlotTrack, FrameNumbersMayBeLarge) {
  auto records = Way(3);
  records[0].frame = 0;
  records[1].frame = 1LL << 40;
  records[2].frame = 1LL << 62;
  EXPECT_FALSE(Plot(records).empty());
}

}  // namespace
}  // namespace tessera
