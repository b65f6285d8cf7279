#include "pipeline/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tessera {
namespace {

constexpr ResampleKernel kKernels[] = {ResampleKernel::kCatmullRom, ResampleKernel::kLanczos3};

double KernelAt(ResampleKernel kernel, double x) {
  x = std::abs(x);
  if (kernel == ResampleKernel::kLanczos3) {
    if (x == 0) return 1;
    const double p = M_PI * x;
    return x < 3 ? std::sin(p) / p * std::sin(p / 3) / (p / 3) : 0;
  }
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0;
}

// By the definition, in two dimensions at once.
double Reference(const std::vector<float>& src, int w, int h, int out_w, int out_h, int x, int y,
                 ResampleKernel kernel) {
  const double rx = static_cast<double>(w) / out_w, ry = static_cast<double>(h) / out_h;
  const double cx = (x + 0.5) * rx - 0.5, cy = (y + 0.5) * ry - 0.5;
  const double kx = std::max(1.0, rx), ky = std::max(1.0, ry);
  double sum = 0, total = 0;
  const int reach_x = static_cast<int>(3 * kx) + 2, reach_y = static_cast<int>(3 * ky) + 2;
  for (int j = static_cast<int>(cy) - reach_y; j <= cy + reach_y; ++j) {
    for (int i = static_cast<int>(cx) - reach_x; i <= cx + reach_x; ++i) {
      const double weight = KernelAt(kernel, (i - cx) / kx) * KernelAt(kernel, (j - cy) / ky);
      sum += weight *
             src[static_cast<std::size_t>(std::clamp(j, 0, h - 1) * w + std::clamp(i, 0, w - 1))];
      total += weight;
    }
  }
  return sum / total;
}

std::vector<float> Noise(int count) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = uniform(random);
  return values;
}

TEST(Resampler, AgreesWithTheDefinition) {
  const int sizes[][4] = {{17, 13, 34, 26}, {20, 31, 7, 11}, {9, 40, 31, 5},  {1, 1, 5, 3},
                          {5, 3, 1, 1},     {2, 3, 11, 9},   {64, 64, 48, 96}};
  for (const auto& [w, h, out_w, out_h] : sizes) {
    for (const ResampleKernel kernel : kKernels) {
      const std::vector<float> src = Noise(w * h);
      std::vector<float> dst(static_cast<std::size_t>(out_w * out_h), -9.f);
      Resampler({w, out_w, kernel}, {h, out_h, kernel})
          .Run(src.data(), w, {0, 0, out_w, out_h}, dst.data(), out_w);
      for (int y = 0; y < out_h; ++y)
        for (int x = 0; x < out_w; ++x)
          ASSERT_NEAR(dst[static_cast<std::size_t>(y * out_w + x)],
                      Reference(src, w, h, out_w, out_h, x, y, kernel), 2e-6)
              << w << "x" << h << " to " << out_w << "x" << out_h << " at " << x << "," << y;
    }
  }
}

TEST(Resampler, PartsAreTheWholeToTheBit) {
  const std::vector<float> src = Noise(50 * 40);
  const Resampler resampler({50, 133, ResampleKernel::kLanczos3},
                            {40, 71, ResampleKernel::kLanczos3});
  std::vector<float> whole(133 * 71);
  resampler.Run(src.data(), 50, {0, 0, 133, 71}, whole.data(), 133);
  for (const Rect& part : {Rect{0, 0, 1, 1}, Rect{20, 9, 77, 33}, Rect{132, 70, 1, 1}}) {
    std::vector<float> dst(static_cast<std::size_t>(part.width * part.height));
    const Rect from = resampler.Inputs(part);
    resampler.Run(src.data() + from.y * 50 + from.x, 50, part, dst.data(), part.width);
    for (std::int64_t y = 0; y < part.height; ++y)
      for (std::int64_t x = 0; x < part.width; ++x)
        ASSERT_EQ(dst[static_cast<std::size_t>(y * part.width + x)],
                  whole[static_cast<std::size_t>((part.y + y) * 133 + part.x + x)]);
  }
}

TEST(Resampler, SameSizeChangesNothing) {
  const std::vector<float> src = Noise(23 * 11);
  std::vector<float> dst(src.size());
  Resampler({23, 23, ResampleKernel::kCatmullRom}, {11, 11, ResampleKernel::kCatmullRom})
      .Run(src.data(), 23, {0, 0, 23, 11}, dst.data(), 23);
  EXPECT_EQ(src, dst);
}

// What alpha and flat areas rely on: after rounding to 8 and 16 bits nothing has moved.
TEST(Resampler, FlatAreasStayFlat) {
  for (const ResampleKernel kernel : kKernels) {
    for (const auto& [out_w, out_h] : {std::pair{119, 97}, {7, 5}, {400, 3}}) {
      const Resampler resampler({40, out_w, kernel}, {30, out_h, kernel});
      for (const float value : {0.f, 1.f, 127 / 255.f, 40000 / 65535.f}) {
        const std::vector<float> src(40 * 30, value);
        std::vector<float> dst(static_cast<std::size_t>(out_w * out_h));
        resampler.Run(src.data(), 40, {0, 0, out_w, out_h}, dst.data(), out_w);
        for (const float v : dst) {
          if (value == 0) {
            ASSERT_EQ(v, 0);
          } else {
            ASSERT_NEAR(v, value, 1e-6);
            ASSERT_EQ(std::nearbyint(std::min(v, 1.f) * 65535), std::nearbyint(value * 65535));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
