// Resampling of float planes to any size, separably.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "pipeline/border.h"
#include "pipeline/picture.h"

namespace tessera {

enum class ResampleKernel : std::uint8_t {
  kCatmullRom,  // bicubic, a = -1/2 (Keys 1981)
  kLanczos3,    // sinc(x) sinc(x / 3) for |x| < 3
};

// The weights along one axis: output i is the sum of taps() inputs from First(i) on. Pixel centres
// are at half coordinates; where the size shrinks, the kernel is stretched by the ratio, so that it
// averages over what it drops; beyond the ends the outermost pixel continues. Weights add up to 1.
class ResampleAxis {
 public:
  // The part of the input that the output shows: [start, start + length), not always whole pixels.
  struct Part {
    double start = 0, length = 0;
  };
  ResampleAxis(std::int64_t in, const Part& part, std::int64_t out, ResampleKernel kernel);
  // All of it.
  ResampleAxis(std::int64_t in, std::int64_t out, ResampleKernel kernel)
      : ResampleAxis(in, {0, static_cast<double>(in)}, out, kernel) {}

  std::int64_t in() const { return in_; }
  std::int64_t out() const { return static_cast<std::int64_t>(first_.size()); }
  std::int64_t taps() const { return taps_; }
  std::int64_t First(std::int64_t i) const { return first_[static_cast<std::size_t>(i)]; }
  const float* Weights(std::int64_t i) const { return weights_.data() + i * taps_; }
  // The inputs that outputs [begin, end) are made of.
  Span Inputs(const Span& outputs) const {
    return {First(outputs.begin), First(outputs.end - 1) + taps_};
  }

 private:
  std::int64_t in_, taps_;
  std::vector<std::int64_t> first_;
  std::vector<float> weights_;
};

class Resampler {
 public:
  Resampler(ResampleAxis x, ResampleAxis y) : x_(std::move(x)), y_(std::move(y)) {}

  const ResampleAxis& x() const { return x_; }
  const ResampleAxis& y() const { return y_; }
  // The part of the input that a part of the output is made of.
  Rect Inputs(const Rect& rect) const;

  // The part `rect` of the output, into dst[0 .. rect.height) rows `dst_stride` floats apart. `src`
  // holds Inputs(rect). A pixel's value does not depend on the part that it is computed in.
  // Thread-safe.
  void Run(const float* src, std::int64_t src_stride, const Rect& rect, float* dst,
           std::int64_t dst_stride) const;

 private:
  ResampleAxis x_, y_;
};

}  // namespace tessera
