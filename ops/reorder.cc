#include "ops/reorder.h"

#include <algorithm>

#include "ops/reorder_bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reorder.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/reorder-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

void RowToBlocked(const float* planes, std::size_t plane_stride, std::size_t channels,
                  std::size_t count, float* pixels) {
  PlanesToPixels(hn::ScalableTag<float>(), planes, plane_stride, channels, count, pixels);
}

void RowFromBlocked(const float* pixels, std::size_t channels, std::size_t count, float* planes,
                    std::size_t plane_stride) {
  PixelsToPlanes(hn::ScalableTag<float>(), pixels, channels, count, planes, plane_stride);
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RowToBlocked);
HWY_EXPORT(RowFromBlocked);

class Reorder final : public Kernel {
 public:
  Reorder(const Shape& nchw, bool to_blocked) : blocked_(nchw), to_blocked_(to_blocked) {}

  std::string_view name() const override {
    return to_blocked_ ? "reorder_to_blocked" : "reorder_to_row_major";
  }

  void Run(const RunContext& context) const override {
    const float* in = context.inputs[0].data<float>();
    float* out = context.outputs[0].data<float>();
    const BlockedLayout& b = blocked_;
    // A task is some rows of one block, large enough to be worth a hand-over.
    constexpr std::int64_t kPixelsPerTask = 2048;
    const std::int64_t task_rows =
        std::max<std::int64_t>(1, kPixelsPerTask / std::max<std::int64_t>(1, b.width));
    const std::int64_t bands = (b.height + task_rows - 1) / task_rows;
    context.parallel.For(b.images * b.blocks * bands, [&](std::int64_t task, int) {
      const std::int64_t band = task % bands, block = task / bands % b.blocks;
      const std::int64_t image = task / (bands * b.blocks);
      const std::int64_t channels = std::min<std::int64_t>(b.lanes, b.channels - block * b.lanes);
      const std::int64_t plane = b.height * b.width;
      const std::int64_t planar = (image * b.channels + block * b.lanes) * plane;
      const std::int64_t blocked = image * b.image_stride + block * b.plane_stride;
      const std::int64_t end = std::min(b.height, (band + 1) * task_rows);
      for (std::int64_t y = band * task_rows; y < end; ++y) {
        const std::int64_t row = planar + y * b.width, blocked_row = blocked + y * b.row_stride;
        if (to_blocked_) {
          HWY_DYNAMIC_DISPATCH(RowToBlocked)
          (in + row, plane, channels, b.width, out + blocked_row);
        } else {
          HWY_DYNAMIC_DISPATCH(RowFromBlocked)
          (in + blocked_row, channels, b.width, out + row, plane);
        }
      }
    });
  }

 private:
  BlockedLayout blocked_;
  bool to_blocked_;
};

class ByteReorder final : public Kernel {
 public:
  ByteReorder(const Shape& nchw, bool to_pixels) : layout_(nchw), to_pixels_(to_pixels) {}

  std::string_view name() const override {
    return to_pixels_ ? "reorder_to_channels_last" : "reorder_from_channels_last";
  }

  void Run(const RunContext& context) const override {
    const auto* in = context.inputs[0].data<const std::uint8_t>();
    auto* out = context.outputs[0].data<std::uint8_t>();
    const std::int64_t plane = layout_.height * layout_.width;
    constexpr std::int64_t kPixelsPerTask = 2048;
    const std::int64_t bands = (plane + kPixelsPerTask - 1) / kPixelsPerTask;
    context.parallel.For(layout_.images * bands, [&](std::int64_t task, int) {
      const std::int64_t image = task / bands, first = task % bands * kPixelsPerTask;
      const std::int64_t count = std::min(kPixelsPerTask, plane - first);
      const std::int64_t planar = image * layout_.channels * plane + first;
      const std::int64_t pixel = image * layout_.image_stride + first * layout_.pixel_stride;
      if (to_pixels_) {
        BytePlanesToPixels(in + planar, plane, layout_.channels, count, out + pixel,
                           layout_.pixel_stride);
      } else {
        BytePixelsToPlanes(in + pixel, layout_.pixel_stride, layout_.channels, count, out + planar,
                           plane);
      }
    });
  }

 private:
  ChannelsLastLayout layout_;
  bool to_pixels_;
};

}  // namespace

std::unique_ptr<Kernel> MakeReorder(const Shape& nchw, Layout from, Layout to) {
  Require(nchw.rank() == 4 && from != to && (from == Layout::kRowMajor || to == Layout::kRowMajor),
          "no reordering of shape ", nchw);
  if (from == Layout::kChannelsLast || to == Layout::kChannelsLast) {
    return std::make_unique<ByteReorder>(nchw, to == Layout::kChannelsLast);
  }
  return std::make_unique<Reorder>(nchw, to == Layout::kBlocked);
}

}  // namespace tessera
#endif  // HWY_ONCE
