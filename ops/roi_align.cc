// RoiAlign: regions of a feature map, resampled to one size.
// https://onnx.ai/onnx/operators/onnx__RoiAlign.html
//
//   X [N, C, H, W], rois [R, 4] as (x1, y1, x2, y2), batch_indices [R]
//   Y [R, C, output_height, output_width]
#include <algorithm>
#include <cmath>
#include <string>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

constexpr std::size_t kRois = 1, kBatchIndices = 2;
// Along one axis of an output element: its cost is the square of them.
constexpr int kMostSamples = 1 << 12;

struct RoiRule {
  explicit RoiRule(const OpNode& node)
      : height(node.attributes.Int("output_height", 1)),
        width(node.attributes.Int("output_width", 1)),
        sampling_ratio(node.attributes.Int("sampling_ratio", 0)),
        scale(node.attributes.Float("spatial_scale", 1.f)) {
    constexpr std::int64_t kMost = 1 << 16;
    Require(height >= 1 && height <= kMost && width >= 1 && width <= kMost, "an output of ", height,
            "x", width);
    Require(sampling_ratio >= 0 && sampling_ratio <= kMostSamples, "sampling_ratio ",
            sampling_ratio);
    const std::string mode = node.attributes.String("mode", "avg");
    Require(mode == "avg" || mode == "max", "unknown mode '", mode, "'");
    max = mode == "max";
    // Opset 10 knew but one way.
    const std::string transformation = node.attributes.String(
        "coordinate_transformation_mode", node.opset < 16 ? "output_half_pixel" : "half_pixel");
    Require(transformation == "half_pixel" || transformation == "output_half_pixel",
            "unknown coordinate_transformation_mode '", transformation, "'");
    half_pixel = transformation == "half_pixel";
  }
  std::int64_t height, width, sampling_ratio;
  float scale;
  bool max = false, half_pixel = false;
};

void InferRoiAlign(const InferContext& context) {
  const TensorInfo &x = context.Input(0), &rois = context.Input(kRois);
  const TensorInfo& batch = context.Input(kBatchIndices);
  RequireType(x.dtype, FloatTypes());
  Require(rois.dtype == x.dtype && batch.dtype == DType::kInt64, "X is ", x.dtype, ", rois are ",
          rois.dtype, ", batch_indices ", batch.dtype);
  Require(x.shape.rank() == 4, "X has shape ", x.shape, " instead of [N, C, H, W]");
  Require(rois.shape.rank() == 2 && rois.shape[1] == 4 && batch.shape == Shape{rois.shape[0]},
          "rois ", rois.shape, " and batch_indices ", batch.shape,
          " instead of [regions, 4] and [regions]");
  const RoiRule rule(context.node);
  const Shape out{rois.shape[0], x.shape[1], rule.height, rule.width};
  Require(out.NumElements() == 0 || x.shape[2] * x.shape[3] > 0, "nothing to sample in ", x.shape);
  context.SetOutput(0, x.dtype, out);
}

template <typename T>
class RoiAlignKernel final : public Kernel {
 public:
  explicit RoiAlignKernel(const PrepareContext& context)
      : rule_(context.node),
        x_(context.inputs[0].shape),
        regions_(context.inputs[kRois].shape[0]) {}

