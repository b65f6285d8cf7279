#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

// The specification's formulas, word for word, one output element at a time: an implementation
// that shares nothing with the kernels'.
struct Spec {
  std::string mode = "nearest", coordinates = "half_pixel", nearest_mode = "round_prefer_floor";
  std::string policy = "stretch";
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
  float extrapolation = 0;
  std::vector<float> scales;
  std::vector<std::int64_t> sizes;
  std::vector<float> roi;
};

double SpecCoordinate(const Spec& s, double x, double in, double out, double scale, double begin,
                      double end) {
  if (s.coordinates == "half_pixel") return (x + 0.5) / scale - 0.5;
  if (s.coordinates == "half_pixel_symmetric") {
    const double adjustment = out / (scale * in), center = in / 2;
    return center * (1 - adjustment) + (x + 0.5) / scale - 0.5;
  }
  if (s.coordinates == "pytorch_half_pixel") return out > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (s.coordinates == "align_corners") {
    // As in ONNX's own test data: lengths that come from scales are not rounded.
    return out == 1 ? 0 : x * (in - 1) / ((s.sizes.empty() ? in * scale : out) - 1);
  }
  if (s.coordinates == "asymmetric") return x / scale;
  // As ONNX Runtime has it: the formula is meant for axes that are resized.
  if (s.coordinates == "tf_half_pixel_for_nn") return scale == 1 ? x : (x + 0.5) / scale;
  return out > 1 ? begin * (in - 1) + x * (end - begin) * (in - 1) / (out - 1)
                 : 0.5 * (begin + end) * (in - 1);
}

// Weights of the neighbours of a point `ratio` right of a pixel.
std::vector<double> SpecCoefficients(const Spec& s, double ratio, double scale) {
  if (s.mode == "nearest") {
    if (s.nearest_mode == "round_prefer_floor")
      return ratio <= 0.5 ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
    if (s.nearest_mode == "round_prefer_ceil")
      return ratio < 0.5 ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
    if (s.nearest_mode == "floor")
      return ratio == 1 ? std::vector<double>{0, 1} : std::vector<double>{1, 0};
    return {0, 1};
  }
  const double a = s.cubic_a;
  const auto cubic = [a](double x) {
    x = std::abs(x);
    if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0.0;
  };
  const double size = s.mode == "linear" ? 1 : 2;
  std::vector<double> coefficients;
  if (!s.antialias) scale = 1;
  scale = std::min(scale, 1.0);
  const int start = static_cast<int>(std::floor(-size / scale)) + 1;
  for (int i = start; i <= 1 - start; ++i) {
    const double x = scale * (i - ratio);
    coefficients.push_back(s.mode == "linear" ? std::clamp(1 - std::abs(x), 0.0, 1.0) : cubic(x));
  }
  if (s.antialias) {
    const double sum = std::accumulate(coefficients.begin(), coefficients.end(), 0.0);
    for (double& c : coefficients) c /= sum;
  }
  return coefficients;
}

