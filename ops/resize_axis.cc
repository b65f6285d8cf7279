#include "ops/resize_axis.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace tessera {
namespace {

// Position of output element `x` in the input's coordinates.
double InputCoordinate(const ResizeFilter& filter, const ResizeAxis& axis, std::int64_t x) {
  const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  const auto at = static_cast<double>(x);
  switch (filter.coordinates) {
    case Coordinates::kHalfPixel:
      return axis.scale.Unscale(at + 0.5) - 0.5;
    case Coordinates::kHalfPixelSymmetric: {
      // Centred, where rounding the output's size has cut off a part.
      const double adjustment = out / (axis.scale.value * in);
      return in / 2 * (1 - adjustment) + axis.scale.Unscale(at + 0.5) - 0.5;
    }
    case Coordinates::kPytorchHalfPixel:
      return axis.out > 1 ? axis.scale.Unscale(at + 0.5) - 0.5 : 0.0;
    case Coordinates::kAlignCorners:
      // A length that comes from a scale is not rounded here: the text does not say so, but the
      // published test data do.
      if (axis.out <= 1) return 0.0;
      return at * (in - 1) / ((axis.from_scale ? axis.scale.Scale(in) : out) - 1);
    case Coordinates::kAsymmetric:
      return axis.scale.Unscale(at);
    case Coordinates::kTfHalfPixelForNn:
      // To the letter this would shift axes that keep their size, channels too, by one.
      return axis.scale.value == 1 ? at : axis.scale.Unscale(at + 0.5);
    case Coordinates::kTfCropAndResize:
      if (axis.out == 1) return 0.5 * (axis.roi_begin + axis.roi_end) * (in - 1);
      return axis.roi_begin * (in - 1) +
             at * (axis.roi_end - axis.roi_begin) * (in - 1) / (out - 1);
  }
  return 0;
}

std::int64_t RoundToNearest(NearestRounding rounding, double scale, double x) {
  if (rounding == NearestRounding::kOpset10) {
    rounding = scale < 1 ? NearestRounding::kCeil : NearestRounding::kFloor;
  }
  switch (rounding) {
    case NearestRounding::kRoundPreferFloor:
      return static_cast<std::int64_t>(std::ceil(x - 0.5));
    case NearestRounding::kRoundPreferCeil:
      return static_cast<std::int64_t>(std::floor(x + 0.5));
    case NearestRounding::kCeil:
      return static_cast<std::int64_t>(std::ceil(x));
    default:
      return static_cast<std::int64_t>(std::floor(x));
  }
}

// Keys' cubic convolution kernel.
double Cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

double Triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

// Tables hold some numbers for each element along an axis. No picture is that long.
constexpr std::int64_t kMaxLength = std::int64_t{1} << 24;

template <typename T>
T Choose(const std::string& what, const std::string& name,
         std::initializer_list<std::pair<const char*, T>> choices) {
  for (const auto& [choice, value] : choices) {
    if (name == choice) return value;
  }
  throw Error(StrCat("unknown ", what, " '", name, "'"));
}

}  // namespace

ResizeScale ResizeScale::FromFloat(float scale) {
  Require(scale > 0 && scale < 1e6f, "scale ", scale, " is not in (0, 1e6)");
  constexpr std::int64_t kMaxDenominator = 256;
  for (std::int64_t den = 1; den <= kMaxDenominator; ++den) {
    const auto num = std::llround(static_cast<double>(scale) * static_cast<double>(den));
    const double value = static_cast<double>(num) / static_cast<double>(den);
    if (num > 0 && static_cast<float>(value) == scale) return {value, num, den};
  }
  return {static_cast<double>(scale), 0, 0};
}

ResizeScale ResizeScale::FromSizes(std::int64_t out, std::int64_t in) {
  Require(in > 0 && out > 0, "cannot resize from ", in, " to ", out, " elements");
  const std::int64_t divisor = std::gcd(out, in);
  return {static_cast<double>(out) / static_cast<double>(in), out / divisor, in / divisor};
}

double ResizeScale::Scale(double position) const {
  if (den == 0) return position * value;
  return position * static_cast<double>(num) / static_cast<double>(den);
}

