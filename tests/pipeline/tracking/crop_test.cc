#include "pipeline/tracking/crop.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <opencv2/imgproc.hpp>
#include <random>
#include <string>
#include <vector>

#include "ops/error.h"
#include "tests/allocation_count.h"
#include "tests/every_target.h"

namespace tessera {
namespace {

using Colour = std::array<std::uint8_t, 3>;

// A frame of noise with padding after each row but the last, whose end no read may pass.
class TestFrame {
 public:
  TestFrame(std::int64_t width, std::int64_t height, std::int64_t padding, std::uint32_t seed) {
    const auto bytes = static_cast<std::size_t>((height - 1) * (3 * width + padding) + 3 * width);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t readable = (bytes + page - 1) / page * page;
    mapped_ = readable + page;
    pages_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages_ == MAP_FAILED) throw std::bad_alloc();
    auto* guard = static_cast<std::uint8_t*>(pages_) + readable;
    EXPECT_EQ(mprotect(guard, page, PROT_NONE), 0);
    std::minstd_rand random(seed);
    std::generate(guard - bytes, guard, [&] { return static_cast<std::uint8_t>(random() >> 8); });
    view = {guard - bytes, width, height, static_cast<std::ptrdiff_t>(3 * width + padding)};
  }
  ~TestFrame() { munmap(pages_, mapped_); }
  TestFrame(const TestFrame&) = delete;
  TestFrame& operator=(const TestFrame&) = delete;

  FrameView view;