double SpecElement(const Spec& s, const Tensor& x, const std::vector<double>& scales,
                   const Shape& out, const std::vector<std::int64_t>& at, int axis,
                   std::int64_t offset, const std::vector<float>& roi) {
  if (axis == x.shape().rank()) return static_cast<double>(x.data<float>()[offset]);
  const std::int64_t in = x.shape()[axis];
  const double scale = scales[static_cast<std::size_t>(axis)];
  const double begin = roi.empty() ? 0 : static_cast<double>(roi[static_cast<std::size_t>(axis)]);
  const double end =
      roi.empty() ? 1 : static_cast<double>(roi[static_cast<std::size_t>(axis + x.shape().rank())]);
  const double position =
      SpecCoordinate(s, static_cast<double>(at[static_cast<std::size_t>(axis)]),
                     static_cast<double>(in), static_cast<double>(out[axis]), scale, begin, end);
  if (s.coordinates == "tf_crop_and_resize" &&
      (position < 0 || position > static_cast<double>(in - 1))) {
    return static_cast<double>(s.extrapolation);
  }
  // The neighbour on the left is strictly left, so the ratio is in (0, 1].
  const double left = std::ceil(position) - 1;
  std::vector<double> c = SpecCoefficients(s, position - left, scale);
  const auto first = static_cast<std::int64_t>(left) - static_cast<std::int64_t>(c.size()) / 2 + 1;
  if (s.exclude_outside && s.mode != "nearest") {
    for (std::size_t k = 0; k < c.size(); ++k) {
      const std::int64_t i = first + static_cast<std::int64_t>(k);
      if (i < 0 || i >= in) c[k] = 0;
    }
    const double sum = std::accumulate(c.begin(), c.end(), 0.0);
    for (double& v : c) v /= sum;
  }
  double result = 0;
  for (std::size_t k = 0; k < c.size(); ++k) {
    if (c[k] == 0) continue;
    const std::int64_t i =
        std::clamp<std::int64_t>(first + static_cast<std::int64_t>(k), 0, in - 1);
    const double value = SpecElement(s, x, scales, out, at, axis + 1, offset * in + i, roi);
    // A point outside the picture is the extrapolation value, whichever axis says so.
    if (s.coordinates == "tf_crop_and_resize" && value == static_cast<double>(s.extrapolation))
      return value;
    result += c[k] * value;
  }
  return result;
}

Tensor SpecResize(const Spec& s, const Tensor& x) {
  const int rank = x.shape().rank();
  Shape out = x.shape();
  std::vector<double> scales;
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (s.sizes.empty()) {
      // Scales such as 0.6f mean the fraction: 0.6 * 5 is 3.
      scales.push_back(std::round(static_cast<double>(s.scales[i]) * 1e6) / 1e6);
      out[d] = static_cast<std::int64_t>(
          std::floor(scales[i] * static_cast<double>(x.shape()[d]) + 1e-9));
    } else {
      scales.push_back(static_cast<double>(s.sizes[i]) / static_cast<double>(x.shape()[d]));
      out[d] = s.sizes[i];
    }
  }
  Tensor y(DType::kFloat32, out);
  const auto strides = RowMajorStrides(out);
  for (std::int64_t i = 0; i < y.size(); ++i) {
    std::vector<std::int64_t> at;
    for (int d = 0; d < rank; ++d) at.push_back(i / strides[static_cast<std::size_t>(d)] % out[d]);
    y.data<float>()[i] = static_cast<float>(SpecElement(s, x, scales, out, at, 0, 0, s.roi));
  }
  return y;
}

OpCall MakeCall(const Spec& s, const Tensor& x, int opset) {
  OpCall call("Resize", opset);
  call.Attr("mode", s.mode.c_str()).Attr("coordinate_transformation_mode", s.coordinates.c_str());
  call.Attr("nearest_mode", s.nearest_mode.c_str());
  call.Attr("cubic_coeff_a", static_cast<float>(s.cubic_a));
  call.Attr("exclude_outside", s.exclude_outside ? 1 : 0).Attr("antialias", s.antialias ? 1 : 0);
  call.Attr("extrapolation_value", s.extrapolation);
  call.In(x.Clone());
  const auto n = static_cast<std::int64_t>(s.scales.size());
  s.roi.empty() ? call.Absent() : call.Const(Floats({2 * x.shape().rank()}, s.roi));
  s.scales.empty() ? call.Absent() : call.Const(Floats({n}, s.scales));
  if (!s.sizes.empty()) call.Const(Int64s(s.sizes));
  return call;
}

