// GridSample, RoiAlign and NonMaxSuppression.
#include <cmath>
#include <limits>

#include "tests/ops/op_test_util.h"

namespace tessera {
namespace {

using Ints = std::vector<std::int64_t>;

OpCall Sample(Tensor x, Tensor grid, const char* mode, const char* padding, int align_corners,
              int opset = 16) {
  OpCall call("GridSample", opset);
  call.Attr("mode", mode).Attr("padding_mode", padding).Attr("align_corners", align_corners);
  call.In(std::move(x)).In(std::move(grid));
  return call;
}

// A row of 4 pixels 1, 2, 3, 4; the grid names columns.
std::vector<float> SampleRow(const std::vector<float>& columns, const char* mode,
                             const char* padding, int align_corners) {
  std::vector<float> grid;
  for (const float column : columns) {
    // Columns as pixels, in the grid's coordinates.
    grid.push_back(align_corners ? column / 1.5f - 1 : (column + 0.5f) / 2 - 1);
    grid.push_back(0);
  }
  const auto n = static_cast<std::int64_t>(columns.size());
  return ToVector<float>(Sample(Floats({1, 1, 1, 4}, {1, 2, 3, 4}), Floats({1, 1, n, 2}, grid),
                                mode, padding, align_corners)
                             .RunOne());
}

TEST(GridSample, InterpolatesAndPads) {
  using F = std::vector<float>;
  const F columns{0, 0.25f, 2.5f, 3, 3.25f, -0.25f, 5, -2};
  EXPECT_EQ(SampleRow(columns, "bilinear", "zeros", 0), (F{1, 1.25f, 3.5f, 4, 3, 0.75f, 0, 0}));
  EXPECT_EQ(SampleRow(columns, "bilinear", "border", 0), (F{1, 1.25f, 3.5f, 4, 4, 1, 4, 1}));
  // Mirrored at -0.5 and 3.5: column 5 is column 2, column -2 is column 1.
  EXPECT_EQ(SampleRow(columns, "bilinear", "reflection", 0), (F{1, 1.25f, 3.5f, 4, 4, 1, 3, 2}));
  // Ties go to even columns.
  EXPECT_EQ(SampleRow({0, 0.25f, 0.5f, 1.5f, 2.5f, 3.75f, -0.25f}, "nearest", "zeros", 0),
            (F{1, 1, 1, 3, 3, 0, 1}));
  EXPECT_EQ(SampleRow({-1, 4, 100, -100}, "nearest", "border", 0), (F{1, 4, 4, 1}));
}

TEST(GridSample, AlignsCorners) {
  const std::vector<float> columns{0, 1.5f, 3, 4.5f, -1.5f};
  const std::vector<float> zeros = SampleRow(columns, "bilinear", "zeros", 1);
  const std::vector<float> mirrored = SampleRow(columns, "bilinear", "reflection", 1);
  const std::vector<float> expected_zeros{1, 2.5f, 4, 0, 0}, expected{1, 2.5f, 4, 2.5f, 2.5f};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    EXPECT_NEAR(zeros[i], expected_zeros[i], 1e-5f);
    EXPECT_NEAR(mirrored[i], expected[i], 1e-5f);
  }
}

TEST(GridSample, CubicFollowsKeysKernel) {
  // Half way between two pixels: -3/32 and 19/32 with a = -0.75.
  EXPECT_NEAR(SampleRow({1.5f}, "bicubic", "zeros", 0)[0], -0.09375f * (1 + 4) + 0.59375f * (2 + 3),
              1e-6f);
  EXPECT_NEAR(SampleRow({0.5f}, "bicubic", "zeros", 0)[0], -0.09375f * 3 + 0.59375f * (1 + 2),
              1e-6f);
  EXPECT_NEAR(SampleRow({0.5f}, "bicubic", "border", 0)[0],
              -0.09375f * (1 + 3) + 0.59375f * (1 + 2), 1e-6f);
}

TEST(GridSample, TakesVolumesSinceOpset20) {
  // The last coordinate of the grid is that of the first axis.
  const auto run = [](const char* mode) {
    return ToVector<double>(Sample(Iota<double>({1, 1, 2, 3, 4}),
                                   Floats({1, 1, 1, 2, 3}, {-1, 0, 1, 1, 1, 0}), mode, "zeros", 1,
                                   20)
                                .RunOne());
  };
  EXPECT_EQ(run("linear"), (std::vector<double>{16, 17}));
  EXPECT_EQ(run("nearest"), (std::vector<double>{16, 11}));  // half way is even: 0
  EXPECT_THROW(Sample(Iota({1, 1, 2, 2}), Iota({1, 2, 2, 2}), "bilinear", "zeros", 0, 20).Infer(),
               Error);
  EXPECT_THROW(Sample(Iota({1, 1, 2, 2}), Iota({1, 2, 2, 2}), "linear", "zeros", 0, 16).Infer(),
               Error);
  EXPECT_THROW(
      Sample(Iota({1, 1, 2, 2, 2}), Iota({1, 2, 2, 2, 3}), "bilinear", "zeros", 0, 16).Infer(),
      Error);
}

TEST(GridSample, SurvivesAnyCoordinate) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const char* mode : {"nearest", "bilinear", "bicubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const int align : {0, 1}) {
        for (const std::int64_t size : {1, 3}) {
          const Tensor y = Sample(Iota({1, 1, size, size}),
                                  Floats({1, 1, 6, 2}, {inf, -inf, nan, 0, 0, nan, 3e38f, -3e38f,
                                                        1e9f, 1e10f, -1e9f, 7}),
                                  mode, padding, align)
                               .RunOne();
          for (const float v : ToVector<float>(y)) EXPECT_TRUE(std::abs(v) <= 100) << v;
        }
      }
    }
  }
}