double ResizeScale::Unscale(double position) const {
  if (den == 0) return position / value;
  return position * static_cast<double>(den) / static_cast<double>(num);
}

Taps TapsAt(const ResizeFilter& filter, const ResizeAxis& axis, std::int64_t position) {
  double x = InputCoordinate(filter, axis, position);
  Taps taps;
  if (filter.coordinates == Coordinates::kTfCropAndResize &&
      !(x >= 0 && x <= static_cast<double>(axis.in - 1))) {  // NaN is outside too
    taps.outside = true;
    x = 0;
  }
  if (filter.interpolation == Interpolation::kNearest) {
    taps.first = RoundToNearest(filter.rounding, axis.scale.value, x);
    taps.weights = {1.0};
    return taps;
  }
  const bool cubic = filter.interpolation == Interpolation::kCubic;
  // With antialias, the kernel is as wide as the distance of the output elements.
  const double stretch = filter.antialias ? std::min(1.0, axis.scale.value) : 1.0;
  const double floor = std::floor(x), ratio = x - floor;
  const auto before = static_cast<std::int64_t>(std::floor(-(cubic ? 2 : 1) / stretch)) + 1;
  const std::int64_t after = 1 - before;
  taps.first = static_cast<std::int64_t>(floor) + before;
  double sum = 0;
  for (std::int64_t i = before; i <= after; ++i) {
    const double distance = (static_cast<double>(i) - ratio) * stretch;
    double weight = cubic ? Cubic(distance, filter.cubic_a) : Triangle(distance);
    const std::int64_t index = static_cast<std::int64_t>(floor) + i;
    if (filter.exclude_outside && (index < 0 || index >= axis.in)) weight = 0;
    taps.weights.push_back(weight);
    sum += weight;
  }
  if ((filter.exclude_outside || filter.antialias) && sum != 0) {
    for (double& weight : taps.weights) weight /= sum;
  }
  return taps;
}

TapTable::TapTable(const ResizeFilter& filter, const ResizeAxis& axis)
    : in(axis.in), out(axis.out) {
  std::vector<Taps> all;
  std::size_t begin = SIZE_MAX, end = 0;
  for (std::int64_t i = 0; i < out; ++i) {
    all.push_back(TapsAt(filter, axis, i));
    const std::vector<double>& w = all.back().weights;
    for (std::size_t k = 0; k < w.size(); ++k) {
      if (w[k] == 0) continue;
      begin = std::min(begin, k);
      end = std::max(end, k + 1);
    }
  }
  if (begin >= end) begin = 0, end = 1;
  count = static_cast<int>(end - begin);
  weights.resize((end - begin) * all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::int64_t at = all[i].first + static_cast<std::int64_t>(begin);
    // Far outside every tap is the edge; staying near it keeps the kernels' padding small.
    at = std::clamp<std::int64_t>(at, -count, in - 1 + count);
    first.push_back(at);
    outside.push_back(all[i].outside ? 1 : 0);
    for (std::size_t k = begin; k < end; ++k) {
      weights[(k - begin) * all.size() + i] = static_cast<float>(all[i].weights[k]);
    }
  }
}

bool TapTable::IsIdentity() const {
  if (in != out || count != 1 || HasOutside()) return false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const auto at = std::clamp<std::int64_t>(first[i], 0, in - 1);
    if (at != static_cast<std::int64_t>(i) || weights[i] != 1.f) return false;
  }
  return true;
}

bool TapTable::HasOutside() const {
  return std::find(outside.begin(), outside.end(), 1) != outside.end();
}

std::vector<std::int32_t> TapTable::NearestIndices() const {
  std::vector<std::int32_t> indices;
  for (std::int64_t i : first) {
    indices.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(i, 0, in - 1)));
  }
  return indices;
}

int TapTable::RepeatFactor() const {
  if (in == 0 || out % in != 0 || HasOutside()) return 0;
  const std::vector<std::int32_t> indices = NearestIndices();
  for (std::int64_t i = 0; i < out; ++i) {
    if (indices[static_cast<std::size_t>(i)] != i / (out / in)) return 0;
  }
  return static_cast<int>(out / in);
}