 private:
  void* pages_ = nullptr;
  std::size_t mapped_ = 0;
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
  const auto level = [&] { return static_cast<std::uint8_t>(between(0, 255)); };
  for (int i = 0; i < 90; ++i) {
    const std::int64_t outs[] = {127, 255, 128, 256, 1, 2, 7, 16, 33};
    const std::int64_t out = outs[i % 9];
    const TestFrame frame(between(1, i % 4 == 0 ? 12 : 500), between(1, i % 5 == 0 ? 12 : 300),
                          between(0, 7), static_cast<std::uint32_t>(i));
    CropWindow window;
    window.side = between(1, i % 3 == 0 ? 30 : i % 3 == 1 ? 300 : 1500);
    if (i % 7 == 6) window.side = out;
    if (i % 10 == 9) window.side = 2 * out;
    window.x = between(-window.side - 3, frame.view.width + 3);
    window.y = between(-window.side - 3, frame.view.height + 3);
    const Colour fill = {level(), level(), level()};
    SCOPED_TRACE(Name(window, out, frame.view));
    const std::vector<float> plain = PlainCut(frame.view, window, fill, out);
    ASSERT_EQ(OpenCvCut(frame.view, window, fill, out), plain);
    OnEveryTarget([&] {
      PatchCutter cutter(out, {});
      ASSERT_EQ(Cut(cutter, frame.view, window, fill, out), plain);
    });
  }
}

TEST(PatchCutter, EverySideWithinTheFrameAndAtItsEdges) {
  const TestFrame frame(90, 80, 0, 1);
  const Colour fill = {1, 128, 254};
  OnEveryTarget([&] {
    PatchCutter cutter(19, {});
    for (std::int64_t side = 1; side <= 80; ++side) {
      const std::int64_t right = 90 - side, bottom = 80 - side;
      std::vector<CropWindow> windows{{0, 0, side}, {-1, -1, side}, {right / 2, bottom / 2, side}};
      for (std::int64_t i = -1; i <= 7; ++i) windows.push_back({right - i, bottom, side});
      for (const CropWindow& window : windows) {
        SCOPED_TRACE(Name(window, 19, frame.view));
        ASSERT_EQ(Cut(cutter, frame.view, window, fill, 19),
                  PlainCut(frame.view, window, fill, 19));
      }
    }
  });
}

TEST(PatchCutter, SidesFarBeyondTheFrame) {
  const TestFrame frame(40, 30, 2, 2);
  const Colour fill = {9, 8, 7};
  OnEveryTarget([&] {
    PatchCutter cutter(21, {});
    for (const std::int64_t side : {1501LL, 30000LL, 70001LL, 5'000'000'000LL}) {
      for (const CropWindow& window :
           {CropWindow{-side / 2, -side / 2, side}, CropWindow{20 - side / 21, 0, side}}) {
        SCOPED_TRACE(Name(window, 21, frame.view));
        ASSERT_EQ(Cut(cutter, frame.view, window, fill, 21),
                  PlainCut(frame.view, window, fill, 21));
      }
    }
  });
}

TEST(PatchCutter, AWindowOutsideIsFilled) {
  const TestFrame frame(1, 1, 0, 3);
  PatchCutter cutter(5, {});
  std::vector<float> filled(75, 200);
  std::fill_n(filled.begin(), 25, 100.f);
  std::fill_n(filled.begin() + 25, 25, 0.f);
  for (const CropWindow& window : {CropWindow{1, 0, 9}, CropWindow{0, 1, 9}, CropWindow{-9, 0, 9},
                                   CropWindow{0, -9, 9}, CropWindow{1LL << 40, -(1LL << 40), 3}}) {
    EXPECT_EQ(Cut(cutter, frame.view, window, {100, 0, 200}, 5), filled);
  }
}

TEST(PatchCutter, PlanesAreInTheOrderAndScaleAskedFor) {
  const TestFrame frame(70, 60, 0, 4);
  const CropWindow window{10, -5, 40};
  const Colour fill = {10, 20, 30};
  const std::vector<float> levels = PlainCut(frame.view, window, fill, 33);
  const PixelScaling scaling{true, {124, 116.25, 103.5}, {58.4f, 57.1f, 57.4f}};
  OnEveryTarget([&] {
    PatchCutter cutter(33, scaling);
    const std::vector<float> planes = Cut(cutter, frame.view, window, fill, 33);
    for (std::size_t plane = 0; plane < 3; ++plane) {
      for (std::size_t i = 0; i < 33 * 33; ++i) {
        const float level = levels[(2 - plane) * 33 * 33 + i];
        ASSERT_EQ(planes[plane * 33 * 33 + i],
                  (level - scaling.mean[plane]) * (1 / scaling.deviation[plane]));
      }
    }
  });
}

TEST(PatchCutter, AllocatesNothingUpToWhatIsReserved) {
  if (!kCountsAllocations) GTEST_SKIP() << "the sanitizers own the allocator";
  const TestFrame small(50, 40, 0, 5), large(700, 60, 0, 6);
  std::vector<float> planes(3 * 31 * 31);
  PatchCutter cutter(31, {});
  cutter.Reserve(400);
  const auto cut = [&](const TestFrame& frame, std::int64_t side) {
    cutter.Cut(frame.view, {-3, -2, side}, {}, planes.data());
  };
  EXPECT_EQ(CountAllocations([&] {
              for (const std::int64_t side : {1, 31, 100, 400}) {
                cut(small, side);
                cut(large, side);
              }
            }),
            0);
  EXPECT_GT(CountAllocations([&] { cut(large, 600); }), 0);
  EXPECT_EQ(CountAllocations([&] { cut(large, 600); }), 0);
  cutter.Reserve(700);
  EXPECT_EQ(CountAllocations([&] { cut(large, 5000); }), 0);
}

TEST(PatchCutter, RefusesSizesThatCannotBe) {
  for (const std::int64_t out : {-1, 0, 4097}) EXPECT_THROW(PatchCutter(out, {}), Error);
  const TestFrame frame(3, 3, 0, 7);
  PatchCutter cutter(2, {});
  std::vector<float> planes(12);
  for (const CropWindow& window :
       {CropWindow{0, 0, 0}, CropWindow{0, 0, -4}, CropWindow{0, 0, 1LL << 60},
        CropWindow{1LL << 60, 0, 3}, CropWindow{0, INT64_MIN, 3}}) {
    EXPECT_THROW(cutter.Cut(frame.view, window, {}, planes.data()), Error);
  }
}

TEST(WindowAround, TheMiddleOfOddSidesIsOneBeforeTheCentre) {
  EXPECT_EQ(WindowAround(10, 20, 5), (CropWindow{7, 17, 5}));
  EXPECT_EQ(WindowAround(9.5, 9.4999, 5), (CropWindow{7, 6, 5}));
  EXPECT_EQ(WindowAround(0, 0.5, 1), (CropWindow{-1, 0, 1}));
}

TEST(WindowAround, EvenSidesAndNegativeCentres) {
  EXPECT_EQ(WindowAround(10, 10.999, 4), (CropWindow{8, 8, 4}));
  EXPECT_EQ(WindowAround(11, -11, 4), (CropWindow{9, -13, 4}));
  EXPECT_EQ(WindowAround(-0.5, -0.6, 3), (CropWindow{-2, -3, 3}));
  EXPECT_EQ(WindowAround(100, 100, 30001), (CropWindow{-14901, -14901, 30001}));
}

TEST(WindowAround, FarCentresAndNoNumbersLieOutside) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double centre : {infinity, -infinity, std::nan(""), 1e300, -1e18}) {
    const CropWindow window = WindowAround(centre, 5, 9);
    EXPECT_EQ(window.y, 0);
    EXPECT_EQ(window.side, 9);
    EXPECT_EQ(std::abs(window.x), std::int64_t{1} << 40);
  }
}

TEST(MeanColour, IsThePlainMeanOnEveryTarget) {
  for (const auto& [width, height, padding] :
       {std::array{1, 1, 0}, std::array{17, 3, 5}, std::array{64, 2, 0}, std::array{333, 70, 1}}) {
    const TestFrame frame(width, height, padding, static_cast<std::uint32_t>(width));
    std::array<double, 3> sum{};
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x)
        for (std::int64_t c = 0; c < 3; ++c)
          sum[static_cast<std::size_t>(c)] += Pixel(frame.view, {}, x, y, c);
    for (double& s : sum) s /= width * height;
    OnEveryTarget([&] { EXPECT_EQ(MeanColour(frame.view), sum) << frame.view.width; });
  }
}

TEST(MeanColour, SumsOfLargeFramesFit) {
  const std::vector<std::uint8_t> row(3 * 20000, 255);  // all rows are this one
  EXPECT_EQ(MeanColour({row.data(), 20000, 3000, 0}), (std::array<double, 3>{255, 255, 255}));
}

TEST(MeanColour, RefusesFramesOfNoPixels) {
  EXPECT_THROW(MeanColour({}), Error);
  const std::uint8_t pixel[3] = {};
  EXPECT_THROW(MeanColour({pixel, 1, 0, 3}), Error);
}

}  // namespace
}  // namespace tessera