TEST(GridSample, TakesOtherTypes) {
  const auto grid = [] { return Floats({1, 1, 2, 2}, {-0.5f, 0, 0.25f, 0}); };
  EXPECT_EQ(ToVector<std::uint8_t>(
                Sample(Values<std::uint8_t>({1, 1, 1, 2}, {0, 200}), grid(), "bilinear", "zeros", 0)
                    .RunOne()),
            (std::vector<std::uint8_t>{0, 150}));
  EXPECT_EQ(ToVector<std::int64_t>(Sample(Values<std::int64_t>({1, 1, 1, 2}, {INT64_MAX, 5}),
                                          grid(), "nearest", "zeros", 0)
                                       .RunOne()),
            (Ints{INT64_MAX, 5}));
  EXPECT_EQ(Sample(Iota({0, 2, 3, 3}), Iota({0, 4, 5, 2}), "bilinear", "zeros", 0).RunOne().shape(),
            (Shape{0, 2, 4, 5}));
  EXPECT_THROW(Sample(Iota({1, 1, 0, 3}), Iota({1, 1, 1, 2}), "bilinear", "zeros", 0).Infer(),
               Error);
  EXPECT_THROW(Sample(Iota({1, 1, 3, 3}), Iota({2, 1, 1, 2}), "bilinear", "zeros", 0).Infer(),
               Error);
}

OpCall Roi(int opset, const std::vector<float>& roi, int ratio) {
  OpCall call("RoiAlign", opset);
  call.Attr("output_height", 1).Attr("output_width", 2).Attr("sampling_ratio", ratio);
  call.In(Floats({1, 2, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 0, 10, 20, 30, 40, 50, 60, 70}));
  call.In(Floats({1, 4}, roi)).In(Int64s({0}));
  return call;
}

TEST(RoiAlign, AveragesSamples) {
  // Half-pixel: the whole map is [-0.5, 3.5) x [-0.5, 1.5). Two bins of 2 x 2 pixels.
  const Tensor y = Roi(16, {0, 0, 4, 2}, 2).RunOne();
  EXPECT_EQ(y.shape(), (Shape{1, 2, 1, 2}));
  EXPECT_EQ(ToVector<float>(y), (std::vector<float>{2.5f, 4.5f, 25, 45}));
  // As many samples as pixels by themselves.
  EXPECT_EQ(ToVector<float>(Roi(16, {0, 0, 4, 2}, 0).RunOne()),
            (std::vector<float>{2.5f, 4.5f, 25, 45}));
  // Opset 10 does not shift: rows 0.5 and 1 (1.5 is beyond the last), columns 0.5 and 1.5.
  EXPECT_EQ(ToVector<float>(Roi(10, {0, 0, 4, 2}, 2).RunOne())[0], (2 + 4) / 2.f + 1);
  // Far outside there is nothing.
  EXPECT_EQ(ToVector<float>(Roi(16, {10, 10, 14, 12}, 2).RunOne()),
            (std::vector<float>{0, 0, 0, 0}));
  // The highest of the weighted neighbours.
  EXPECT_EQ(ToVector<float>(Roi(16, {0, 0, 4, 2}, 2).Attr("mode", "max").RunOne()),
            (std::vector<float>{5, 7, 50, 70}));
}

