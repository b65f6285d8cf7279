#include "tests/pipeline/tracking/synthetic_clip.h"

#include <gtest/gtest.h>

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

namespace tessera {
namespace {

bool Same(const cv::Mat& a, const cv::Mat& b) { return cv::norm(a, b, cv::NORM_INF) == 0; }

// Around the pixels that differ between the frame with the toy and without.
cv::Rect Changed(const SyntheticClip& clip, int frame) {
  cv::Mat difference, changed;
  cv::absdiff(clip.Render(frame).pixels, clip.RenderGround(frame), difference);
  cv::transform(difference, difference, cv::Matx13f(1, 1, 1));
  cv::findNonZero(difference > 24, changed);
  return cv::boundingRect(changed);
}

void ExpectNear(const Box& box, const cv::Rect& rect, double error) {
  EXPECT_NEAR(box.x, rect.x, error);
  EXPECT_NEAR(box.y, rect.y, error);
  EXPECT_NEAR(box.x + box.width, rect.x + rect.width, error);
  EXPECT_NEAR(box.y + box.height, rect.y + rect.height, error);
}

TEST(SyntheticClip, BoxIsAroundWhatTheToyChanges) {
  const SyntheticClip clip({.path = {{0, 80, 90, 40, 0}, {20, 200, 130, 110, -35}}});
  for (const int frame : {0, 7, 13, 20, 30}) {
    SCOPED_TRACE(frame);
    const ClipFrame shown = clip.Render(frame);
    EXPECT_NEAR(shown.visible, 1, 1e-6);
    // Turned, the corners of the hull are blurred away a little more.
    ExpectNear(shown.box, Changed(clip, frame), 2.5);
  }
  EXPECT_NEAR(clip.Render(0).box.height, 40, 1e-9);
  EXPECT_TRUE(clip.Render(20).box == clip.Render(30).box);
}

TEST(SyntheticClip, ToyThatLeavesIsVisibleInPart) {
  const SyntheticClip clip(
      {.frames = 3, .path = {{0, 0, 120, 60, 0}, {1, -100, 120, 60, 0}, {2, 320, 240, 60, 0}}});
  const ClipFrame half = clip.Render(0);
  EXPECT_NEAR(half.visible, 0.5, 0.02);
  EXPECT_NEAR(half.box.x, -half.box.width / 2, 0.5);
  EXPECT_NEAR(Changed(clip, 0).width, half.box.width / 2, 2);

  const ClipFrame gone = clip.Render(1);
  EXPECT_EQ(gone.visible, 0);
  EXPECT_LT(gone.box.x + gone.box.width, 0);
  EXPECT_TRUE(Same(gone.pixels, clip.RenderGround(1)));

  EXPECT_NEAR(clip.Render(2).visible, 0.2, 0.1);
}

TEST(SyntheticClip, BarCovers) {
  const SyntheticClip clip({.path = {{0, 160, 120, 60, 0}}, .bar = {160, 0, 80, 240}});
  EXPECT_NEAR(clip.Render(0).visible, 0.5, 0.02);
  EXPECT_LE(Changed(clip, 0).br().x, 160);
  EXPECT_EQ(
      SyntheticClip({.path = {{0, 200, 120, 60, 0}}, .bar = {160, 0, 80, 240}}).Render(0).visible,
      0);
}

TEST(SyntheticClip, EqualOptionsGiveEqualFrames) {
  const ClipOptions options{.path = {{0, 80, 90, 40, 0}, {9, 200, 130, 50, 0}}, .distractors = 2};
  const SyntheticClip a(options), b(options);
  const cv::Mat last = a.Render(9).pixels;
  EXPECT_TRUE(Same(a.Render(4).pixels, b.Render(4).pixels));
  EXPECT_TRUE(Same(last, b.Render(9).pixels));
  EXPECT_FALSE(Same(a.Render(4).pixels, last));
  ClipOptions other = options;
  other.seed = 2;
  EXPECT_FALSE(Same(SyntheticClip(other).Render(4).pixels, a.Render(4).pixels));
}

TEST(SyntheticClip, OptionsShow) {
  ClipOptions options{.width = 200, .height = 160, .path = {{0, 100, 80, 50, 0}}, .noise = 0};
  const SyntheticClip plain(options);
  EXPECT_EQ(plain.Render(0).pixels.size(), cv::Size(200, 160));
  EXPECT_EQ(plain.Render(0).pixels.type(), CV_8UC3);
  EXPECT_TRUE(Same(plain.RenderGround(0), plain.RenderGround(1)));
  EXPECT_FALSE(Same(plain.Render(0).pixels, plain.Render(15).pixels)) << "lighting";

  options.noise = 3;
  cv::Mat difference, mean, deviation;
  const cv::Mat noisy = SyntheticClip(options).RenderGround(0);
  cv::subtract(noisy, plain.RenderGround(0), difference, {}, CV_32F);
  cv::meanStdDev(difference, mean, deviation);
  EXPECT_NEAR(deviation.at<double>(0), 3, 0.2);

  options.grey = true;
  std::vector<cv::Mat> planes;
  cv::split(SyntheticClip(options).Render(0).pixels, planes);
  EXPECT_TRUE(Same(planes[0], planes[1]) && Same(planes[1], planes[2]));

  options.grey = false;
  options.distractors = 3;
  EXPECT_FALSE(Same(SyntheticClip(options).RenderGround(0), noisy));
}

}  // namespace
}  // namespace tessera
