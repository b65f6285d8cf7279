// A tracker's network that needs no weights: it looks for a colour.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <opencv2/core/mat.hpp>
#include <utility>
#include <vector>

#include "pipeline/tracking/siamese_network.h"
#include "pipeline/tracking/tracker_config.h"

namespace tessera {

// Sees the pixels whose first plane is bright, and says at every point near their middle that the
// target is there, and what box is around them. For patches and maps of NanoTrack 1.
class MarkerNetwork : public SiameseNetwork {
 public:
  static constexpr int kSide = 16;
  struct Answer {
    std::vector<float> classes, boxes;  // as SiameseNetwork::Maps has them
  };

  // Changes the answer, if there is one.
  explicit MarkerNetwork(std::function<void(Answer&)> change = nullptr)
      : change_(std::move(change)) {
    answer_.classes.resize(2 * kSide * kSide);
    answer_.boxes.resize(4 * kSide * kSide);
  }

  std::int64_t map_side() const override { return kSide; }
  void SetTemplate(const TensorView&, Parallel&) override {}

  Maps Search(const TensorView& patch, Parallel&) override {
    const auto size = static_cast<int>(patch.shape[2]);
    const float* pixels = patch.data<float>();
    float left = 1e9F, top = 1e9F, right = -1, bottom = -1;
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        if (pixels[y * size + x] < 200) continue;
        left = std::min(left, static_cast<float>(x));
        top = std::min(top, static_cast<float>(y));
        right = std::max(right, static_cast<float>(x + 1));
        bottom = std::max(bottom, static_cast<float>(y + 1));
      }
    }
    const bool seen = right > left;
    for (int row = 0; row < kSide; ++row) {
      for (int column = 0; column < kSide; ++column) {
        const auto x = static_cast<float>(size / 2 + 16 * (column - kSide / 2));
        const auto y = static_cast<float>(size / 2 + 16 * (row - kSide / 2));
        const bool near = seen && std::abs(x - (left + right) / 2) <= 16 &&
                          std::abs(y - (top + bottom) / 2) <= 16;
        const std::size_t point = static_cast<std::size_t>(row * kSide + column);
        constexpr std::size_t kPlane = kSide * kSide;
        answer_.classes[point] = 0;
        answer_.classes[kPlane + point] = near ? 8 : -8;
        const float distances[] = {x - left, y - top, right - x, bottom - y};
        for (std::size_t side = 0; side < 4; ++side) {
          answer_.boxes[side * kPlane + point] = seen ? distances[side] : 30;
        }
      }
    }
    if (change_) change_(answer_);
    return {answer_.classes.data(), answer_.boxes.data()};
  }

 private:
  std::function<void(Answer&)> change_;
  Answer answer_;
};

// A dark frame, with a marker if `box` is not empty.
inline cv::Mat MarkerFrame(const cv::Rect& box, cv::Size size = {320, 240}) {
  cv::Mat frame(size, CV_8UC3, cv::Scalar(40, 80, 60));
  frame(box & cv::Rect({}, size)).setTo(cv::Scalar(250, 40, 40));
  return frame;
}

}  // namespace tessera