TEST(Resize, FollowsTheFormulasInEveryMode) {
  std::mt19937 random(8);
  const Tensor x = RandomTensor({1, 17, 9, 11}, random);
  const std::vector<std::vector<float>> all_scales = {
      {1, 1, 2, 2},    {1, 1, 4, 3},    {1, 1, 0.5f, 0.5f}, {1, 1, 0.6f, 1.7f},
      {1, 1, 1, 2.5f}, {1, 1, 0.3f, 1}, {1, 1, 0.1f, 0.12f}};
  const std::vector<std::vector<std::int64_t>> all_sizes = {{1, 17, 7, 30}, {1, 17, 18, 1}};
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                    "align_corners", "asymmetric", "tf_half_pixel_for_nn"}) {
      for (const char* nearest_mode :
           {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
        if (std::string(mode) != "nearest" && std::string(nearest_mode) != "floor") continue;
        Spec s;
        s.mode = mode, s.coordinates = coordinates, s.nearest_mode = nearest_mode;
        const auto check = [&] {
          const std::string what = s.mode + " " + s.coordinates + " " + s.nearest_mode + " " +
                                   (s.scales.empty() ? "sizes" : std::to_string(s.scales[2]));
          ExpectClose(MakeCall(s, x, 19).RunOne(2e-6), SpecResize(s, x), 2e-6, what);
        };
        for (const auto& scales : all_scales) s.scales = scales, s.sizes.clear(), check();
        for (const auto& sizes : all_sizes) s.scales.clear(), s.sizes = sizes, check();
      }
    }
  }
}

TEST(Resize, CubicTakesItsCoefficientAndExcludesTheOutside) {
  std::mt19937 random(9);
  const Tensor x = RandomTensor({1, 2, 7, 9}, random);
  for (const double a : {-0.5, -0.75}) {
    for (const bool exclude : {false, true}) {
      for (const float scale : {2.f, 0.5f, 1.3f}) {
        Spec s;
        s.mode = "cubic", s.cubic_a = a, s.exclude_outside = exclude;
        s.scales = {1, 1, scale, scale};
        ExpectClose(MakeCall(s, x, 13).RunOne(2e-6), SpecResize(s, x), 3e-6);
      }
    }
  }
}

TEST(Resize, AntialiasWidensTheKernelSinceOpset18) {
  std::mt19937 random(10);
  const Tensor x = RandomTensor({1, 3, 13, 17}, random);
  for (const char* mode : {"linear", "cubic"}) {
    for (const bool exclude : {false, true}) {
      for (const float scale : {0.6f, 0.25f, 2.f}) {
        Spec s;
        s.mode = mode, s.antialias = true, s.exclude_outside = exclude;
        s.scales = {1, 1, scale, scale};
        ExpectClose(MakeCall(s, x, 18).RunOne(2e-6), SpecResize(s, x), 3e-6, mode);
        s.antialias = false;
        const Tensor plain = SpecResize(s, x);
        s.antialias = true;
        ExpectClose(MakeCall(s, x, 17).RunOne(2e-6), plain, 3e-6, "attribute before opset 18");
      }
    }
  }
}

TEST(Resize, CropsAndExtrapolates) {
  std::mt19937 random(11);
  const Tensor x = RandomTensor({1, 1, 6, 7}, random);
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const float reach : {0.9f, 1.2f}) {
      Spec s;
      s.mode = mode, s.coordinates = "tf_crop_and_resize", s.extrapolation = 10;
      s.roi = {0, 0, 0.4f, -0.1f, 1, 1, reach, 0.8f};
      s.sizes = {1, 1, 5, 4};
      ExpectClose(MakeCall(s, x, 13).RunOne(2e-6), SpecResize(s, x), 3e-6, mode);
    }
  }
}

TEST(Resize, WorksOnAnyAxisAndRank) {
  std::mt19937 random(12);
  for (const char* mode : {"nearest", "linear"}) {
    Spec s;
    s.mode = mode;
    const Tensor line = RandomTensor({9}, random);
    s.scales = {1.5f};
    ExpectClose(MakeCall(s, line, 13).RunOne(), SpecResize(s, line), 2e-6);
    const Tensor volume = RandomTensor({1, 2, 3, 4, 5}, random);
    s.scales = {1, 1, 2, 1.5f, 0.7f};
    ExpectClose(MakeCall(s, volume, 13).RunOne(), SpecResize(s, volume), 2e-6);
    const Tensor channels_last = RandomTensor({1, 4, 5, 3}, random);
    s.scales = {1, 2, 2, 1};
    ExpectClose(MakeCall(s, channels_last, 13).RunOne(), SpecResize(s, channels_last), 2e-6);
  }
}

