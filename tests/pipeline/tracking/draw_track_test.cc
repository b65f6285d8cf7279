#include "pipeline/tracking/draw_track.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <opencv2/core.hpp>

namespace tessera {
namespace {

const cv::Scalar kGround(128, 128, 128);

TrackRecord Record(const Box& box, bool lost = false) {
  return {.frame = 0, .seconds = 0, .box = box, .score = 0.87, .lost = lost};
}

cv::Mat Painted(cv::Size size, const TrackRecord& record) {
  cv::Mat frame(size, CV_8UC3, kGround);
  TrackPainter().Paint(record, frame);
  EXPECT_EQ(frame.size(), size);
  EXPECT_EQ(frame.type(), CV_8UC3);
  return frame;
}

bool IsGreen(const cv::Vec3b& p) { return p[1] > p[0] + 40 && p[1] > p[2] + 40; }
bool IsOrange(const cv::Vec3b& p) { return p[2] > p[1] + 40 && p[2] > p[0] + 40; }
bool IsDark(const cv::Vec3b& p) { return p[0] < 80 && p[1] < 80 && p[2] < 80; }
bool IsChanged(const cv::Vec3b& p) { return p != cv::Vec3b(128, 128, 128); }

int Count(const cv::Mat& frame, cv::Rect area, bool (*is)(const cv::Vec3b&)) {
  area &= cv::Rect({}, frame.size());
  int count = 0;
  for (int y = area.y; y < area.br().y; ++y)
    for (int x = area.x; x < area.br().x; ++x) count += is(frame.at<cv::Vec3b>(y, x)) ? 1 : 0;
  return count;
}
int Count(const cv::Mat& frame, bool (*is)(const cv::Vec3b&)) {
  return Count(frame, cv::Rect({}, frame.size()), is);
}

TEST(TrackPainter, DrawsTheBoxAndTheScoreAndNothingElse) {
  for (const int height : {240, 720, 2160}) {
    SCOPED_TRACE(height);
    const int unit = height / 24;
    const cv::Rect box(10 * unit, 8 * unit, 8 * unit, 6 * unit);
    const cv::Mat frame = Painted(
        {32 * unit, height}, Record({1.0 * box.x, 1.0 * box.y, 1.0 * box.width, 1.0 * box.height}));
    // A band across the middle of each side.
    for (const cv::Point& side : {cv::Point(box.x, 11 * unit), cv::Point(box.br().x, 11 * unit),
                                  cv::Point(14 * unit, box.y), cv::Point(14 * unit, box.br().y)}) {
      const cv::Rect band(side - cv::Point(unit / 2, unit / 2), cv::Size(unit, unit));
      EXPECT_GE(Count(frame, band, IsGreen), unit) << side;
      EXPECT_GE(Count(frame, band, IsDark), unit) << side;
    }
    const cv::Rect within(box.tl() + cv::Point(unit, unit), box.br() - cv::Point(unit, unit));
    EXPECT_EQ(Count(frame, within, IsChanged), 0);

    const cv::Rect tab(box.x - unit, box.y - 4 * unit, 6 * unit, 4 * unit - unit / 2);
    EXPECT_GT(Count(frame, tab, IsGreen), 100);
    EXPECT_GT(Count(frame, tab, IsDark), 10);
    const cv::Rect outline(box.tl() - cv::Point(unit, unit), box.br() + cv::Point(unit, unit));
    EXPECT_EQ(Count(frame, IsChanged), Count(frame, outline | tab, IsChanged));
  }
}

TEST(TrackPainter, LinesAreWiderInLargeFrames) {
  const auto width = [](int height) {
    const cv::Mat frame =
        Painted({height, height}, Record({height / 4.0, height / 4.0, height / 2.0, height / 2.0}));
    return Count(frame, cv::Rect(0, height / 2 + height / 8, height / 2, 1), IsGreen);
  };
  EXPECT_GE(width(100), 1);
  EXPECT_LE(width(100), 3);
  EXPECT_GT(width(720), width(100));
  EXPECT_GT(width(2160), 2 * width(720));
}

TEST(TrackPainter, LooksDifferentWhileTheTargetIsLost) {
  const Box box{80, 100, 120, 90};
  const cv::Mat tracked = Painted({320, 240}, Record(box));
  const cv::Mat lost = Painted({320, 240}, Record(box, true));
  EXPECT_EQ(Count(tracked, IsOrange), 0);
  EXPECT_EQ(Count(lost, IsGreen), 0);
  EXPECT_GT(Count(lost, IsOrange), 300);
  // Dashes: along the lower side, both the colour and the ground between.
  const auto along = [&](const cv::Mat& frame, bool (*is)(const cv::Vec3b&)) {
    return Count(frame, cv::Rect(100, 190, 80, 1), is);
  };
  EXPECT_GT(along(tracked, IsGreen), 70);
  EXPECT_GT(along(lost, IsOrange), 20);
  EXPECT_GT(along(lost, IsDark), 20);
  // The score is of another place.
  TrackRecord other = Record(box, true);
  other.score = 0.1;
  EXPECT_EQ(cv::norm(Painted({320, 240}, other), lost, cv::NORM_INF), 0);
}

// A point of 4 x 4 that goes 5 pixels to the right in each frame, along y = 200.
class Trail : public ::testing::Test {
 protected:
  static constexpr int kSteps = 60;

  static cv::Mat After(TrackPainter painter, const std::function<bool(int)>& lost) {
    cv::Mat frame;
    for (int i = 0; i < kSteps; ++i) {
      frame = cv::Mat(300, 400, CV_8UC3, kGround);
      painter.Paint(Record({48.0 + 5 * i, 198, 4, 4}, lost(i)), frame);
    }
    return frame;
  }
  static bool Never(int) { return false; }