Shape ResizePlan::OutputShape() const {
  Shape shape;
  for (const ResizeAxis& axis : axes) shape.PushBack(axis.out);
  return shape;
}

void ResizePlan::SetRoi(const std::vector<float>& roi) {
  Require(roi.size() == 2 * resized.size(), "roi has ", roi.size(), " values for ", resized.size(),
          " axes");
  for (std::size_t i = 0; i < resized.size(); ++i) {
    ResizeAxis& axis = axes[static_cast<std::size_t>(resized[i])];
    axis.roi_begin = static_cast<double>(roi[i]);
    axis.roi_end = static_cast<double>(roi[resized.size() + i]);
  }
  knows_roi = true;
}

int ResizePlan::PixelRepeat() const {
  if (!knows_roi || filter.interpolation != Interpolation::kNearest || axes.size() != 4) return 0;
  for (std::size_t d = 0; d < 2; ++d) {
    if (!TapTable(filter, axes[d]).IsIdentity()) return 0;
  }
  const int factor = TapTable(filter, axes[2]).RepeatFactor();
  return TapTable(filter, axes[3]).RepeatFactor() == factor ? factor : 0;
}

namespace {

const Tensor& ConstantInput(std::span<const TensorInfo> inputs, std::size_t i, const char* what) {
  Require(i < inputs.size() && inputs[i].present, "input '", what, "' is missing");
  if (inputs[i].constant == nullptr) throw NeedsValue(i);
  return *inputs[i].constant;
}

void ApplyScales(const std::vector<float>& scales, const std::vector<int>& axes, ResizePlan& plan) {
  Require(scales.size() == axes.size(), scales.size(), " scales for ", axes.size(), " axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = plan.axes[static_cast<std::size_t>(axes[i])];
    axis.scale = ResizeScale::FromFloat(scales[i]);
    const double out = axis.scale.Scale(static_cast<double>(axis.in));
    Require(out <= static_cast<double>(std::max(axis.in, kMaxLength)), "resizing ", axis.in,
            " elements by ", scales[i], " is too much");
    axis.out = static_cast<std::int64_t>(std::floor(out));
    axis.from_scale = true;
  }
}

void ApplySizes(const std::vector<std::int64_t>& sizes, const std::vector<int>& axes,
                const std::string& policy, ResizePlan& plan) {
  Require(sizes.size() == axes.size(), sizes.size(), " sizes for ", axes.size(), " axes");
  std::vector<ResizeScale> scales;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t in = plan.axes[static_cast<std::size_t>(axes[i])].in;
    Require(sizes[i] >= 0 && sizes[i] <= std::max(in, kMaxLength), "size ", sizes[i],
            " is out of range");
    scales.push_back(sizes[i] == 0 && in == 0 ? ResizeScale()
                                              : ResizeScale::FromSizes(sizes[i], in));
  }
  if (policy != "stretch") {
    const auto less = [](const ResizeScale& a, const ResizeScale& b) { return a.value < b.value; };
    const ResizeScale common = policy == "not_larger"
                                   ? *std::min_element(scales.begin(), scales.end(), less)
                                   : *std::max_element(scales.begin(), scales.end(), less);
    std::fill(scales.begin(), scales.end(), common);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = plan.axes[static_cast<std::size_t>(axes[i])];
    axis.scale = scales[i];
    if (policy == "stretch") {
      axis.out = sizes[i];
    } else {
      const double out = std::floor(scales[i].value * static_cast<double>(axis.in) + 0.5);
      Require(out <= static_cast<double>(std::max(axis.in, kMaxLength)), "resizing ", axis.in,
              " elements to ", out, " is too much");
      axis.out = static_cast<std::int64_t>(out);
    }
  }
}

