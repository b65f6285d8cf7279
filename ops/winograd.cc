// 3x3 convolution by Winograd's minimal filtering: choice of the tile, weight packing, kernel.
#include "ops/winograd.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/conv.h"
#include "ops/error.h"
#include "simd/aligned_buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/winograd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

void RunWinogradBlock(const WinogradPlan& plan, const WinogradData& data, std::int64_t first,
                      std::int64_t tiles, float* scratch) {
  const auto run = plan.m == 6 ? winograd::RunBlock<6> : winograd::RunBlock<4>;
  run(plan, data, first, tiles, scratch);
}

void TransformWinogradInput(const WinogradPlan& plan, const float* input, std::int64_t first,
                            std::int64_t tiles, const TransformedTiles& v) {
  const auto run =
      plan.m == 6 ? winograd::TransformInputBlock<6> : winograd::TransformInputBlock<4>;
  run(plan, input, first, tiles, v);
}

void TransformWinogradWeights(const WinogradPlan& plan, const float* weights, float* u) {
  const auto run = plan.m == 6 ? winograd::TransformWeights<6> : winograd::TransformWeights<4>;
  run(plan, weights, u);
}

int MaxTilesPerProduct(int vectors) { return winograd::kMaxTiles[vectors - 1]; }

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunWinogradBlock);
HWY_EXPORT(TransformWinogradInput);
HWY_EXPORT(TransformWinogradWeights);
HWY_EXPORT(MaxTilesPerProduct);

constexpr std::int64_t DivideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Pairs of vectors; an odd one at the end makes a triple.
std::vector<WinogradGroup> GroupVectors(int vectors) {
  std::vector<WinogradGroup> groups;
  for (int first = 0; first < vectors;) {
    const int left = vectors - first;
    groups.push_back({first, left <= 3 ? left : 2});
    first += groups.back().vectors;
  }
  return groups;
}

// An odd number of cache lines, so that the positions of a tile do not compete for the same sets.
std::int64_t PositionStride(std::int64_t floats) {
  constexpr std::int64_t kLine = kAlignment / sizeof(float);
  return (DivideUp(floats, kLine) | 1) * kLine;
}

// The weights in the order in which they are transformed, [group][input channel][vector of
// group][3 x 3][lane]; those of channels beyond the last are zero.
AlignedBuffer PackWeights(const Tensor& weights, const WinogradPlan& plan) {
  const std::int64_t in_channels = plan.in.channels, out_channels = plan.out.channels;
  const int lanes = plan.out.lanes;
  AlignedBuffer packed(static_cast<std::size_t>(in_channels * plan.out.blocks * lanes * 9) *
                       sizeof(float));
  const float* const w = weights.data<float>();
  float* to = packed.As<float>();
  for (const WinogradGroup& group : plan.groups) {
    for (std::int64_t c = 0; c < in_channels; ++c) {
      for (int v = 0; v < group.vectors; ++v) {
        for (int tap = 0; tap < 9; ++tap) {
          for (int lane = 0; lane < lanes; ++lane) {
            const std::int64_t channel = (group.first_vector + v) * lanes + lane;
            *to++ = channel < out_channels ? w[(channel * in_channels + c) * 9 + tap] : 0.0f;
          }
        }
      }
    }
  }
  return packed;
}

// Input and output of a layer that are smaller than this stay in the outer cache between layers.
constexpr std::int64_t kMinBytesToPrefetch = 8 << 20;