  std::string_view name() const override { return "roi_align"; }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>(x_[1]) * sizeof(C);
  }
  void Run(const RunContext& context) const override {
    const T* x = context.inputs[0].data<const T>();
    const T* rois = context.inputs[kRois].data<const T>();
    const auto* batch = context.inputs[kBatchIndices].data<const std::int64_t>();
    T* out = context.outputs[0].data<T>();
    if (context.outputs[0].size() == 0) return;
    const std::int64_t bins = rule_.height * rule_.width, channels = x_[1];
    context.parallel.For(regions_ * rule_.height, [&](std::int64_t task, int thread) {
      const std::int64_t region = task / rule_.height, row = task % rule_.height;
      Require(batch[region] >= 0 && batch[region] < x_[0], "batch index ", batch[region],
              " of region ", region, " is outside of X ", x_);
      const Side vertical = MakeSide(rois + region * 4 + 1, rule_.height);
      const Side horizontal = MakeSide(rois + region * 4, rule_.width);
      C* sums = context.Scratch<C>(thread);
      for (std::int64_t column = 0; column < rule_.width; ++column) {
        SampleBin(x + batch[region] * channels * x_[2] * x_[3], vertical, row, horizontal, column,
                  sums);
        T* to = out + region * channels * bins + row * rule_.width + column;
        for (std::int64_t c = 0; c < channels; ++c) to[c * bins] = static_cast<T>(sums[c]);
      }
    });
  }

 private:
  using C = ComputeType<T>;

  // A region along one axis.
  struct Side {
    C begin, bin;          // place, and size of an output element
    std::int64_t samples;  // of one output element
  };

  // Begin and end are at roi[0] and roi[2].
  Side MakeSide(const T* roi, std::int64_t bins) const {
    const C shift = rule_.half_pixel ? C{0.5f} : C{0};
    const C begin = static_cast<C>(roi[0]) * static_cast<C>(rule_.scale) - shift;
    const C end = static_cast<C>(roi[2]) * static_cast<C>(rule_.scale) - shift;
    C size = end - begin;
    if (!rule_.half_pixel) size = std::max(size, C{1});  // malformed regions are one pixel
    Side side{begin, size / static_cast<C>(bins), rule_.sampling_ratio};
    if (side.samples == 0) {
      const C samples = std::ceil(side.bin);
      Require(samples <= C{kMostSamples}, "a region of ", static_cast<float>(size), " pixels");
      side.samples = static_cast<std::int64_t>(std::max(samples, C{0}));
    }
    return side;
  }

  // The two neighbours of a sample along an axis.
  struct Neighbours {
    std::int64_t low, high;
    C low_weight, high_weight;
    bool inside;
  };
  static Neighbours Locate(const Side& side, std::int64_t bin, std::int64_t sample,
                           std::int64_t size) {
    C at = side.begin + static_cast<C>(bin) * side.bin +
           (static_cast<C>(sample) + C{0.5f}) * side.bin / static_cast<C>(side.samples);
    if (!(at >= C{-1} && at <= static_cast<C>(size))) return {0, 0, 0, 0, false};
    at = std::max(at, C{0});
    const auto low = static_cast<std::int64_t>(at);
    if (low >= size - 1) return {size - 1, size - 1, 1, 0, true};
    const C ratio = at - static_cast<C>(low);
    return {low, low + 1, 1 - ratio, ratio, true};
  }

  // All channels of one output element.
  void SampleBin(const T* x, const Side& vertical, std::int64_t row, const Side& horizontal,
                 std::int64_t column, C* sums) const {
    const std::int64_t channels = x_[1], height = x_[2], width = x_[3];
    std::fill_n(sums, channels, C{0});
    bool first = true;
    for (std::int64_t i = 0; i < vertical.samples; ++i) {
      const Neighbours v = Locate(vertical, row, i, height);
      for (std::int64_t j = 0; j < horizontal.samples; ++j, first = false) {
        const Neighbours h = Locate(horizontal, column, j, width);
        const bool inside = v.inside && h.inside;
        if (!inside && !rule_.max) continue;
        const T* plane = x;
        for (std::int64_t c = 0; c < channels; ++c, plane += height * width) {
          const auto part = [&](std::int64_t y, C wy, std::int64_t xx, C wx) {
            return inside ? wy * wx * static_cast<C>(plane[y * width + xx]) : C{0};
          };
          const C a = part(v.low, v.low_weight, h.low, h.low_weight);
          const C b = part(v.low, v.low_weight, h.high, h.high_weight);
          const C d = part(v.high, v.high_weight, h.low, h.low_weight);
          const C e = part(v.high, v.high_weight, h.high, h.high_weight);
          if (rule_.max) {
            // Of the weighted neighbours themselves, as the published test data have it.
            const C highest = std::max(std::max(a, b), std::max(d, e));
            sums[c] = first ? highest : std::max(sums[c], highest);
          } else {
            sums[c] += a + b + d + e;
          }
        }
      }
    }
    if (rule_.max) return;
    const auto count =
        static_cast<C>(std::max<std::int64_t>(1, vertical.samples * horizontal.samples));
    for (std::int64_t c = 0; c < channels; ++c) sums[c] /= count;
  }

  RoiRule rule_;
  Shape x_;
  std::int64_t regions_;
};

std::unique_ptr<Kernel> PrepareRoiAlign(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<RoiAlignKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kRoiAlignOp;
const OpDef kRoiAlignOp = {
    .type = "RoiAlign",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = InferRoiAlign,
    .prepare = PrepareRoiAlign,
    .first_opset = 10,
};

}  // namespace tessera
