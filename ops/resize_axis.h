// One axis of Resize: which input elements make an output element, with which weights.
// https://onnx.ai/onnx/operators/onnx__Resize.html
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/op.h"

namespace tessera {

enum class Interpolation : std::uint8_t { kNearest, kLinear, kCubic };

enum class Coordinates : std::uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNn,
  kTfCropAndResize,
};

enum class NearestRounding : std::uint8_t {
  kRoundPreferFloor,
  kRoundPreferCeil,
  kFloor,
  kCeil,
  // Opset 10, whose text does not say; this is what its published test data and ONNX Runtime do:
  // up where the axis shrinks, down where it grows.
  kOpset10,
};

struct ResizeFilter {
  Interpolation interpolation = Interpolation::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  NearestRounding rounding = NearestRounding::kRoundPreferFloor;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  float extrapolation_value = 0;
};

// Output elements per input element. A float such as 0.6f stands for the fraction it was meant to
// be (3 / 5), which gives exact coordinates; den is 0 if there is no small one.
struct ResizeScale {
  double value = 1;
  std::int64_t num = 1, den = 1;

  static ResizeScale FromFloat(float scale);
  static ResizeScale FromSizes(std::int64_t out, std::int64_t in);
  // position * scale, and position / scale, exact where a fraction is known.
  double Scale(double position) const;
  double Unscale(double position) const;
};

struct ResizeAxis {
  std::int64_t in = 1, out = 1;
  ResizeScale scale;
  bool from_scale = false;  // `out` is the integer part of scale * in
  double roi_begin = 0, roi_end = 1;
};

// What makes one output element: elements first, first + 1, ... of the input, times weights.
// Indices out of range stand for the nearest edge.
struct Taps {
  std::int64_t first = 0;
  std::vector<double> weights;
  bool outside = false;  // the extrapolation value instead (tf_crop_and_resize)
};
Taps TapsAt(const ResizeFilter& filter, const ResizeAxis& axis, std::int64_t position);

// The taps of a whole axis, all with the same count. Taps that have no weight anywhere are gone.
struct TapTable {
  TapTable(const ResizeFilter& filter, const ResizeAxis& axis);

  // Whether out[i] = in[i].
  bool IsIdentity() const;
  bool HasOutside() const;
  // The source of each output element of a nearest axis, within the input.
  std::vector<std::int32_t> NearestIndices() const;
  // The k of a nearest axis with out[i] = in[i / k], otherwise 0.
  int RepeatFactor() const;

  std::int64_t in, out;
  int count = 1;
  std::vector<std::int64_t> first;  // [out]
  std::vector<float> weights;       // [count][out]
  std::vector<char> outside;        // [out]
};

// What a Resize or Upsample node does, by the rules of its opset.
struct ResizePlan {
  ResizeFilter filter;
  std::vector<int> resized;      // the axes that scales, sizes and roi speak of
  std::vector<ResizeAxis> axes;  // one for each dimension
  bool knows_roi = true;         // false: SetRoi is still to be called

  // Begins and ends of the input `roi` for the axes that are resized. Throws Error for another
  // number of them.
  void SetRoi(const std::vector<float>& roi);

  Shape OutputShape() const;
  // The k if each pixel of NCHW becomes k x k pixels of its value, otherwise 0.
  int PixelRepeat() const;
};

// Throws Error for anything that the specification forbids, NeedsValue if scales or sizes are no
// constants.
ResizePlan ReadResize(const OpNode& node, std::span<const TensorInfo> inputs);

}  // namespace tessera