WinogradPlan MakePlan(const ConvParams& p, int m, bool input_is_transformed = false) {
  WinogradPlan plan{
      .m = m,
      .in = BlockedLayout({p.batch, p.in_channels, p.in_height, p.in_width}),
      .out = BlockedLayout({p.batch, p.out_channels, p.out_height, p.out_width}),
      .pad_top = p.pad_top,
      .pad_left = p.pad_left,
      .tiles_down = DivideUp(p.out_height, m),
      .tiles_across = DivideUp(p.out_width, m),
      .groups = {},
      .block_tiles = 0,
      .position_stride = 0,
      .u_stride = 0,
      .max_runs = 0,
  };
  plan.groups = GroupVectors(static_cast<int>(plan.out.blocks));

  // A few calls of the product kernel for each position: the more, the less often are the weights
  // read, and the fewer, the better V and M stay in the L2 cache.
  constexpr std::int64_t kBlockTiles = 28;
  const std::int64_t max = HWY_DYNAMIC_DISPATCH(MaxTilesPerProduct)(plan.groups[0].vectors);
  plan.block_tiles = std::max<std::int64_t>(kBlockTiles / max, 1) * max;
  plan.block_tiles = std::min(plan.block_tiles, std::max<std::int64_t>(plan.NumTiles(), 1));
  plan.position_stride =
      PositionStride(plan.block_tiles * std::max(plan.in.blocks, plan.out.blocks) * plan.out.lanes);
  plan.u_stride = PositionStride(plan.in.channels * plan.out.blocks * plan.out.lanes);
  const std::int64_t bytes =
      (plan.in.NumFloats() + plan.out.NumFloats()) * static_cast<std::int64_t>(sizeof(float));
  if (plan.in.lanes > 1 && input_is_transformed) {
    plan.max_runs = plan.RunsPerProduct();
  } else if (plan.in.lanes > 1 && plan.RunsPerProduct() > 0 && bytes >= kMinBytesToPrefetch) {
    const std::int64_t planes = plan.in.blocks + 2 * plan.out.blocks;  // with those of an addend
    plan.max_runs = plan.block_tiles * m * planes + plan.RunsPerProduct();
  }
  return plan;
}

// Cost of a layer per pair of channels, in multiplications: reading a weight from memory takes as
// long as about kWeightReads of them.
constexpr std::int64_t kWeightReads = 20;

double WinogradCost(const ConvParams& p, int m) {
  const std::int64_t tiles = p.batch * DivideUp(p.out_height, m) * DivideUp(p.out_width, m);
  return static_cast<double>((m + 2) * (m + 2) * (tiles + kWeightReads));
}

double DirectCost(const ConvParams& p) {
  return 9.0 * static_cast<double>(p.batch * p.out_height * p.out_width + kWeightReads);
}

// What transformed weights may take of the outer cache.
constexpr std::int64_t kMaxWeightBytes = 8 << 20;

// With less, the transforms take most of the time.
constexpr std::int64_t kMinInChannels = 8;

// The m of the fastest F(m x m, 3x3), or 0 if a direct kernel is faster. Fitted to measurements of
// 3 to 192 channels at 4x4 to 256x256 pixels on AVX2 and AVX-512.
int ChooseTile(const ConvParams& p) {
  if (p.in_channels < kMinInChannels || DirectCost(p) < WinogradCost(p, 4)) return 0;
  // Where both take as long, F(6x6): small tiles of a picture should be computed as large ones are.
  const std::int64_t weight_bytes = p.in_channels * p.out_channels * 64 * sizeof(float);
  const bool six =
      weight_bytes <= kMaxWeightBytes && WinogradCost(p, 6) < 1.05 * WinogradCost(p, 4);
  return six ? 6 : 4;
}

// Transforming the weights takes as long as a few tiles. From so many tiles on each thread does it
// anew in each run, if they fit its cache, and the plain weights alone are kept: transformed ones
// are 4 to 7 times as large.
constexpr std::int64_t kTilesToTransformInRun = 100;

bool IsPlain3x3(const ConvParams& p) {
  // Of pads at the end, two still leave every tile some pixels of the input.
  const auto small = [](std::int64_t begin, std::int64_t end) { return begin <= 1 && end <= 2; };
  return p.kernel_h == 3 && p.kernel_w == 3 && p.stride_h == 1 && p.stride_w == 1 &&
         p.dilation_h == 1 && p.dilation_w == 1 && p.groups == 1 &&
         small(p.pad_top, p.pad_bottom) && small(p.pad_left, p.pad_right);
}

