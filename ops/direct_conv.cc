// Direct (implicit GEMM) convolution: set-up and dispatch.
#include "ops/direct_conv.h"

#include <algorithm>
#include <string>

#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/direct_conv.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/direct_conv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

void RunDirectTaskOfTarget(const DirectPlan& plan, const RunContext& run, std::int64_t task,
                           int thread) {
  DirectTask(plan, run, task, thread).Run();
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunDirectTaskOfTarget);

// Micro-tiles of two vectors need the fewest loads; an odd block makes one of three.
std::vector<DirectGroup> MakeGroups(const ConvParams& p, std::int64_t lanes,
                                    std::int64_t in_lanes) {
  const std::int64_t group_channels = p.in_channels / p.groups;
  const std::int64_t blocks = (p.out_channels / p.groups + lanes - 1) / lanes;
  std::vector<DirectGroup> groups;
  std::int64_t weights = 0;
  for (std::int64_t g = 0; g < p.groups; ++g) {
    for (std::int64_t b = 0; b < blocks;) {
      const std::int64_t left = blocks - b;
      const int vectors = left == 3 ? 3 : left == 1 ? 1 : 2;
      // Channels of several convolution groups fill whole blocks.
      const std::int64_t in_last = p.out_channels - (b + vectors - 1) * lanes;
      groups.push_back({.vectors = vectors,
                        .half = p.groups == 1 && vectors > 1 && in_last * 2 <= lanes,
                        .first_block = g * blocks + b,
                        .first_input_block = g * group_channels / in_lanes,
                        .weights = weights});
      weights += p.kernel_h * p.kernel_w * group_channels * vectors * lanes;
      b += vectors;
    }
  }
  return groups;
}

AlignedBuffer PackWeights(const ConvParams& p, const std::vector<DirectGroup>& groups,
                          std::int64_t lanes, const float* w) {
  const std::int64_t group_channels = p.in_channels / p.groups;
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  const DirectGroup& last = groups.back();
  const std::int64_t floats = last.weights + taps * group_channels * last.vectors * lanes;
  AlignedBuffer packed(static_cast<std::size_t>(floats) * sizeof(float));
  float* out = packed.As<float>();
  for (const DirectGroup& g : groups) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      for (std::int64_t c = 0; c < group_channels; ++c) {
        for (std::int64_t i = 0; i < g.vectors * lanes; ++i) {
          const std::int64_t m = g.first_block * lanes + i;
          *out++ = m < p.out_channels ? w[(m * group_channels + c) * taps + tap] : 0;
        }
      }
    }
  }
  return packed;
}

// A pointwise convolution of blocked tensors is one row of pixels. What lies between the rows of
// the tensors is computed too: it holds anything.
ConvParams WithoutRows(ConvParams p, const BlockedLayout& in) {
  const bool pointwise = p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 && p.stride_w == 1 &&
                         p.out_height == p.in_height && p.out_width == p.in_width;
  if (!pointwise || !IsAsOneRow(in)) return p;
  const std::int64_t row = in.row_stride / in.lanes;
  p.in_width = p.out_width = (p.in_height - 1) * row + p.in_width;
  p.in_height = p.out_height = 1;
  return p;
}

class DirectConv final : public Kernel {
 public:
  DirectConv(const ConvParams& p, DirectPlan plan) : plan_(std::move(plan)), flops_(p.Flops()) {
    name_ = StrCat("conv", p.kernel_h, "x", p.kernel_w, "_direct");
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return flops_; }
  std::size_t ScratchBytesPerThread() const override { return plan_.ScratchBytes(); }
  // Sums pass through scratch memory if there is an addend.
  bool CanOverwriteInput(std::size_t i) const override { return i == kConvAddend; }

  void Run(const RunContext& run) const override {
    const std::int64_t tasks = plan_.params.batch * plan_.tiling.NumTiles() * plan_.splits;
    run.parallel.For(
        tasks, [&](std::int64_t task, int thread) { RunDirectTask(plan_, run, task, thread); });
  }

 private:
  DirectPlan plan_;
  double flops_;
  std::string name_;
};

}  // namespace

bool IsAsOneRow(const BlockedLayout& tensor) {
  const std::int64_t gap = tensor.row_stride / tensor.lanes - tensor.width;
  return tensor.height > 0 && gap * 16 <= tensor.width;
}

void RunDirectTask(const DirectPlan& plan, const RunContext& run, std::int64_t task, int thread) {
  HWY_DYNAMIC_DISPATCH(RunDirectTaskOfTarget)(plan, run, task, thread);
}

