#include "pipeline/quantization/tracker_samples.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/error.h"
#include "pipeline/quantization/tracker_damage.h"
#include "tests/engine/test_model.h"

namespace tessera {
namespace {

constexpr int kSize = 40;

// A bright square on a dark ground that moves to the right by 4 pixels a frame.
cv::Mat SquareAt(double x, double y) {
  cv::Mat pixels(240, 320, CV_8UC3, cv::Scalar(40, 40, 40));
  pixels(cv::Rect(static_cast<int>(x), static_cast<int>(y), kSize, kSize) &
         cv::Rect(0, 0, 320, 240))
      .setTo(cv::Scalar(250, 250, 250));
  return pixels;
}
Box BoxOf(std::int64_t frame) { return {60 + 4.0 * static_cast<double>(frame), 80, kSize, kSize}; }

class Squares final : public FrameSource {
 public:
  explicit Squares(std::int64_t frames) : frames_(frames) { info_.frames = frames; }
  bool Read(Frame& frame) override {
    if (next_ == frames_) return false;
    const Box box = BoxOf(next_);
    frame.pixels = SquareAt(box.x, box.y);
    frame.number = next_++;
    return true;
  }

 private:
  const std::int64_t frames_;
  std::int64_t next_ = 0;
};

// How bright the middle of a patch is, and its corner.
float Level(const Tensor& patch, double where) {
  const std::int64_t side = patch.shape()[2];
  const auto at = static_cast<std::int64_t>(where * static_cast<double>(side));
  return patch.data<float>()[at * side + at];
}

TEST(TrackerSamples, OfAFrameShowTheTargetHereAndThere) {
  TrackerSampler sampler(nullptr, NanoTrackConfig(2));
  const cv::Mat pixels = SquareAt(100, 80);
  const FrameView view{pixels.data, pixels.cols, pixels.rows,
                       static_cast<std::ptrdiff_t>(pixels.step[0])};
  sampler.AddFrame(view, {100, 80, kSize, kSize}, 12);
  const TrackerSamples samples = sampler.Take();
  ASSERT_EQ(samples.targets.size(), 1u);
  EXPECT_EQ(samples.targets[0].shape(), (Shape{1, 3, 127, 127}));
  EXPECT_GT(Level(samples.targets[0], 0.5), 200);
  EXPECT_LT(Level(samples.targets[0], 0.05), 100);
  ASSERT_EQ(samples.searches.size(), 12u);
  double least = 1e9, most = 0;
  for (const SearchSample& search : samples.searches) {
    EXPECT_EQ(search.patch.shape(), (Shape{1, 3, 255, 255}));
    EXPECT_GT(Level(search.patch, 0.5), 200);
    EXPECT_EQ(search.target, 0u);
    // Twice the box with its context is the patch: 255 / (2 * 2 * 40) a pixel.
    EXPECT_NEAR(search.width, kSize * 255.0 / 160, 2);
    const auto bright = static_cast<double>(std::ranges::count_if(
        search.patch.values<float>().first(255 * 255), [](float level) { return level > 150; }));
    least = std::min(least, bright);
    most = std::max(most, bright);
  }
  EXPECT_GT(most, 1.2 * least);  // larger and smaller
}

TEST(TrackerSamples, OfAClipFollowKnownBoxes) {
  GroundTruth known;
  for (std::int64_t i = 0; i < 30; ++i) known[i] = BoxOf(i);
  TrackerSampler sampler(nullptr, NanoTrackConfig(2));
  Squares source(30);
  sampler.AddClip(source, "squares", known, 10);
  const TrackerSamples samples = sampler.Take();
  EXPECT_EQ(samples.targets.size(), 4u);
  EXPECT_EQ(samples.searches.size(), 10u);
  for (const SearchSample& search : samples.searches) EXPECT_GT(Level(search.patch, 0.5), 200);
  EXPECT_EQ(samples.searches.back().target, 3u);
}

TEST(TrackerSamples, WithOneBoxTheTargetStaysForAWhile) {
  TrackerSampler sampler(nullptr, NanoTrackConfig(2));
  Squares source(30);
  sampler.AddClip(source, "squares", {{2, BoxOf(2)}}, 10);
  const TrackerSamples samples = sampler.Take();
  EXPECT_GE(samples.targets.size(), 1u);
  EXPECT_GE(samples.searches.size(), 5u);
}

TEST(TrackerSamples, NeedABoxInTheClip) {
  TrackerSampler sampler(nullptr, NanoTrackConfig(2));
  Squares source(5);
  EXPECT_THROW(sampler.AddClip(source, "squares", {{9, BoxOf(9)}}, 10), Error);
}

TEST(TrackerSamples, SomeOfThemAreSpread) {
  TrackerSampler sampler(nullptr, NanoTrackConfig(2));
  GroundTruth known;
  for (std::int64_t i = 0; i < 30; ++i) known[i] = BoxOf(i);
  Squares source(30);
  sampler.AddClip(source, "squares", known, 12);
  const TrackerSamples all = sampler.Take(), some = SomeOf(all, 4);
  ASSERT_EQ(some.searches.size(), 4u);
  EXPECT_EQ(some.targets.size(), all.targets.size());
  EXPECT_EQ(some.searches[1].target, all.searches[3].target);
  EXPECT_EQ(SomeOf(all, 100).searches.size(), all.searches.size());
}

}  // namespace
}  // namespace tessera