// What convolutions that share V have in common.
constexpr int kSharedTile = 6;

ConvParams SameSizeConv(const Shape& x) {
  return {.batch = x[0],
          .in_channels = x[1],
          .in_height = x[2],
          .in_width = x[3],
          .out_channels = 1,
          .out_height = x[2],
          .out_width = x[3],
          .kernel_h = 3,
          .kernel_w = 3,
          .stride_h = 1,
          .stride_w = 1,
          .dilation_h = 1,
          .dilation_w = 1,
          .pad_top = 1,
          .pad_left = 1,
          .pad_bottom = 1,
          .pad_right = 1,
          .groups = 1,
          .epilogue = {}};
}

// Where V of tile `first` and those after it lies in a tensor of TransformedShape.
TransformedTiles TransformedView(const TensorView& v, std::int64_t first) {
  const BlockedLayout layout(v.shape);
  return {v.data<float>() + first * layout.lanes, layout.row_stride, layout.plane_stride};
}

// As many blocks as keep the threads equally busy, as equal as can be. The cuts do not show in the
// result, since tiles do not mix.
template <typename Body>
void ForEachBlock(const WinogradPlan& plan, Parallel& parallel, const Body& body) {
  const std::int64_t tiles = plan.NumTiles(), threads = parallel.num_threads();
  const std::int64_t blocks =
      std::min(tiles, DivideUp(DivideUp(tiles, plan.block_tiles), threads) * threads);
  parallel.For(blocks, [&](std::int64_t i, int thread) {
    const std::int64_t first = tiles * i / blocks, end = tiles * (i + 1) / blocks;
    body(first, end - first, thread);
  });
}

class WinogradInput final : public Kernel {
 public:
  explicit WinogradInput(const Shape& x) : plan_(MakePlan(SameSizeConv(x), kSharedTile)) {}

  std::string_view name() const override { return "winograd_input"; }

  void Run(const RunContext& context) const override {
    const auto transform = HWY_DYNAMIC_DISPATCH(TransformWinogradInput);
    ForEachBlock(plan_, context.parallel, [&](std::int64_t first, std::int64_t tiles, int) {
      transform(plan_, context.inputs[0].data<float>(), first, tiles,
                TransformedView(context.outputs[0], first));
    });
  }

 private:
  WinogradPlan plan_;
};

class WinogradConv final : public Kernel {
 public:
  WinogradConv(const ConvParams& params, int m, bool input_is_transformed,
               const ConvConstants& constants, PackCache& packs)
      : params_(params),
        plan_(MakePlan(params, m, input_is_transformed)),
        input_is_transformed_(input_is_transformed),
        operands_(PackEpilogue(params.epilogue, constants.bias.get(), constants.slope.get(),
                               params.out_channels, plan_.out.blocks * plan_.out.lanes)),
        transforms_in_run_(plan_.NumTiles() >= kTilesToTransformInRun &&
                           static_cast<std::int64_t>(WeightBytes()) <= kMaxWeightBytes) {
    const auto pack = [&] { return PackWeights(*constants.weights, plan_); };
    const auto pack_transformed = [&] {
      AlignedBuffer u(WeightBytes());
      Transform(pack().As<float>(), u.As<float>());
      return u;
    };
    const int lanes = plan_.out.lanes;
    weights_ = transforms_in_run_
                   ? packs.Get<AlignedBuffer>(constants.weights, StrCat("winograd ", lanes), pack)
                   : packs.Get<AlignedBuffer>(constants.weights, StrCat(name(), " ", lanes),
                                              pack_transformed);
  }

  std::string_view name() const override {
    return plan_.m == 6 ? "conv3x3_winograd_f6" : "conv3x3_winograd_f4";
  }
  // [transformed weights, and whether they are][block]
  std::size_t ScratchBytesPerThread() const override {
    return OwnWeightBytes() + static_cast<std::size_t>(plan_.BlockBytes());
  }
  // A tile of the addend is read just before the same pixels of the output are written.
  bool CanOverwriteInput(std::size_t i) const override {
    return i == kConvAddend && params_.epilogue.combine != Combine::kNone;
  }
  double Flops() const override { return params_.Flops(); }