void ReadFilter(const OpNode& node, ResizeFilter& filter) {
  const Attributes& a = node.attributes;
  filter.interpolation = Choose<Interpolation>(
      "mode", a.String("mode", "nearest"),
      {{"nearest", Interpolation::kNearest},
       {"linear", Interpolation::kLinear},
       {"bilinear", Interpolation::kLinear},  // Upsample's documentation used both names
       {"cubic", Interpolation::kCubic}});
  if (node.type == "Upsample" || node.opset < 11) {
    Require(filter.interpolation != Interpolation::kCubic, "mode 'cubic' before opset 11");
    filter.coordinates = Coordinates::kAsymmetric;
    filter.rounding = NearestRounding::kOpset10;
    return;
  }
  filter.coordinates = Choose<Coordinates>(
      "coordinate_transformation_mode", a.String("coordinate_transformation_mode", "half_pixel"),
      {{"half_pixel", Coordinates::kHalfPixel},
       {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
       {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
       {"align_corners", Coordinates::kAlignCorners},
       {"asymmetric", Coordinates::kAsymmetric},
       {"tf_half_pixel_for_nn", Coordinates::kTfHalfPixelForNn},
       {"tf_crop_and_resize", Coordinates::kTfCropAndResize}});
  filter.rounding =
      Choose<NearestRounding>("nearest_mode", a.String("nearest_mode", "round_prefer_floor"),
                              {{"round_prefer_floor", NearestRounding::kRoundPreferFloor},
                               {"round_prefer_ceil", NearestRounding::kRoundPreferCeil},
                               {"floor", NearestRounding::kFloor},
                               {"ceil", NearestRounding::kCeil}});
  filter.cubic_a = static_cast<double>(a.Float("cubic_coeff_a", -0.75f));
  filter.exclude_outside = a.Int("exclude_outside", 0) != 0;
  filter.extrapolation_value = a.Float("extrapolation_value", 0.f);
  filter.antialias = node.opset >= 18 && a.Int("antialias", 0) != 0;
}

}  // namespace

ResizePlan ReadResize(const OpNode& node, std::span<const TensorInfo> inputs) {
  const Shape& x = inputs[0].shape;
  ResizePlan plan;
  ReadFilter(node, plan.filter);
  std::vector<int>& axes = plan.resized;
  for (int d = 0; d < x.rank(); ++d) {
    ResizeAxis axis;
    axis.in = axis.out = x[d];
    plan.axes.push_back(axis);
    axes.push_back(d);
  }
  const bool upsample = node.type == "Upsample";
  if (upsample && node.opset < 9) {
    ApplyScales(node.attributes.Floats("scales"), axes, plan);
    return plan;
  }
  if (upsample || node.opset < 11) {
    ApplyScales(ToFloats(ConstantInput(inputs, 1, "scales").view()), axes, plan);
    return plan;
  }

  if (node.opset >= 18 && node.attributes.Has("axes")) {
    axes.clear();
    for (std::int64_t axis : node.attributes.Ints("axes")) {
      axes.push_back(NormalizeAxis(axis, x.rank()));
      Require(std::count(axes.begin(), axes.end(), axes.back()) == 1, "axis ", axes.back(),
              " is given twice");
    }
  }
  // An empty tensor is as good as an absent one: opset 11 had no other way to leave scales out.
  const auto given = [&](std::size_t i) {
    return i < inputs.size() && inputs[i].present && inputs[i].shape.NumElements() > 0;
  };
  Require(given(2) != given(3) || x.rank() == 0, "exactly one of 'scales' and 'sizes' is needed");
  if (given(2)) {
    ApplyScales(ToFloats(ConstantInput(inputs, 2, "scales").view()), axes, plan);
  } else if (given(3)) {
    const std::string policy = node.opset >= 18
                                   ? node.attributes.String("keep_aspect_ratio_policy", "stretch")
                                   : "stretch";
    Require(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
            "unknown keep_aspect_ratio_policy '", policy, "'");
    ApplySizes(ToInt64s(ConstantInput(inputs, 3, "sizes").view()), axes, policy, plan);
  }
  if (plan.filter.coordinates == Coordinates::kTfCropAndResize) {
    Require(inputs.size() > 1 && inputs[1].present, "input 'roi' is missing");
    Require(inputs[1].shape.NumElements() == static_cast<std::int64_t>(2 * axes.size()),
            "roi of shape ", inputs[1].shape, " for ", axes.size(), " axes");
    plan.knows_roi = inputs[1].constant != nullptr;
    if (plan.knows_roi) plan.SetRoi(ToFloats(inputs[1].constant->view()));
  }
  return plan;
}

}  // namespace tessera