TEST(Resize, TakesAxesAndKeepsTheAspectRatioSinceOpset18) {
  std::mt19937 random(13);
  const Tensor x = RandomTensor({1, 2, 4, 6}, random);
  const auto call = [&](const char* policy) {
    return OpCall("Resize", 18)
        .Attr("axes", std::vector<std::int64_t>{-1, 2})
        .Attr("keep_aspect_ratio_policy", policy)
        .In(x.Clone())
        .Absent()
        .Absent()
        .Const(Int64s({9, 8}));
  };
  EXPECT_EQ(call("stretch").Infer()[0].shape, (Shape{1, 2, 8, 9}));
  EXPECT_EQ(call("not_larger").Infer()[0].shape, (Shape{1, 2, 6, 9}));
  EXPECT_EQ(call("not_smaller").Infer()[0].shape, (Shape{1, 2, 8, 12}));
  Spec s;
  s.scales = {1, 1, 2, 1.5f};
  const Tensor y = OpCall("Resize", 18)
                       .Attr("axes", std::vector<std::int64_t>{3, 2})
                       .In(x.Clone())
                       .Absent()
                       .Const(Floats({2}, {1.5f, 2}))
                       .RunOne();
  ExpectClose(y, SpecResize(s, x), 0);
}

TEST(Resize, HasOlderForms) {
  const Tensor x = Floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto scales = [](float h, float w) { return Floats({4}, {1, 1, h, w}); };
  EXPECT_EQ(ToVector<float>(OpCall("Resize", 10).In(x.Clone()).Const(scales(0.6f, 0.6f)).RunOne()),
            (std::vector<float>{1, 3}));
  EXPECT_EQ(ToVector<float>(OpCall("Upsample", 9).In(x.Clone()).Const(scales(1, 1.5f)).RunOne()),
            (std::vector<float>{1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8}));
  EXPECT_EQ(ToVector<float>(OpCall("Upsample", 7)
                                .Attr("mode", "linear")
                                .Attr("scales", std::vector<float>{1, 1, 1, 2})
                                .In(Floats({1, 1, 1, 2}, {1, 3}))
                                .RunOne()),
            (std::vector<float>{1, 2, 3, 3}));
  // Opset 11 could only leave scales out by an empty tensor.
  const Tensor y = OpCall("Resize", 11)
                       .In(x.Clone())
                       .Const(Floats({0}, {}))
                       .Const(Floats({0}, {}))
                       .Const(Int64s({1, 1, 1, 2}))
                       .RunOne();
  EXPECT_EQ(y.shape(), (Shape{1, 1, 1, 2}));
}

TEST(Resize, TakesOtherTypes) {
  const auto call = [](Tensor x, const char* mode) {
    return OpCall("Resize").Attr("mode", mode).In(std::move(x)).Absent().Const(Floats({2}, {1, 2}));
  };
  EXPECT_EQ(ToVector<std::uint8_t>(call(Values<std::uint8_t>({1, 2}, {0, 255}), "linear").RunOne()),
            (std::vector<std::uint8_t>{0, 63, 191, 255}));
  // The sum of the weights times this rounds to 2^63, which is none of the type.
  EXPECT_EQ(ToVector<std::int64_t>(
                call(Values<std::int64_t>({1, 2}, {INT64_MAX, INT64_MAX}), "linear").RunOne()),
            std::vector<std::int64_t>(4, INT64_MAX));
  EXPECT_EQ(ToVector<std::int64_t>(
                call(Values<std::int64_t>({1, 2}, {INT64_MAX, 1}), "nearest").RunOne()),
            (std::vector<std::int64_t>{INT64_MAX, INT64_MAX, 1, 1}));
  EXPECT_EQ(ToVector<bool>(call(Values<bool>({1, 2}, {true, false}), "nearest").RunOne()),
            (std::vector<bool>{true, true, false, false}));
  const Tensor half = call(Values<Half>({1, 2}, {0.f, 1.f}), "linear").RunOne();
  EXPECT_EQ(static_cast<float>(half.data<Half>()[1]), 0.25f);
  EXPECT_THROW(call(Values<bool>({1, 2}, {true, false}), "linear").Infer(), Error);
}

