// PixelCorrelation: a pointwise convolution whose weights are computed, y = sum over c of
//   kernel[n, c, m] * x[n, c, h, w]
// with kernel [N, C, M], x [N, C, H, W] and y [N, M, H, W] of float32: each pixel of a search area
// is compared with each of a template. Yan et al., "Alpha-Refine", https://arxiv.org/abs/2012.06815
#include <algorithm>

#include "ops/elements.h"
#include "ops/matmul_tile.h"
#include "ops/op.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

void InferPixelCorrelation(const InferContext& context) {
  const TensorInfo& kernel = context.Input(0);
  const TensorInfo& x = context.Input(1);
  RequireType(kernel.dtype, TypeList<float>());
  RequireType(x.dtype, TypeList<float>());
  const Shape &k = kernel.shape, &s = x.shape;
  Require(k.rank() == 3 && s.rank() == 4 && k[0] == s[0] && k[1] == s[1], "kernel ", k, " and X ",
          s, " do not fit together");
  context.SetOutput(0, DType::kFloat32, {s[0], k[2], s[2], s[3]});
}

LayoutChoice ChooseLayouts(const LayoutContext& context) {
  if (context.inputs[0].shape[2] % FloatLanes() != 0) return {};
  return {{Layout::kRowMajor, Layout::kBlocked}, {Layout::kBlocked}};
}

double FlopsOf(const Shape& kernel, const Shape& x) {
  return 2.0 * static_cast<double>(kernel[2]) * static_cast<double>(x.NumElements());
}

class PlainPixelCorrelation final : public Kernel {
 public:
  PlainPixelCorrelation(const Shape& kernel, const Shape& x) : kernel_(kernel), x_(x) {}
  std::string_view name() const override { return "pixel_correlation_reference"; }
  double Flops() const override { return FlopsOf(kernel_, x_); }
  void Run(const RunContext& run) const override {
    const std::int64_t channels = x_[1], plane = x_[2] * x_[3], out_channels = kernel_[2];
    run.parallel.For(x_[0] * out_channels, [&](std::int64_t task, int) {
      const std::int64_t image = task / out_channels, m = task % out_channels;
      const float* k = run.inputs[0].data<float>() + image * channels * out_channels + m;
      const float* x = run.inputs[1].data<float>() + image * channels * plane;
      float* y = run.outputs[0].data<float>() + task * plane;
      for (std::int64_t i = 0; i < plane; ++i) {
        double sum = 0;
        for (std::int64_t c = 0; c < channels; ++c) {
          sum += static_cast<double>(k[c * out_channels]) * static_cast<double>(x[c * plane + i]);
        }
        y[i] = static_cast<float>(sum);
      }
    });
  }

 private:
  Shape kernel_, x_;
};

// The product of x, a matrix of pixels and channels, with the kernel.
class BlockedPixelCorrelation final : public Kernel {
 public:
  BlockedPixelCorrelation(const Shape& kernel, const Shape& x, const Shape& y)
      : flops_(FlopsOf(kernel, x)), x_(x), y_(y) {}
  std::string_view name() const override { return "pixel_correlation"; }
  double Flops() const override { return flops_; }
  void Run(const RunContext& run) const override {
    // Rows without a gap between them are one long row.
    const bool one_row = x_.row_stride == x_.width * x_.lanes && y_.row_stride == x_.row_stride;
    const std::int64_t rows = one_row ? 1 : x_.height;
    const std::int64_t width = one_row ? x_.height * x_.width : x_.width;
    const std::int64_t pieces = (width + kPixelsPerTask - 1) / kPixelsPerTask;
    run.parallel.For(x_.images * rows * pieces, [&](std::int64_t task, int) {
      const std::int64_t first = task % pieces * kPixelsPerTask;
      const std::int64_t row = task / pieces % rows, image = task / (pieces * rows);
      Multiply({.a = run.inputs[1].data<float>() + image * x_.image_stride + row * x_.row_stride +
                     first * x_.lanes,
                .a_row_stride = x_.lanes,
                .a_column_stride = 1,
                .b = run.inputs[0].data<float>() + image * x_.channels * y_.channels,
                .b_row_stride = y_.channels,
                .c = run.outputs[0].data<float>() + image * y_.image_stride + row * y_.row_stride +
                     first * y_.lanes,
                .c_row_stride = y_.lanes,
                .m = std::min(kPixelsPerTask, width - first),
                .n = y_.channels,
                .k = x_.channels,
                .alpha = 1,
                .a_block = x_.lanes,
                .a_block_stride = x_.plane_stride,
                .c_block_stride = y_.plane_stride});
    });
  }

 private:
  static constexpr std::int64_t kPixelsPerTask = 48;

  double flops_;
  BlockedLayout x_, y_;
};

std::unique_ptr<Kernel> PreparePixelCorrelation(const PrepareContext& context) {
  const Shape &kernel = context.inputs[0].shape, &x = context.inputs[1].shape;
  if (context.outputs[0].layout == Layout::kBlocked) {
    return std::make_unique<BlockedPixelCorrelation>(kernel, x, context.outputs[0].shape);
  }
  return std::make_unique<PlainPixelCorrelation>(kernel, x);
}

std::optional<SpatialField> PixelCorrelationField(const FieldContext& context, std::size_t i) {
  return i == 1 ? PointwiseField(context, i) : std::nullopt;
}

}  // namespace

extern const OpDef kPixelCorrelationOp;
const OpDef kPixelCorrelationOp = {.type = "PixelCorrelation",
                                   .min_inputs = 2,
                                   .max_inputs = 2,
                                   .infer = InferPixelCorrelation,
                                   .prepare = PreparePixelCorrelation,
                                   .layouts = ChooseLayouts,
                                   .field = PixelCorrelationField,
                                   .internal = true};

}  // namespace tessera
