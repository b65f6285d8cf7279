#include "pipeline/tracking/crop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <random>
#include <string>
#include <vector>

#include "ops/error.h"
#include "tests/every_target.h"

namespace tessera {
namespace {

using Colour = std::array<std::uint8_t, 3>;

// A frame of noise with padding after each row, in memory that ends with the last pixel.
struct TestFrame {
  TestFrame(std::int64_t width, std::int64_t height, std::int64_t padding, std::uint32_t seed)
      : pixels(static_cast<std::size_t>((height - 1) * (3 * width + padding) + 3 * width)),
        view{nullptr, width, height, static_cast<std::ptrdiff_t>(3 * width + padding)} {
    std::minstd_rand random(seed);
    for (std::uint8_t& p : pixels) p = static_cast<std::uint8_t>(random() >> 8);
    view.data = pixels.data();
  }

  std::vector<std::uint8_t> pixels;
  FrameView view;
};

int Pixel(const FrameView& frame, const Colour& fill, std::int64_t x, std::int64_t y,
          std::int64_t channel) {
  const bool inside = x >= 0 && y >= 0 && x < frame.width && y < frame.height;
  return inside ? frame.Row(y)[3 * x + channel] : fill[static_cast<std::size_t>(channel)];
}

// What the header says, one pixel after the other: [3, out, out], B, G, R.
std::vector<float> PlainCut(const FrameView& frame, const CropWindow& window, const Colour& fill,
                            std::int64_t out) {
  const double scale = 1 / (static_cast<double>(out) / static_cast<double>(window.side));
  const std::int64_t last = window.side - 1;
  std::vector<float> planes;
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t row = 0; row < out; ++row) {
      const auto fy = static_cast<float>((static_cast<double>(row) + 0.5) * scale - 0.5);
      const auto sy = static_cast<std::int64_t>(std::floor(fy));
      const float ty = fy - static_cast<float>(sy);
      const std::int64_t y0 = window.y + std::clamp<std::int64_t>(sy, 0, last);
      const std::int64_t y1 = window.y + std::clamp<std::int64_t>(sy + 1, 0, last);
      const long v0 = std::lrint((1 - ty) * 2048), v1 = std::lrint(ty * 2048);
      for (std::int64_t column = 0; column < out; ++column) {
        const auto fx = static_cast<float>((static_cast<double>(column) + 0.5) * scale - 0.5);
        auto sx = static_cast<std::int64_t>(std::floor(fx));
        float tx = fx - static_cast<float>(sx);
        if (sx < 0) sx = 0, tx = 0;
        if (sx >= last) sx = last, tx = 0;
        const std::int64_t x0 = window.x + sx, x1 = window.x + std::min(sx + 1, last);
        const long h0 = std::lrint((1 - tx) * 2048), h1 = std::lrint(tx * 2048);
        const auto across = [&](std::int64_t y) {
          return (Pixel(frame, fill, x0, y, c) * h0 + Pixel(frame, fill, x1, y, c) * h1) >> 4;
        };
        planes.push_back(
            static_cast<float>((((v0 * across(y0)) >> 16) + ((v1 * across(y1)) >> 16) + 2) >> 2));
      }
    }
  }
  return planes;
}

// The window filled, then scaled by OpenCV.
std::vector<float> OpenCvCut(const FrameView& frame, const CropWindow& window, const Colour& fill,
                             std::int64_t out) {
  const int side = static_cast<int>(window.side), size = static_cast<int>(out);
  cv::Mat filled(side, side, CV_8UC3), scaled;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      for (int c = 0; c < 3; ++c) {
        filled.at<cv::Vec3b>(y, x)[c] =
            static_cast<std::uint8_t>(Pixel(frame, fill, window.x + x, window.y + y, c));
      }
    }
  }
  cv::resize(filled, scaled, {size, size}, 0, 0, cv::INTER_LINEAR);
  std::vector<float> planes;
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) planes.push_back(scaled.at<cv::Vec3b>(y, x)[c]);
  return planes;
}

// Cuts into memory whose end is guarded.
std::vector<float> Cut(PatchCutter& cutter, const FrameView& frame, const CropWindow& window,
                       const Colour& fill, std::int64_t out) {
  constexpr float kGuard = -77;
  std::vector<float> planes(static_cast<std::size_t>(3 * out * out) + 64, kGuard);
  cutter.Cut(frame, window, fill, planes.data());
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(planes.back(), kGuard);
    planes.pop_back();
  }
  return planes;
}

std::string Name(const CropWindow& w, std::int64_t out, const FrameView& frame) {
  return StrCat(w.x, ", ", w.y, " side ", w.side, " to ", out, " of ", frame.width, " x ",
                frame.height);
}

TEST(PatchCutter, IsThePlainFormAndOpenCvsOnEveryTarget) {
  std::mt19937 random(3);
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int i = 0; i < 60; ++i) {
    const std::int64_t outs[] = {127, 255, 128, 256, 1, 2, 7, 16, 33};
    const std::int64_t out = outs[i % 9];
    const TestFrame frame(between(1, i % 4 == 0 ? 12 : 400), between(1, i % 5 == 0 ? 12 : 300),
                          between(0, 7), static_cast<std::uint32_t>(i));
    CropWindow window;
    window.side = between(1, i % 3 == 0 ? 30 : i % 3 == 1 ? 300 : 1500);
    if (i % 7 == 6) window.side = out;
    if (i % 10 == 9) window.side = 2 * out;
    window.x = between(-window.side - 3, frame.view.width + 3);
    window.y = between(-window.side - 3, frame.view.height + 3);
    const Colour fill = {static_cast<std::uint8_t>(between(0, 255)),
                         static_cast<std::uint8_t>(between(0, 255)),
                         static_cast<std::uint8_t>(between(0, 255))};
    SCOPED_TRACE(Name(window, out, frame.view));
    const std::vector<float> plain = PlainCut(frame.view, window, fill, out);
    ASSERT_EQ(OpenCvCut(frame.view, window, fill, out), plain);
    OnEveryTarget([&] {
      PatchCutter cutter(out, {});
      ASSERT_EQ(Cut(cutter, frame.view, window, fill, out), plain);
    });
  }
}

}  // namespace
}  // namespace tessera
