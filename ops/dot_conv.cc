// Dot-product convolution: set-up and dispatch.
#include "ops/dot_conv.h"

#include <algorithm>
#include <string>

#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/dot_conv.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/dot_conv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

void RunDotTask(const DotPlan& plan, const RunContext& run, std::int64_t task, int thread) {
  DotTask(plan, run, task, thread).Run();
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunDotTask);

// As even as possible.
std::vector<DotGroup> MakeDotGroups(const ConvParams& p, const BlockedLayout& in) {
  const std::int64_t count = (p.out_channels + kDotChannels - 1) / kDotChannels;
  std::vector<DotGroup> groups;
  for (std::int64_t g = 0; g < count; ++g) {
    const std::int64_t first = g * p.out_channels / count;
    const std::int64_t last = (g + 1) * p.out_channels / count;
    const std::int64_t weights = first * p.kernel_h * p.kernel_w * in.blocks * in.lanes;
    groups.push_back({static_cast<int>(last - first), first, weights});
  }
  return groups;
}

AlignedBuffer PackDotWeights(const ConvParams& p, const BlockedLayout& in,
                             const std::vector<DotGroup>& groups, const float* w) {
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  AlignedBuffer packed(static_cast<std::size_t>(p.out_channels * taps * in.blocks * in.lanes) *
                       sizeof(float));
  float* out = packed.As<float>();
  for (const DotGroup& g : groups) {
    for (std::int64_t block = 0; block < in.blocks; ++block) {
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        for (std::int64_t m = g.first; m < g.first + g.channels; ++m) {
          for (std::int64_t c = block * in.lanes; c < (block + 1) * in.lanes; ++c) {
            *out++ = c < p.in_channels ? w[(m * p.in_channels + c) * taps + tap] : 0;
          }
        }
      }
    }
  }
  return packed;
}

class DotConv final : public Kernel {
 public:
  explicit DotConv(DotPlan plan) : plan_(std::move(plan)) {
    name_ = StrCat("conv", plan_.params.kernel_h, "x", plan_.params.kernel_w, "_dot");
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return plan_.params.Flops(); }
  std::size_t ScratchBytesPerThread() const override {
    return kDotChannels * plan_.sums_stride * sizeof(float);
  }
  bool CanOverwriteInput(std::size_t i) const override { return i == kConvAddend; }

  void Run(const RunContext& run) const override {
    run.parallel.For(plan_.params.batch * plan_.tiling.NumTiles(),
                     [&](std::int64_t task, int thread) {
                       HWY_DYNAMIC_DISPATCH(RunDotTask)(plan_, run, task, thread);
                     });
  }

 private:
  DotPlan plan_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Kernel> MakeDotConv(const ConvParams& params, const ConvConstants& constants,
                                    PackCache& packs) {
  const ConvParams& p = params;
  Require(p.groups == 1, "no dot-product convolution in groups");
  constexpr std::int64_t kColMultiple = 64;
  const BlockedLayout input({p.batch, p.in_channels, p.in_height, p.in_width});
  DotPlan plan{.params = p,
               .input = input,
               .tiling = ChooseTiling(p, InputCopy::kRolling, input.blocks * input.lanes,
                                      kColMultiple, p.batch),
               .groups = MakeDotGroups(p, input),
               .weights = nullptr,
               .operands = PackEpilogue(p.epilogue, constants.bias.get(), constants.slope.get(),
                                        p.out_channels, p.out_channels),
               .sums_stride = 0};
  plan.sums_stride =
      RoundUp(static_cast<std::size_t>(plan.tiling.cols), kAlignment / sizeof(float));
  plan.weights = packs.Get<AlignedBuffer>(
      constants.weights, StrCat("dot_conv ", input.lanes, " lanes"),
      [&] { return PackDotWeights(p, input, plan.groups, constants.weights->data<float>()); });
  return std::make_unique<DotConv>(std::move(plan));
}

}  // namespace tessera
#endif  // HWY_ONCE
