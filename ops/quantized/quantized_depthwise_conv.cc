// The plan of a quantised depthwise convolution, and its kernel.
#include <algorithm>
#include <string>
#include <utility>

#include "ops/quantized/quantized_depthwise.h"
#include "simd/cpu_target.h"

namespace tessera {
namespace {

// Bytes of a vector of int32; a "vector" of targets that have none is as long as a block.
std::int64_t VectorBytes() { return 4 * std::int64_t{FloatLanes()}; }

// Quads that a window of `kernel` pixels lies in, whatever its phase.
std::int64_t QuadsOf(std::int64_t kernel, std::int64_t stride) { return (kernel + 3 - stride) / 2; }

std::vector<QuantizedDepthwiseBlock> CutChannels(std::int64_t channels, std::int64_t planes) {
  std::vector<QuantizedDepthwiseBlock> blocks;
  const std::int64_t padded = ChannelsLastLayout::PixelStride(channels);
  std::int64_t size = planes == 1 ? FloatLanes() : std::max<std::int64_t>(16, VectorBytes());
  for (std::int64_t c = 0; c < padded; c += size) {
    while (size > padded - c) size /= 2;
    blocks.push_back({c, size});
  }
  return blocks;
}

std::int64_t ChannelOfLane(const QuantizedDepthwisePlan& plan, const QuantizedDepthwiseBlock& block,
                           std::int64_t plane, std::int64_t lane) {
  if (plan.planes == 1) return block.channel + lane;
  return block.channel + QuadOrder(FloatLanes(), plane, lane) % block.channels;
}

// The weights in the order that QuantizedDepthwisePlan has them in.
AlignedBuffer PackWeights(const QuantizedDepthwisePlan& plan) {
  const ConvParams& p = plan.params;
  const std::int64_t lanes = FloatLanes(), blocks = static_cast<std::int64_t>(plan.blocks.size());
  AlignedBuffer packed(
      static_cast<std::size_t>(blocks * plan.row_phases * plan.PhaseWeightBytes()));
  const auto* weights = plan.weights->data<const std::int8_t>();
  auto* to = packed.As<std::int8_t>();
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  for (const QuantizedDepthwiseBlock& block : plan.blocks) {
    for (std::int64_t row_phase = 0; row_phase < plan.row_phases; ++row_phase) {
      for (std::int64_t i = 0; i < plan.planes * plan.rows * plan.col_phases * plan.cols; ++i) {
        const std::int64_t col = i % plan.cols, col_phase = i / plan.cols % plan.col_phases;
        const std::int64_t row = i / (plan.cols * plan.col_phases) % plan.rows;
        const std::int64_t plane = i / (plan.cols * plan.col_phases * plan.rows);
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          const std::int64_t c = ChannelOfLane(plan, block, plane, lane);
          for (std::int64_t k = 0; k < 4; ++k) {
            std::int64_t tap = 4 * row + k;
            bool inside = tap < taps;
            if (plan.grid) {
              const std::int64_t ky = 2 * row + k / 2 - row_phase, kx = 2 * col + k % 2 - col_phase;
              inside = ky >= 0 && ky < p.kernel_h && kx >= 0 && kx < p.kernel_w;
              tap = ky * p.kernel_w + kx;
            }
            *to++ = inside && c < p.out_channels ? weights[c * taps + tap] : std::int8_t{0};
          }
        }
      }
    }
  }
  return packed;
}

AlignedBuffer PackOperands(const QuantizedDepthwisePlan& plan) {
  const std::int64_t lanes = FloatLanes(), count = plan.planes * lanes;
  AlignedBuffer packed(plan.blocks.size() * 3 * static_cast<std::size_t>(count) * sizeof(float));
  auto* bias = packed.As<std::int32_t>();
  for (const QuantizedDepthwiseBlock& block : plan.blocks) {
    auto* reals = reinterpret_cast<float*>(bias);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t c = ChannelOfLane(plan, block, i / lanes, i % lanes);
      bias[i] = plan.epilogue.Bias()[c];
      reals[i + count] = plan.epilogue.Positive()[c];
      reals[i + 2 * count] = plan.epilogue.Negative()[c];
    }
    bias += 3 * count;
  }
  return packed;
}

class QuantizedDepthwiseConv final : public Kernel {
 public:
  explicit QuantizedDepthwiseConv(QuantizedDepthwisePlan plan) : plan_(std::move(plan)) {
    const ConvParams& p = plan_.params;
    name_ = StrCat("quantized_conv", p.kernel_h, "x", p.kernel_w, "_depthwise");
    // Bands that are worth a hand-over, several for each thread.
    constexpr std::int64_t kWantedBands = 8, kPixels = 128;
    band_rows_ = std::max<std::int64_t>((p.out_height + kWantedBands - 1) / kWantedBands,
                                        kPixels / std::max<std::int64_t>(1, p.out_width));
    band_rows_ += band_rows_ % 2;  // whole quads of rows
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return plan_.params.Flops(); }
  std::size_t ScratchBytesPerThread() const override { return plan_.ScratchBytes(); }
  bool CanOverwriteInput(std::size_t i) const override {
    return i == kQuantizedAddend && plan_.epilogue.has_addend && !plan_.epilogue.to_float;
  }

