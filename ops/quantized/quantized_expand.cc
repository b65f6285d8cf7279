#include "ops/quantized/quantized_expand.h"

#include <algorithm>
#include <utility>

#include "simd/cpu_target.h"

namespace tessera {
namespace {

// Rows of a tile: pixels, or groups of four weights.
constexpr std::int64_t kAmxRows = 16;

AlignedBuffer PackWeights(const ConvParams& p, const Tensor& weights, std::int64_t rows,
                          const std::vector<QuantizedDepthwiseBlock>& blocks) {
  const std::int64_t lanes = FloatLanes();
  AlignedBuffer packed(blocks.size() * static_cast<std::size_t>(rows * lanes * 4));
  auto* to = packed.As<std::int8_t>();
  const auto* w = weights.data<const std::int8_t>();
  for (const QuantizedDepthwiseBlock& block : blocks) {
    for (std::int64_t i = 0; i < rows * lanes * 4; ++i) {
      const std::int64_t m = block.channel + i / 4 % lanes, c = i / (4 * lanes) * 4 + i % 4;
      *to++ = m < p.out_channels && c < p.in_channels ? w[m * p.in_channels + c] : std::int8_t{0};
    }
  }
  return packed;
}

AlignedBuffer PackOperands(const QuantizedEpilogue& epilogue,
                           const std::vector<QuantizedDepthwiseBlock>& blocks) {
  const std::int64_t lanes = FloatLanes();
  AlignedBuffer packed(blocks.size() * 3 * static_cast<std::size_t>(lanes) * sizeof(float));
  auto* bias = packed.As<std::int32_t>();
  for (const QuantizedDepthwiseBlock& block : blocks) {
    auto* reals = reinterpret_cast<float*>(bias);
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t c = block.channel + lane;
      bias[lane] = epilogue.Bias()[c];
      reals[lanes + lane] = epilogue.Positive()[c];
      reals[2 * lanes + lane] = epilogue.Negative()[c];
    }
    bias += 3 * lanes;
  }
  return packed;
}

}  // namespace

std::int64_t QuantizedExpandPlan::Quads() const {
  const QuantizedDepthwisePlan& d = depthwise;
  const std::int64_t tiles = (d.output.width + kDepthwiseTile - 1) / kDepthwiseTile;
  return tiles * kDepthwiseTile / d.col_phases + d.cols - 1;
}

std::int64_t QuantizedExpandPlan::SlotQuads() const {
  const std::int64_t pixels = (input.width + kAmxRows - 1) / kAmxRows * kAmxRows;
  return std::max(Quads(), (pixels + depthwise.params.pad_left) / 2 + 1);
}

// Rows of quads of all blocks, and sums of the first convolution.
std::size_t QuantizedExpandPlan::ScratchBytes() const {
  const QuantizedDepthwisePlan& d = depthwise;
  const std::int64_t vectors = static_cast<std::int64_t>(d.blocks.size()) * d.rows * SlotQuads();
  return kAlignment +
         static_cast<std::size_t>(vectors * FloatLanes() + 2 * kTilesKept * kTileSums) *
             sizeof(std::int32_t);
}

bool IsQuantizedExpand(const QuantizedConvParams& pointwise, const QuantizedConvParams& depthwise) {
  const ConvParams &p = pointwise.conv, &d = depthwise.conv;
  return FloatLanes() > 1 && p.groups == 1 &&
         p.kernel_h * p.kernel_w * p.stride_h * p.stride_w == 1 && p.out_height == p.in_height &&
         p.out_width == p.in_width && p.pad_top == 0 && p.pad_left == 0 && !pointwise.to_float &&
         !pointwise.has_addend && !depthwise.to_float && IsQuantizedDepthwise(depthwise) &&
         HasQuadGrid(d);
}

QuantizedExpandPlan MakeQuantizedExpandPlan(const QuantizedConvParams& pointwise,
                                            const QuantizedConvConstants& pointwise_constants,
                                            const QuantizedConvParams& depthwise,
                                            const QuantizedConvConstants& depthwise_constants,
                                            PackCache& packs) {
  const ConvParams& p = pointwise.conv;
  const std::int64_t depth = (p.in_channels + 3) / 4;
  QuantizedExpandPlan plan{
      .input = ChannelsLastLayout({p.batch, p.in_channels, p.in_height, p.in_width}),
      .epilogue = QuantizedEpilogue(pointwise, pointwise_constants,
                                    ChannelsLastLayout::PixelStride(p.out_channels)),
      .depth = depth,
      .weight_rows = (depth + kAmxRows - 1) / kAmxRows * kAmxRows,
      .weights = nullptr,
      .operands = {},
      .depthwise = MakeQuantizedDepthwisePlan(depthwise, depthwise_constants, packs,
                                              DepthwiseBlocks::kOnePlane)};
  const std::vector<QuantizedDepthwiseBlock>& blocks = plan.depthwise.blocks;
  plan.weights = packs.Get<AlignedBuffer>(
      pointwise_constants.weights, StrCat("quantized expand ", FloatLanes()),
      [&] { return PackWeights(p, *pointwise_constants.weights, plan.weight_rows, blocks); });
  plan.epilogue.OffsetSums();
  plan.operands = PackOperands(plan.epilogue, blocks);
  return plan;
}

}  // namespace tessera
