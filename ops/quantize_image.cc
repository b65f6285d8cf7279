#include "ops/quantize_image.h"

#include <algorithm>
#include <vector>

#include "ops/quantize.h"
#include "ops/quantize_pixels.h"

namespace tessera {
namespace {

class ImageQuantization final : public Kernel {
 public:
  ImageQuantization(const Shape& nchw, Layout float_layout, bool to_bytes,
                    std::span<const float> channel_scales)
      : pixels_(nchw),
        blocks_(nchw),
        blocked_(float_layout == Layout::kBlocked),
        to_bytes_(to_bytes),
        channel_scales_(channel_scales.begin(), channel_scales.end()) {
    constexpr std::size_t kLanes = 16;
    const std::size_t padded = (channel_scales.size() + kLanes - 1) / kLanes * kLanes;
    channel_scales_.resize(padded, 1.0f);
  }

  std::string_view name() const override {
    if (to_bytes_) return blocked_ ? "quantize_blocked_to_pixels" : "quantize_to_pixels";
    return blocked_ ? "dequantize_pixels_to_blocked" : "dequantize_pixels";
  }

  void Run(const RunContext& context) const override {
    if (pixels_.channels == 0) return;  // pixels take memory nevertheless
    const float* scales = channel_scales_.empty() ? nullptr : channel_scales_.data();
    const float scale = ScaleAt(context.inputs[1], 0);
    const std::int32_t zero_point = ZeroPointAt(InputOrAbsent(context, 2), 0);
    const TensorView& bytes = to_bytes_ ? context.outputs[0] : context.inputs[0];
    const TensorView& reals = to_bytes_ ? context.inputs[0] : context.outputs[0];
    // Some rows: those of row-major tensors and of pixels follow each other, those of blocks do
    // not.
    const std::int64_t rows =
        std::max<std::int64_t>(1, kPixelsPerTask / std::max<std::int64_t>(1, pixels_.width));
    const std::int64_t bands = (pixels_.height + rows - 1) / rows;
    context.parallel.For(pixels_.images * bands, [&](std::int64_t task, int) {
      const std::int64_t image = task / bands, begin = task % bands * rows;
      const std::int64_t end = std::min(pixels_.height, begin + rows);
      const std::int64_t step = blocked_ ? 1 : end - begin;
      for (std::int64_t y = begin; y < end; y += step) {
        const PixelRun p = {scale,
                            zero_point,
                            static_cast<std::size_t>(pixels_.channels),
                            static_cast<std::size_t>(pixels_.pixel_stride),
                            static_cast<std::size_t>(step * pixels_.width),
                            scales};
        RunRows(p,
                bytes.data<std::uint8_t>() + image * pixels_.image_stride + y * pixels_.row_stride,
                reals.data<float>() + Offset(image, y));
      }
    });
  }

 private:
  static constexpr std::int64_t kPixelsPerTask = 4096;

  // Of a row, in floats.
  std::int64_t Offset(std::int64_t image, std::int64_t y) const {
    if (blocked_) return image * blocks_.image_stride + y * blocks_.row_stride;
    return (image * pixels_.channels * pixels_.height + y) * pixels_.width;
  }

  void RunRows(const PixelRun& p, std::uint8_t* pixels, float* reals) const {
    const auto plane = static_cast<std::size_t>(pixels_.height * pixels_.width);
    const auto block = static_cast<std::size_t>(blocks_.plane_stride);
    if (to_bytes_) {
      blocked_ ? QuantizeBlocks(p, reals, block, pixels) : QuantizePlanes(p, reals, plane, pixels);
    } else {
      blocked_ ? DequantizeToBlocks(p, pixels, reals, block)
               : DequantizeToPlanes(p, pixels, reals, plane);
    }
  }

  ChannelsLastLayout pixels_;
  BlockedLayout blocks_;
  bool blocked_, to_bytes_;
  std::vector<float> channel_scales_;
};

}  // namespace

std::unique_ptr<Kernel> MakeImageQuantizer(const Shape& nchw, Layout float_layout,
                                           std::span<const float> channel_scales) {
  return std::make_unique<ImageQuantization>(nchw, float_layout, true, channel_scales);
}

std::unique_ptr<Kernel> MakeImageDequantizer(const Shape& nchw, Layout float_layout) {
  return std::make_unique<ImageQuantization>(nchw, float_layout, false, std::span<const float>());
}

}  // namespace tessera
