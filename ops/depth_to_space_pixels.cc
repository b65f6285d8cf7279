// DepthToSpace of bytes, channels-last: each pixel of the input is cut into block x block pixels of
// the output.
#include <vector>

#include "ops/depth_to_space.h"

namespace tessera {
namespace {

class PixelDepthToSpace final : public Kernel {
 public:
  PixelDepthToSpace(const OpNode& node, const Shape& in, const Shape& out)
      : in_(in), out_(out), block_(DepthToSpaceBlock(node)) {
    const ChannelOrder order(node, out_.channels);
    for (std::int64_t y = 0; y < block_; ++y) {
      for (std::int64_t x = 0; x < block_; ++x) {
        for (std::int64_t c = 0; c < out_.channels; ++c) {
          sources_.push_back(static_cast<std::int32_t>(order.Source(c, y, x)));
        }
      }
    }
  }

  std::string_view name() const override { return "depth_to_space_pixels"; }

  void Run(const RunContext& context) const override {
    const auto* in = context.inputs[0].data<const std::uint8_t>();
    auto* out = context.outputs[0].data<std::uint8_t>();
    context.parallel.For(in_.images * in_.height, [&](std::int64_t row, int) {
      const std::int64_t image = row / in_.height, y = row % in_.height;
      const std::uint8_t* from = in + image * in_.image_stride + y * in_.row_stride;
      std::uint8_t* to = out + image * out_.image_stride + y * block_ * out_.row_stride;
      for (std::int64_t dy = 0; dy < block_; ++dy, to += out_.row_stride) {
        RunRow(from, sources_.data() + dy * block_ * out_.channels, to);
      }
    });
  }

 private:
  void RunRow(const std::uint8_t* in, const std::int32_t* sources, std::uint8_t* out) const {
    for (std::int64_t x = 0; x < in_.width; ++x, in += in_.pixel_stride) {
      const std::int32_t* source = sources;
      for (std::int64_t dx = 0; dx < block_; ++dx, out += out_.pixel_stride) {
        for (std::int64_t c = 0; c < out_.channels; ++c) out[c] = in[*source++];
      }
    }
  }

  ChannelsLastLayout in_, out_;
  std::int64_t block_;
  std::vector<std::int32_t> sources_;  // [y of the block][x][output channel]: input channel
};

}  // namespace

std::unique_ptr<Kernel> MakePixelDepthToSpace(const OpNode& node, const Shape& in,
                                              const Shape& out) {
  return std::make_unique<PixelDepthToSpace>(node, in, out);
}

}  // namespace tessera
