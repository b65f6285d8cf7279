// Planar convolution: set-up and dispatch.
#include "ops/planar_conv.h"

#include <algorithm>
#include <string>

#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/planar_conv.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/planar_conv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

void RunPlanarTask(const PlanarPlan& plan, const RunContext& run, std::int64_t task, int thread) {
  PlanarTask(plan, run, task, thread).Run();
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunPlanarTask);

AlignedBuffer PackPlanarWeights(const ConvParams& p, const float* w) {
  const std::int64_t in_group = p.in_channels / p.groups, out_group = p.out_channels / p.groups;
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  AlignedBuffer packed(static_cast<std::size_t>(p.out_channels * in_group * taps) * sizeof(float));
  float* out = packed.As<float>();
  for (std::int64_t g = 0; g < p.groups; ++g) {
    for (std::int64_t first = 0; first < out_group; first += kPlanarChannels) {
      const std::int64_t last = std::min<std::int64_t>(out_group, first + kPlanarChannels);
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        for (std::int64_t c = 0; c < in_group; ++c) {
          for (std::int64_t m = g * out_group + first; m < g * out_group + last; ++m) {
            *out++ = w[(m * in_group + c) * taps + tap];
          }
        }
      }
    }
  }
  return packed;
}

// See PlanarPlan::taps.
std::vector<std::ptrdiff_t> RollingTaps(const ConvParams& p, const ConvTiling& tiling,
                                        std::int64_t row_stride) {
  const std::vector<std::ptrdiff_t> columns = TapOffsets(p, tiling.phase_cols, 1, 0);
  std::vector<std::ptrdiff_t> taps;
  for (std::int64_t top = 0; top < tiling.in_rows; ++top) {
    for (std::size_t tap = 0; tap < columns.size(); ++tap) {
      const std::int64_t kh = static_cast<std::int64_t>(tap) / p.kernel_w;
      taps.push_back(columns[tap] + (top + kh * p.dilation_h) % tiling.in_rows * row_stride);
    }
  }
  return taps;
}

class PlanarConv final : public Kernel {
 public:
  explicit PlanarConv(PlanarPlan plan) : plan_(std::move(plan)) {
    const ConvParams& p = plan_.params;
    name_ = StrCat("conv", p.kernel_h, "x", p.kernel_w, "_planar");
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return plan_.params.Flops(); }
  std::size_t ScratchBytesPerThread() const override {
    return (plan_.input_floats + plan_.sums_floats) * sizeof(float);
  }
  bool CanOverwriteInput(std::size_t i) const override { return i == kConvAddend; }

  void Run(const RunContext& run) const override {
    const std::int64_t tasks = plan_.params.batch * plan_.params.groups * plan_.tiling.NumTiles();
    run.parallel.For(tasks, [&](std::int64_t task, int thread) {
      HWY_DYNAMIC_DISPATCH(RunPlanarTask)(plan_, run, task, thread);
    });
  }

 private:
  PlanarPlan plan_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Kernel> MakePlanarConv(const ConvParams& params, const ConvConstants& constants,
                                       PackCache& packs) {
  const std::int64_t lanes = FloatLanes();
  const ConvParams& p = params;
  PlanarPlan plan{.params = params,
                  .in_group = p.in_channels / p.groups,
                  .out_group = p.out_channels / p.groups,
                  .tiling = {},
                  .row_stride = 0,
                  .plane_stride = 0,
                  .sums_stride = 0,
                  .taps = {},
                  .weights = packs.Get<AlignedBuffer>(
                      constants.weights, StrCat("planar_conv ", p.groups, " groups"),
                      [&] { return PackPlanarWeights(p, constants.weights->data<float>()); }),
                  .operands = PackEpilogue(p.epilogue, constants.bias.get(), constants.slope.get(),
                                           p.out_channels, p.out_channels),
                  .input_floats = 0,
                  .sums_floats = 0};
  plan.tiling = ChooseTiling(p, InputCopy::kRolling, plan.in_group, 6 * lanes, p.batch * p.groups);
  // The last vector of a row may read and write past the tile's last column.
  plan.sums_stride = (plan.tiling.cols + lanes - 1) / lanes * lanes;
  plan.tiling.phase_cols += plan.sums_stride - plan.tiling.cols;
  plan.row_stride = plan.tiling.phase_cols * p.stride_w;
  plan.plane_stride = plan.row_stride * plan.tiling.in_rows;
  plan.taps = RollingTaps(p, plan.tiling, plan.row_stride);
  const std::int64_t channels = std::min<std::int64_t>(kPlanarChannels, plan.out_group);
  const auto aligned = [](std::int64_t floats) {
    return RoundUp(static_cast<std::size_t>(floats), kAlignment / sizeof(float));
  };
  plan.input_floats = aligned(plan.plane_stride * plan.in_group);
  plan.sums_floats = aligned(channels * plan.sums_stride);
  return std::make_unique<PlanarConv>(std::move(plan));
}

}  // namespace tessera
#endif  // HWY_ONCE