  void Run(const RunContext& context) const override {
    const WinogradData data{
        .weights = weights_->As<float>(),
        .bias = operands_.Bias(),
        .slope = operands_.Slope(),
        .epilogue = params_.epilogue,
        .input = input_is_transformed_ ? nullptr : context.inputs[0].data<float>(),
        .transformed =
            input_is_transformed_ ? TransformedView(context.inputs[0], 0) : TransformedTiles{},
        .addend = params_.epilogue.combine == Combine::kNone
                      ? nullptr
                      : context.inputs[kConvAddend].data<float>(),
        .output = context.outputs[0].data<float>(),
    };
    if (transforms_in_run_) {
      for (int i = 0; i < context.parallel.num_threads(); ++i) *HasOwnWeights(context, i) = false;
    }
    const auto run_block = HWY_DYNAMIC_DISPATCH(RunWinogradBlock);
    ForEachBlock(plan_, context.parallel, [&](std::int64_t first, std::int64_t tiles, int thread) {
      WinogradData own = data;
      if (transforms_in_run_) own.weights = OwnWeights(context, thread);
      run_block(plan_, own, first, tiles,
                context.Scratch<float>(thread) + OwnWeightBytes() / sizeof(float));
    });
  }

 private:
  std::size_t WeightBytes() const {
    return static_cast<std::size_t>(plan_.WeightFloats()) * sizeof(float);
  }
  std::size_t OwnWeightBytes() const { return transforms_in_run_ ? WeightBytes() + kAlignment : 0; }
  void Transform(const float* weights, float* u) const {
    HWY_DYNAMIC_DISPATCH(TransformWinogradWeights)(plan_, weights, u);
  }

  bool* HasOwnWeights(const RunContext& context, int thread) const {
    return reinterpret_cast<bool*>(context.Scratch<std::byte>(thread) + WeightBytes());
  }
  // The thread's transformed weights. They are not shared: a core reads what another one has just
  // written more slowly than it would compute it.
  const float* OwnWeights(const RunContext& context, int thread) const {
    float* const u = context.Scratch<float>(thread);
    if (bool* const done = HasOwnWeights(context, thread); !*done) {
      Transform(weights_->As<float>(), u);
      *done = true;
    }
    return u;
  }

  ConvParams params_;
  WinogradPlan plan_;
  bool input_is_transformed_;
  EpilogueOperands operands_;
  bool transforms_in_run_;
  std::shared_ptr<const AlignedBuffer> weights_;  // transformed, unless transforms_in_run_
};

}  // namespace

int ChooseWinogradTile(const ConvParams& p) { return IsPlain3x3(p) ? ChooseTile(p) : 0; }

bool MayUseWinograd(const ConvParams& p) {
  return IsPlain3x3(p) && p.in_channels >= kMinInChannels;
}

std::unique_ptr<Kernel> MakeWinogradConv(const ConvParams& p, const ConvConstants& constants,
                                         PackCache& packs) {
  const int m = ChooseWinogradTile(p);
  if (m == 0 || constants.weights == nullptr) return nullptr;
  return std::make_unique<WinogradConv>(p, m, false, constants, packs);
}

Shape WinogradInputShape(const Shape& x) {
  const WinogradPlan plan = MakePlan(SameSizeConv(x), kSharedTile);
  // Positions lie an odd number of cache lines apart (see PositionStride).
  return {1, x[1], plan.NumPositions(), plan.NumTiles() | 1};
}

std::unique_ptr<Kernel> MakeWinogradInput(const Shape& x) {
  return std::make_unique<WinogradInput>(x);
}

std::unique_ptr<Kernel> MakeWinogradProduct(const ConvParams& params,
                                            const ConvConstants& constants, PackCache& packs) {
  return std::make_unique<WinogradConv>(params, kSharedTile, true, constants, packs);
}

}  // namespace tessera
#endif  // HWY_ONCE