  // How much the column of the centre at that step differs from the ground.
  static int Strength(const cv::Mat& frame, int step) {
    int strength = 0;
    for (int y = 190; y < 210; ++y)
      strength += std::abs(frame.at<cv::Vec3b>(y, 50 + 5 * step)[1] - 128);
    return strength;
  }
};

TEST_F(Trail, FadesWithTime) {
  const cv::Mat frame = After(TrackPainter(50), Never);
  EXPECT_GT(Strength(frame, 55), 150);
  for (const int step : {15, 25, 35, 45})
    EXPECT_LT(Strength(frame, step), 0.9 * Strength(frame, step + 10)) << step;
  EXPECT_GT(Strength(frame, 15), 0);
  for (const int step : {0, 4, 8}) EXPECT_EQ(Strength(frame, step), 0) << step;
}

TEST_F(Trail, HasTheLengthThatIsAskedFor) {
  const cv::Mat frame = After(TrackPainter(10), Never);
  EXPECT_GT(Strength(frame, 54), 0);
  EXPECT_EQ(Strength(frame, 45), 0);
  EXPECT_EQ(Strength(After(TrackPainter(0), Never), 55), 0);
}

TEST_F(Trail, HasAGapWhereTheTargetWasLost) {
  const cv::Mat frame = After(TrackPainter(50), [](int i) { return i >= 30 && i < 40; });
  EXPECT_GT(Strength(frame, 28), 0);
  EXPECT_EQ(Strength(frame, 35), 0);
  EXPECT_GT(Strength(frame, 42), 0);
}

TEST_F(Trail, IsAsStrongWhereItsStepsMeetAsBetweenThem) {
  const cv::Mat frame = After(TrackPainter(50), Never);
  const auto at = [&](int x) { return int{frame.at<cv::Vec3b>(200, x)[1]}; };
  for (int x = 150; x < 330; ++x) EXPECT_NEAR(at(x), at(x + 1), 4) << x;
}

TEST_F(Trail, BeginsAnewInFramesOfAnotherSize) {
  TrackPainter painter(50);
  cv::Mat small(300, 400, CV_8UC3, kGround), large(600, 900, CV_8UC3, kGround);
  for (int i = 0; i < 30; ++i) painter.Paint(Record({48.0 + 5 * i, 198, 4, 4}), small);
  painter.Paint(Record({700, 500, 4, 4}), large);
  EXPECT_EQ(Count(large, cv::Rect(0, 0, 600, 600), IsChanged), 0);
  painter.Paint(Record({800, 500, 4, 4}), large);
  EXPECT_GT(Count(large, cv::Rect(740, 495, 20, 20), IsChanged), 40);
}

TEST(TrackPainter, BoxesBeyondTheFrameAreCutOff) {
  const cv::Mat partly = Painted({320, 240}, Record({-50, -30, 150, 120}));
  EXPECT_GT(Count(partly, cv::Rect(95, 20, 10, 60), IsGreen), 60);  // the right side
  EXPECT_GT(Count(partly, cv::Rect(20, 85, 60, 10), IsGreen), 60);  // the lower one
  EXPECT_EQ(Count(partly, cv::Rect(110, 0, 210, 240), IsChanged), 0);

  // The score stays at the nearest border.
  const cv::Mat right = Painted({320, 240}, Record({500, 100, 30, 30}));
  EXPECT_GT(Count(right, cv::Rect(260, 60, 60, 60), IsGreen), 100);
  EXPECT_EQ(Count(right, cv::Rect(0, 0, 260, 240), IsChanged), 0);

  for (const Box& box : {Box{-1e12, -1e12, 2e12, 2e12},
                         {1e300, 1e300, 1e300, 1e300},
                         {-1e9, 50, 10, 1e9},
                         {100, 100, 0, 0},
                         {100, 100, -20, -20}})
    for (const bool lost : {false, true}) {
      const cv::Mat frame = Painted({320, 240}, Record(box, lost));
      EXPECT_GT(Count(frame, IsChanged), 0);
    }
}

TEST(TrackPainter, ABoxThatIsNoNumberIsNotDrawn) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Count(Painted({320, 240}, Record({kNan, 10, 20, 20})), IsChanged), 0);
  EXPECT_EQ(Count(Painted({320, 240}, Record({10, 10, 20, 1 / 0.0})), IsChanged), 0);
  TrackRecord record = Record({100, 100, 50, 50});
  record.score = kNan;
  EXPECT_GT(Count(Painted({320, 240}, record), IsGreen), 0);
}

TEST(TrackPainter, TinyFramesHaveABoxWithoutAScore) {
  const cv::Mat frame = Painted({8, 8}, Record({2, 2, 4, 4}));
  EXPECT_GT(Count(frame, IsChanged), 0);
  EXPECT_NEAR(frame.at<cv::Vec3b>(0, 7)[1], 128, 16);
  for (const cv::Size size : {cv::Size(1, 1), {1, 300}, {300, 1}, {30, 12}})
    Painted(size, Record({0, 0, 1.0 * size.width, 1.0 * size.height}, true));
}

TEST(TrackPainter, NothingIsWrittenBesideAPartOfAPicture) {
  cv::Mat whole(200, 300, CV_8UC3, kGround);
  const cv::Rect area(100, 50, 100, 100);
  cv::Mat part = whole(area);
  TrackPainter painter;
  for (const Box& box : {Box{-20, -20, 60, 60}, {60, 70, 80, 80}, {-50, 20, 300, 30}})
    painter.Paint(Record(box), part);
  EXPECT_GT(Count(whole, area, IsChanged), 100);
  EXPECT_EQ(Count(whole, IsChanged), Count(whole, area, IsChanged));
}

}  // namespace
}  // namespace tessera
