// Networks whose results are known, without a network.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ops/error.h"
#include "pipeline/tile_model.h"

namespace tessera {

struct FakeConvOptions {
  int channels = 3;
  int scale = 2;
  int radius = 3;     // what it looks at
  int rounding = 0;   // of that, what only matters to the bit, as it says
  float gain = 1;     // of the result, about kMean
  int alignment = 1;  // refuses other sizes than multiples; treats pixels by their place in these
  int phase = 1;      // treats pixels by x and y modulo this, as Winograd kernels round
  std::optional<ModelTraits::Size> fixed_input = std::nullopt;
};

// A zero-padded convolution and a shuffle to a larger picture, in a fixed order of operations: a
// pixel's value depends on its neighbourhood (and its place modulo alignment and phase) to the bit.
class FakeConv : public TileModel {
 public:
  explicit FakeConv(const FakeConvOptions& options = {}) : options_(options) {
    traits_.channels = options.channels;
    const ReceptiveField::Axis axis{.scale_num = options.scale,
                                    .scale_den = 1,
                                    .before = options.radius - options.rounding,
                                    .after = options.radius - options.rounding,
                                    .exact_before = options.radius,
                                    .exact_after = options.radius,
                                    .alignment = options.alignment};
    traits_.field = {axis, axis};
    traits_.fixed_input = options.fixed_input;
  }

  const std::string& name() const override { return name_; }
  const ModelTraits& traits() const override { return traits_; }
  std::size_t RunBytes(std::int64_t width, std::int64_t height) const override {
    return static_cast<std::size_t>(width * height) * 1000;
  }

  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel&) override {
    ++runs;
    const std::int64_t channels = input.shape[1], h = input.shape[2], w = input.shape[3];
    const std::int64_t s = options_.scale, r = options_.radius, a = options_.alignment,
                       p = options_.phase;
    Require(channels == options_.channels, "wrong number of channels");
    Require(h % a == 0 && w % a == 0, "not a multiple of ", a);
    if (options_.fixed_input) {
      Require(w == options_.fixed_input->width && h == options_.fixed_input->height,
              "not the fixed size");
    }
    outputs.resize(1);
    outputs[0] = Tensor(DType::kFloat32, {1, channels, h * s, w * s});
    const float* in = input.data<float>();
    float* out = outputs[0].data<float>();
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t y = 0; y < h; ++y) {
        for (std::int64_t x = 0; x < w; ++x) {
          float sum = 0;
          for (std::int64_t dy = -r; dy <= r; ++dy) {
            for (std::int64_t dx = -r; dx <= r; ++dx) {
              if (y + dy < 0 || y + dy >= h || x + dx < 0 || x + dx >= w) continue;
              const float weight = 1.f + 0.3f * static_cast<float>((dy * 5 + dx * 3) % 7);
              sum += weight * in[(c * h + y + dy) * w + x + dx];
            }
          }
          const float area = static_cast<float>((2 * r + 1) * (2 * r + 1));
          const float place = static_cast<float>(x % a + 2 * (y % a) + x % p + 2 * (y % p));
          sum = sum / area * 0.5f + 0.3f * in[(c * h + y) * w + x] + 0.001f * place;
          for (std::int64_t sy = 0; sy < s; ++sy) {
            for (std::int64_t sx = 0; sx < s; ++sx) {
              out[(c * h * s + y * s + sy) * w * s + x * s + sx] =
                  kMean + options_.gain * (sum - kMean) + 0.01f * static_cast<float>(sy - sx);
            }
          }
        }
      }
    }
  }

  std::atomic<int> runs = 0;

 private:
  static constexpr float kMean = 0.4f;  // of results for noise

  std::string name_ = "fake";
  FakeConvOptions options_;
  ModelTraits traits_;
};

// Repeats pixels. One of its output values can be spoilt.
class FakeNearest : public TileModel {
 public:
  explicit FakeNearest(int scale, int channels = 3) : scale_(scale) {
    traits_.channels = channels;
    const ReceptiveField::Axis axis{.scale_num = scale, .scale_den = 1};
    traits_.field = {axis, axis};
  }

  const std::string& name() const override { return name_; }
  const ModelTraits& traits() const override { return traits_; }
  std::size_t RunBytes(std::int64_t width, std::int64_t height) const override {
    return static_cast<std::size_t>(width * height) * 100;
  }
  void Run(const TensorView& input, std::vector<Tensor>& outputs, Parallel&) override {
    const std::int64_t c = input.shape[1], h = input.shape[2], w = input.shape[3], s = scale_;
    outputs.resize(1);
    outputs[0] = Tensor(DType::kFloat32, {1, c, h * s, w * s});
    for (std::int64_t i = 0; i < c; ++i) {
      for (std::int64_t y = 0; y < h * s; ++y) {
        for (std::int64_t x = 0; x < w * s; ++x) {
          const float v = input.data<float>()[(i * h + y / s) * w + x / s];
          outputs[0].data<float>()[(i * h * s + y) * w * s + x] = v == spoil_at ? spoil_with : v;
        }
      }
    }
  }

  float spoil_at = -1;
  float spoil_with = std::numeric_limits<float>::quiet_NaN();

 private:
  std::string name_ = "nearest";
  int scale_;
  ModelTraits traits_;
};

}  // namespace tessera