  void Run(const RunContext& run) const override {
    const ChannelsLastLayout &in = plan_.input, &out = plan_.output;
    const std::int64_t bands = (out.height + band_rows_ - 1) / band_rows_;
    const bool to_float = plan_.epilogue.to_float;
    run.parallel.For(out.images * bands, [&](std::int64_t task, int thread) {
      const std::int64_t image = task / bands, y = task % bands * band_rows_;
      const std::int64_t at = image * out.image_stride + y * out.row_stride;
      RunQuantizedDepthwiseBand(
          plan_, {.rows = {y, std::min(out.height, y + band_rows_)},
                  .in = run.inputs[0].data<const std::uint8_t>() + image * in.image_stride,
                  .out = to_float ? nullptr : run.outputs[0].data<std::uint8_t>() + at,
                  .addend = plan_.epilogue.has_addend
                                ? run.inputs[kQuantizedAddend].data<const std::uint8_t>() + at
                                : nullptr,
                  .real_out = to_float ? run.outputs[0].data<float>() +
                                             image * plan_.real_output.image_stride
                                       : nullptr,
                  .scratch = run.Scratch<std::byte>(thread)});
    });
  }

 private:
  QuantizedDepthwisePlan plan_;
  std::int64_t band_rows_;
  std::string name_;
};

}  // namespace

std::int64_t QuantizedDepthwisePlan::PhaseWeightBytes() const {
  return planes * rows * col_phases * cols * VectorBytes();
}

std::size_t QuantizedDepthwisePlan::ScratchBytes() const {
  const std::int64_t vectors = strip_tiles * kDepthwiseTile * 4 + rows * 4 * kDepthwisePlaneVectors;
  return kAlignment + static_cast<std::size_t>(vectors * VectorBytes());
}

bool HasQuadGrid(const ConvParams& p) {
  const auto fits = [](std::int64_t stride, std::int64_t dilation, std::int64_t kernel) {
    return stride <= 2 && (dilation == 1 || kernel == 1);
  };
  return fits(p.stride_h, p.dilation_h, p.kernel_h) && fits(p.stride_w, p.dilation_w, p.kernel_w);
}

bool IsQuantizedDepthwise(const QuantizedConvParams& params) {
  const ConvParams& p = params.conv;
  constexpr std::int64_t kMaxKernel = 32;
  return p.groups == p.in_channels && p.groups == p.out_channels && p.groups > 4 &&
         p.kernel_h <= kMaxKernel && p.kernel_w <= kMaxKernel;
}

QuantizedDepthwisePlan MakeQuantizedDepthwisePlan(const QuantizedConvParams& params,
                                                  const QuantizedConvConstants& constants,
                                                  PackCache& packs, DepthwiseBlocks blocks) {
  const ConvParams& p = params.conv;
  const std::int64_t planes = blocks == DepthwiseBlocks::kOnePlane ? 1 : 4;
  const bool grid = HasQuadGrid(p);
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  QuantizedDepthwisePlan plan{
      .params = p,
      .x_zero_point = params.x.zero_point,
      .input = ChannelsLastLayout({p.batch, p.in_channels, p.in_height, p.in_width}),
      .output = ChannelsLastLayout({p.batch, p.out_channels, p.out_height, p.out_width}),
      .real_output = BlockedLayout({p.batch, p.out_channels, p.out_height, p.out_width}),
      .epilogue =
          QuantizedEpilogue(params, constants, ChannelsLastLayout::PixelStride(p.out_channels)),
      .weights = constants.weights,
      .grid = grid,
      .rows = grid ? QuadsOf(p.kernel_h, p.stride_h) : (taps + 3) / 4,
      .cols = grid ? QuadsOf(p.kernel_w, p.stride_w) : 1,
      .row_phases = grid && p.stride_h == 1 ? 2 : 1,
      .col_phases = grid && p.stride_w == 1 ? 2 : 1,
      .strip_tiles = 0,
      .planes = planes,
      .blocks = CutChannels(p.out_channels, planes),
      .packed_weights = nullptr,
      .operands = {}};
  // A plane holds the quads of all tiles and those that the last windows reach into.
  plan.strip_tiles = (kDepthwisePlaneVectors - plan.cols) * plan.col_phases / kDepthwiseTile;
  const std::int64_t wanted = 8;
  plan.strip_tiles = std::clamp<std::int64_t>(plan.strip_tiles, 1, wanted);
  if (FloatLanes() == 1) return plan;  // computed from the weights as they are
  plan.packed_weights =
      packs.Get<AlignedBuffer>(constants.weights,
                               StrCat("quantized depthwise ", FloatLanes(), ' ', planes, ' ', grid,
                                      ' ', p.stride_h, ' ', p.stride_w),
                               [&] { return PackWeights(plan); });
  plan.epilogue.OffsetSums();
  plan.operands = PackOperands(plan);
  return plan;
}

std::unique_ptr<Kernel> MakeQuantizedDepthwiseConv(const QuantizedConvParams& params,
                                                   const QuantizedConvConstants& constants,
                                                   PackCache& packs) {
  return std::make_unique<QuantizedDepthwiseConv>(
      MakeQuantizedDepthwisePlan(params, constants, packs));
}

}  // namespace tessera