DirectPlan MakeDirectPlan(const ConvParams& params, const ConvConstants& constants,
                          Layout input_layout, Layout output_layout, PackCache& packs,
                          std::int64_t given_rows) {
  const std::int64_t lanes = FloatLanes();
  const BlockedLayout input({params.batch, params.in_channels, params.in_height, params.in_width});
  const BlockedLayout output(
      {params.batch, params.out_channels, params.out_height, params.out_width});
  const bool input_blocked = input_layout == Layout::kBlocked;
  const bool output_blocked = output_layout == Layout::kBlocked;
  const ConvParams p = input_blocked && output_blocked ? WithoutRows(params, input) : params;
  Require(p.groups == 1 ||
              (p.in_channels / p.groups % lanes == 0 && p.out_channels / p.groups % lanes == 0),
          "no direct convolution of ", p.in_channels, " channels in ", p.groups, " groups");
  // Wide enough for full micro-tiles of every shape.
  constexpr std::int64_t kColMultiple = 42;
  // Below this number of tasks, output groups become tasks of their own.
  constexpr std::int64_t kWantedTasks = 8;

  const std::int64_t in_lanes = input_blocked ? lanes : 1;
  DirectPlan plan{.params = p,
                  .input_blocked = input_blocked,
                  .output_blocked = output_blocked,
                  .in_place = given_rows == 0 && input_blocked && p.stride_w == 1 &&
                              p.pad_left == 0 && p.pad_right == 0,
                  .input_given = given_rows != 0,
                  .in_lanes = in_lanes,
                  .group_channels = p.in_channels / p.groups,
                  .input = input,
                  .output = output,
                  .tiling = {},
                  .splits = 1,
                  .groups = MakeGroups(params, lanes, in_lanes),
                  .row_stride = 0,
                  .block_stride = 0,
                  .taps = {},
                  .weights = nullptr,
                  .operands = PackEpilogue(params.epilogue, constants.bias.get(),
                                           constants.slope.get(), params.out_channels,
                                           (params.out_channels + lanes - 1) / lanes * lanes),
                  .input_floats = 0,
                  .sums_floats = 0,
                  .planes_floats = 0};
  const std::int64_t group_blocks = (plan.group_channels + in_lanes - 1) / in_lanes;
  plan.tiling = ChooseTiling(p, InputCopy::kTile, group_blocks * in_lanes, kColMultiple, p.batch);
  if (given_rows != 0) {
    const std::int64_t cols = given_rows * (input.row_stride / lanes);
    plan.tiling = {.rows = 1,
                   .cols = cols,
                   .row_tiles = 1,
                   .col_tiles = (p.out_width + cols - 1) / cols,
                   .in_rows = 1,
                   .phase_cols = cols};
  }
  const std::int64_t tiles = std::max<std::int64_t>(1, p.batch * plan.tiling.NumTiles());
  const auto num_groups = static_cast<std::int64_t>(plan.groups.size());
  plan.splits = given_rows != 0 ? 1 : std::clamp<std::int64_t>(kWantedTasks / tiles, 1, num_groups);

  const std::int64_t phase_cols = plan.tiling.phase_cols;
  if (plan.in_place) {
    plan.row_stride = plan.input.row_stride;
    plan.block_stride = plan.input.plane_stride;
  } else {
    plan.row_stride = phase_cols * p.stride_w * in_lanes;
    plan.block_stride = plan.row_stride * plan.tiling.in_rows;
    const std::int64_t blocks = (p.in_channels + in_lanes - 1) / in_lanes;
    plan.input_floats =
        RoundUp(static_cast<std::size_t>(plan.block_stride * blocks), kAlignment / sizeof(float));
  }
  plan.taps = TapOffsets(p, phase_cols, in_lanes, plan.row_stride);
  std::int64_t vectors = 0;
  for (const DirectGroup& g : plan.groups) vectors = std::max<std::int64_t>(vectors, g.vectors);
  plan.sums_floats = static_cast<std::size_t>(vectors * plan.tiling.cols * lanes);
  plan.planes_floats = static_cast<std::size_t>(plan.tiling.cols * lanes);

  const std::string kind = StrCat("direct_conv ", lanes, " lanes, ", p.groups, " groups");
  plan.weights = packs.Get<AlignedBuffer>(constants.weights, kind, [&] {
    return PackWeights(params, plan.groups, lanes, constants.weights->data<float>());
  });
  return plan;
}

std::unique_ptr<Kernel> MakeDirectConv(const ConvParams& params, const ConvConstants& constants,
                                       Layout input_layout, Layout output_layout,
                                       PackCache& packs) {
  return std::make_unique<DirectConv>(
      params, MakeDirectPlan(params, constants, input_layout, output_layout, packs));
}

}  // namespace tessera
#endif  // HWY_ONCE