TEST(Resize, ChoosesFastKernels) {
  const auto call = [](const char* mode, float scale) {
    return OpCall("Resize")
        .Attr("mode", mode)
        .Attr("coordinate_transformation_mode", "asymmetric")
        .Attr("nearest_mode", "floor")
        .In(Iota({1, 3, 8, 8}))
        .Absent()
        .Const(Floats({4}, {1, 1, scale, scale}));
  };
  EXPECT_EQ(call("nearest", 4).KernelName({}), "resize_nearest_repeat");
  EXPECT_EQ(call("nearest", 4).KernelName({.blocked = true, .constant = false}),
            "resize_nearest_repeat");
  EXPECT_EQ(call("nearest", 1.5f).KernelName({}), "resize_nearest");
  EXPECT_EQ(call("cubic", 0.5f).KernelName({}), "resize_separable");
  EXPECT_EQ(call("cubic", 0.5f).KernelName({.reference = true}), "resize_reference");
}

// Sizes and scales decide the shape, the region of interest only the values.
TEST(Resize, TakesARegionThatIsComputed) {
  const auto call = [](bool constant_sizes) {
    OpCall call("Resize");
    call.Attr("mode", "linear").Attr("coordinate_transformation_mode", "tf_crop_and_resize");
    call.Attr("extrapolation_value", 9.f).In(Iota({1, 1, 1, 5}));
    call.In(Floats({8}, {0, 0, 0, 0.5f, 1, 1, 1, 1.25f})).Absent();
    constant_sizes ? call.Const(Int64s({1, 1, 1, 4})) : call.In(Int64s({1, 1, 1, 4}));
    return call;
  };
  EXPECT_EQ(ToVector<float>(call(true).RunOne()), (std::vector<float>{2, 3, 4, 9}));
  EXPECT_EQ(call(true).KernelName({.constant = false}), "resize_roi");
  EXPECT_THROW(call(false).Infer(false), NeedsValue);
}

// Every output pixel of the middle depends on no input pixel outside of the field, and the field
// is not wider than needed.
TEST(Resize, FieldIsWhatOutputsDependOn) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "asymmetric", "pytorch_half_pixel"}) {
      for (const float scale : {2.f, 4.f, 0.5f, 1.5f, 0.6f}) {
        constexpr std::int64_t n = 24;
        const auto make = [&](Tensor x) {
          return OpCall("Resize")
              .Attr("mode", mode)
              .Attr("coordinate_transformation_mode", coordinates)
              .In(std::move(x))
              .Absent()
              .Const(Floats({4}, {1, 1, 1, scale}));
        };
        const auto field = make(Iota({1, 1, 2, n})).Field();
        ASSERT_TRUE(field);
        const AxisField f = (*field)[1];
        EXPECT_FLOAT_EQ(static_cast<float>(f.num) / static_cast<float>(f.den), scale);
        double lo = 1e9, hi = -1e9;
        for (std::int64_t i = 6; i < n - 6; ++i) {
          Tensor impulse = Floats({1, 1, 2, n}, std::vector<float>(2 * n));
          impulse.data<float>()[i] = 1;
          const Tensor y = make(std::move(impulse)).Run({})[0].Clone();
          for (std::int64_t p = 0; p < y.size() / 2; ++p) {
            if (y.data<float>()[p] == 0) continue;
            const double offset = static_cast<double>(i) -
                                  static_cast<double>(p * f.den) / static_cast<double>(f.num);
            lo = std::min(lo, offset), hi = std::max(hi, offset);
          }
        }
        EXPECT_NEAR(f.lo, lo, 1e-9) << mode << " " << coordinates << " " << scale;
        EXPECT_NEAR(f.hi, hi, 1e-9) << mode << " " << coordinates << " " << scale;
      }
    }
  }
  // The field is that of the middle, whatever the border of a small example excludes.
  const auto bordered = [](int exclude) {
    return (*OpCall("Resize")
                 .Attr("mode", "cubic")
                 .Attr("exclude_outside", exclude)
                 .In(Iota({1, 1, 4, 4}))
                 .Absent()
                 .Const(Floats({4}, {1, 1, 2, 2}))
                 .Field())[0];
  };
  EXPECT_EQ(bordered(0).lo, bordered(1).lo);
  EXPECT_EQ(bordered(0).hi, bordered(1).hi);
  const auto call = [] { return OpCall("Resize").In(Iota({1, 1, 4, 4})).Absent(); };
  // Sizes scale this input so; whether they scale others, only the graph can tell.
  const auto sized = call().Absent().Const(Int64s({1, 1, 8, 12})).Field();
  ASSERT_TRUE(sized);
  EXPECT_EQ((*sized)[0].num, 2 * (*sized)[0].den);
  EXPECT_EQ((*sized)[1].num, 3 * (*sized)[1].den);
  EXPECT_FALSE(call()
                   .Attr("coordinate_transformation_mode", "align_corners")
                   .Const(Floats({4}, {1, 1, 2, 2}))
                   .Field());
}