TEST(RoiAlign, RefusesWhatIsOutside) {
  const auto call = [](std::int64_t batch) {
    return OpCall("RoiAlign")
        .In(Iota({1, 1, 2, 2}))
        .In(Floats({1, 4}, {0, 0, 1, 1}))
        .In(Int64s({batch}));
  };
  EXPECT_NO_THROW(call(0).Run({}));
  EXPECT_THROW(call(1).Run({}), Error);
  EXPECT_THROW(call(-1).Run({}), Error);
  EXPECT_THROW(Roi(16, {0, 0, 1e30f, 1}, 0).Run({}), Error);
  EXPECT_THROW(Roi(16, {0, std::nanf(""), 1, 1}, 0).Run({}), Error);
  EXPECT_THROW(call(0).Attr("mode", "sum").Infer(), Error);
  EXPECT_THROW(call(0).Attr("output_height", 0).Infer(), Error);
  EXPECT_EQ(OpCall("RoiAlign")
                .In(Iota({1, 3, 2, 2}))
                .In(Iota({0, 4}))
                .In(Values<std::int64_t>({0}, {}))
                .RunOne()
                .shape(),
            (Shape{0, 3, 1, 1}));
}

// Three boxes, the second of which overlaps the first by 2 / 3.
OpCall Boxes(const std::vector<float>& scores, bool center = false) {
  OpCall call("NonMaxSuppression");
  call.Attr("center_point_box", center);
  const auto classes = static_cast<std::int64_t>(scores.size()) / 3;
  if (center) {
    call.Const(Floats({1, 3, 4}, {5, 5, 10, 10, 7, 5, 10, 10, 55, 55, 10, 10}));
  } else {
    // Corners in any order.
    call.Const(Floats({1, 3, 4}, {0, 0, 10, 10, 10, 12, 0, 2, 50, 50, 60, 60}));
  }
  call.Const(Floats({1, classes, 3}, scores));
  return call;
}

TEST(NonMaxSuppression, KeepsTheBestOfBoxesThatOverlap) {
  const auto scalar = [](float v) { return Floats({}, {v}); };
  const auto most = [](std::int64_t n) { return Int64s({n}); };
  for (const bool center : {false, true}) {
    const auto boxes = [&](const std::vector<float>& scores) { return Boxes(scores, center); };
    const auto run = [](const OpCall& call) { return ToVector<std::int64_t>(call.RunOne()); };
    EXPECT_EQ(run(boxes({0.5f, 0.9f, 0.7f}).Const(most(3)).Const(scalar(0.5f))),
              (Ints{0, 0, 1, 0, 0, 2}));
    EXPECT_EQ(run(boxes({0.5f, 0.9f, 0.7f}).Const(most(3)).Const(scalar(0.7f))),
              (Ints{0, 0, 1, 0, 0, 2, 0, 0, 0}));
    EXPECT_EQ(run(boxes({0.5f, 0.9f, 0.7f}).Const(most(1)).Const(scalar(0.7f))), (Ints{0, 0, 1}));
    // Any overlap is too much by default; equal scores keep their order.
    EXPECT_EQ(run(boxes({1, 1, 1}).Const(most(9))), (Ints{0, 0, 0, 0, 0, 2}));
    EXPECT_EQ(run(boxes({0.5f, 0.9f, 0.7f, 0.3f, 0.2f, 0.1f})
                      .Const(most(2))
                      .Const(scalar(0.5f))
                      .Const(scalar(0.2f))),
              (Ints{0, 0, 1, 0, 0, 2, 0, 1, 0}));
    EXPECT_EQ(run(boxes({-5, -4, std::nanf("")}).Const(most(9))), (Ints{0, 0, 1}));
  }
  EXPECT_EQ(Boxes({1, 1, 1}).RunOne().shape(), (Shape{0, 3}));  // none by default
  EXPECT_EQ(Boxes({1, 1, 1}).Const(most(-1)).RunOne().shape(), (Shape{0, 3}));
}

TEST(NonMaxSuppression, NeedsItsInputs) {
  OpCall call("NonMaxSuppression");
  call.In(Iota({1, 3, 4})).In(Iota({1, 1, 3})).In(Int64s({3}));
  EXPECT_THROW(call.Infer(false), NeedsValue);
  EXPECT_THROW(OpCall("NonMaxSuppression").Const(Iota({1, 3, 4})).Const(Iota({1, 1, 2})).Infer(),
               Error);
  EXPECT_THROW(OpCall("NonMaxSuppression").Const(Iota({3, 4})).Const(Iota({1, 1, 3})).Infer(),
               Error);
  EXPECT_THROW(Boxes({1, 1, 1}).Const(Floats({}, {1})).Infer(), Error);
  EXPECT_EQ(OpCall("NonMaxSuppression")
                .Const(Iota({2, 0, 4}))
                .Const(Iota({2, 5, 0}))
                .Const(Int64s({3}))
                .RunOne()
                .shape(),
            (Shape{0, 3}));
}

}  // namespace
}  // namespace tessera
