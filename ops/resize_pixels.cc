#include "ops/resize_pixels.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tessera {
namespace {

// One pixel of kBytes, or of a multiple of 16.
template <int kBytes>
void CopyPixel(const std::uint8_t* from, std::int64_t bytes, std::uint8_t* to) {
  if constexpr (kBytes > 0) {
    std::memcpy(to, from, kBytes);
  } else {
    for (std::int64_t i = 0; i < bytes; i += 16) std::memcpy(to + i, from + i, 16);
  }
}

class NearestPixels final : public Kernel {
 public:
  NearestPixels(const TapTable& rows, const TapTable& columns, const Shape& in, const Shape& out)
      : in_(in), out_(out), rows_(rows.NearestIndices()), columns_(columns.NearestIndices()) {}

  std::string_view name() const override { return "resize_nearest_pixels"; }
  void Run(const RunContext& context) const override {
    const std::int64_t rows_per_task =
        std::clamp<std::int64_t>(kGrain / std::max<std::int64_t>(1, out_.row_stride), 1,
                                 std::max<std::int64_t>(1, out_.height));
    const std::int64_t tasks = (out_.height + rows_per_task - 1) / rows_per_task;
    context.parallel.For(out_.images * tasks, [&](std::int64_t task, int) {
      const std::int64_t image = task / tasks, begin = task % tasks * rows_per_task;
      const std::int64_t end = std::min(out_.height, begin + rows_per_task);
      const auto* in = context.inputs[0].data<const std::uint8_t>() + image * in_.image_stride;
      auto* out = context.outputs[0].data<std::uint8_t>() + image * out_.image_stride;
      for (std::int64_t y = begin; y < end; ++y) {
        const std::int32_t source = rows_[static_cast<std::size_t>(y)];
        std::uint8_t* row = out + y * out_.row_stride;
        if (y > begin && source == rows_[static_cast<std::size_t>(y - 1)]) {
          std::memcpy(row, row - out_.row_stride, static_cast<std::size_t>(out_.row_stride));
        } else {
          RunRow(in + source * in_.row_stride, row);
        }
      }
    });
  }

 private:
  static constexpr std::int64_t kGrain = 65536;  // bytes that are worth a task

  void RunRow(const std::uint8_t* in, std::uint8_t* out) const {
    switch (out_.pixel_stride) {
      case 4:
        return RunRowOf<4>(in, out);
      case 16:
        return RunRowOf<16>(in, out);
      case 32:
        return RunRowOf<32>(in, out);
      case 64:
        return RunRowOf<64>(in, out);
      default:
        return RunRowOf<0>(in, out);
    }
  }

  template <int kBytes>
  void RunRowOf(const std::uint8_t* in, std::uint8_t* out) const {
    for (const std::int32_t x : columns_) {
      CopyPixel<kBytes>(in + x * in_.pixel_stride, in_.pixel_stride, out);
      out += out_.pixel_stride;
    }
  }

  ChannelsLastLayout in_, out_;
  std::vector<std::int32_t> rows_, columns_;
};

}  // namespace

std::unique_ptr<Kernel> MakeNearestPixels(const TapTable& rows, const TapTable& columns,
                                          const Shape& in, const Shape& out) {
  return std::make_unique<NearestPixels>(rows, columns, in, out);
}

}  // namespace tessera