TEST(Resize, RefusesWhatIsNotSpecified) {
  const auto call = [] { return OpCall("Resize").In(Iota({1, 1, 4, 4})).Absent(); };
  const auto scales = [] { return Floats({4}, {1, 1, 2, 2}); };
  EXPECT_THROW(call().Infer(), Error);                                              // neither
  EXPECT_THROW(call().Const(scales()).Const(Int64s({1, 1, 8, 8})).Infer(), Error);  // both
  EXPECT_THROW(call().Const(Floats({2}, {2, 2})).Infer(), Error);
  EXPECT_THROW(call().Const(Floats({4}, {1, 1, 0, 2})).Infer(), Error);
  EXPECT_THROW(call().Const(Floats({4}, {1, 1, -1, 2})).Infer(), Error);
  EXPECT_THROW(call().Absent().Const(Int64s({1, 1, -8, 8})).Infer(), Error);
  EXPECT_THROW(call().Attr("mode", "area").Const(scales()).Infer(), Error);
  EXPECT_THROW(call().Attr("nearest_mode", "up").Const(scales()).Infer(), Error);
  EXPECT_THROW(call().Attr("coordinate_transformation_mode", "x").Const(scales()).Infer(), Error);
  EXPECT_THROW(
      call().Attr("coordinate_transformation_mode", "tf_crop_and_resize").Const(scales()).Infer(),
      Error);
  EXPECT_THROW(call().In(scales()).Infer(/*constant=*/false), Error);
  EXPECT_THROW(OpCall("Resize", 18)
                   .Attr("axes", std::vector<std::int64_t>{2, -2})
                   .In(Iota({1, 1, 4, 4}))
                   .Absent()
                   .Const(Floats({2}, {2, 2}))
                   .Infer(),
               Error);
}

// Weights are floats: that they sum up to 0.99999994 may not cost a level.
TEST(Resize, FlatIntegersStayAsTheyAre) {
  for (const char* mode : {"linear", "cubic"}) {
    for (const float scale : {3.0462f, 0.37f, 1.7f}) {
      Tensor x(DType::kUint8, {2, 3, 5, 7, 2});
      std::fill_n(x.data<std::uint8_t>(), x.size(), std::uint8_t{201});
      const Tensor y = OpCall("Resize", 13)
                           .Attr("mode", mode)
                           .Attr("coordinate_transformation_mode", "pytorch_half_pixel")
                           .In(std::move(x))
                           .Absent()
                           .Const(Floats({5}, {1, scale, scale, 1, scale}))
                           .RunOne();
      for (const std::uint8_t v : y.values<std::uint8_t>()) ASSERT_EQ(v, 201) << mode << scale;
    }
  }
}

}  // namespace
}  // namespace tessera
