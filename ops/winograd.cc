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

int MaxTilesPerProduct(int vectors) { return winograd::kMaxTiles[vectors - 1]; }

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunWinogradBlock);
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

// G of F(m x m, 3x3): a row for each of the points 0, +p, -p, ..., infinity.
template <int kM>
std::array<std::array<double, 3>, kM + 2> WeightTransform() {
  std::array<double, kM + 1> points{};
  for (int i = 0; i < kM / 2; ++i) {
    points[1 + 2 * i] = kWinogradPoints<kM>[i];
    points[2 + 2 * i] = -kWinogradPoints<kM>[i];
  }
  std::array<std::array<double, 3>, kM + 2> rows{};
  for (int i = 0; i <= kM; ++i) {
    double divisor = 1;
    for (int j = 0; j <= kM; ++j) divisor *= i == j ? 1 : points[i] - points[j];
    rows[i] = {1 / divisor, points[i] / divisor, points[i] * points[i] / divisor};
  }
  rows[kM + 1] = {0, 0, 1};
  return rows;
}

// U = G w G^T in WinogradData's order; weights of channels beyond the last are zero.
template <int kM>
AlignedBuffer PackWeights(const Tensor& weights, const WinogradPlan& plan) {
  const auto g = WeightTransform<kM>();
  constexpr std::int64_t kN = kM + 2;
  const std::int64_t in_channels = plan.in.channels, out_channels = plan.out.channels;
  const int lanes = plan.out.lanes;
  const std::int64_t position_stride = in_channels * plan.out.blocks * lanes;
  AlignedBuffer packed(static_cast<std::size_t>(kN * kN * position_stride) * sizeof(float));
  const float* const w = weights.data<float>();
  for (const WinogradGroup& group : plan.groups) {
    for (std::int64_t c = 0; c < in_channels; ++c) {
      for (std::int64_t o = 0; o < group.vectors * lanes; ++o) {
        const std::int64_t channel = group.first_vector * lanes + o;
        double half_done[kN][3] = {};
        if (channel < out_channels) {
          const float* const k = w + (channel * in_channels + c) * 9;
          for (int i = 0; i < kN; ++i) {
            for (int x = 0; x < 3; ++x) {
              half_done[i][x] = g[i][0] * k[x] + g[i][1] * k[3 + x] + g[i][2] * k[6 + x];
            }
          }
        }
        float* const u = packed.As<float>() + group.first_vector * lanes * in_channels +
                         c * group.vectors * lanes + o;
        for (int i = 0; i < kN; ++i) {
          const auto& h = half_done[i];
          for (int j = 0; j < kN; ++j) {
            u[(i * kN + j) * position_stride] =
                static_cast<float>(h[0] * g[j][0] + h[1] * g[j][1] + h[2] * g[j][2]);
          }
        }
      }
    }
  }
  return packed;
}

WinogradPlan MakePlan(const ConvParams& p, int m) {
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
      .v_stride = 0,
      .m_stride = 0,
  };
  plan.groups = GroupVectors(static_cast<int>(plan.out.blocks));

  // As few tiles as keep the product kernel busy: the smaller V and M, the better do they and the
  // weights stay in the L2 cache. Larger blocks were never faster.
  plan.block_tiles = HWY_DYNAMIC_DISPATCH(MaxTilesPerProduct)(plan.groups[0].vectors);
  plan.block_tiles = std::min(plan.block_tiles, std::max<std::int64_t>(plan.NumTiles(), 1));
  plan.v_stride = PositionStride(plan.block_tiles * plan.in.blocks * plan.in.lanes);
  plan.m_stride = PositionStride(plan.block_tiles * plan.out.blocks * plan.out.lanes);
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

// The m of the fastest F(m x m, 3x3), or 0 if a direct kernel is faster. Fitted to measurements of
// 3 to 192 channels at 4x4 to 256x256 pixels on AVX2 and AVX-512.
int ChooseTile(const ConvParams& p) {
  constexpr std::int64_t kMinInChannels = 8;  // with less, the transforms take most of the time
  if (p.in_channels < kMinInChannels || DirectCost(p) < WinogradCost(p, 4)) return 0;
  // The transforms of F(6x6) are dearer, and its 64 positions of weights have to share the L2 cache
  // with the tiles.
  constexpr std::int64_t kMaxWeightBytes = 1 << 20;
  const std::int64_t weight_bytes = p.in_channels * p.out_channels * 64 * sizeof(float);
  const bool six =
      weight_bytes <= kMaxWeightBytes && WinogradCost(p, 6) < 0.92 * WinogradCost(p, 4);
  return six ? 6 : 4;
}

bool IsPlain3x3(const ConvParams& p) {
  const auto zero_or_one = [](std::int64_t pad) { return pad == 0 || pad == 1; };
  return p.kernel_h == 3 && p.kernel_w == 3 && p.stride_h == 1 && p.stride_w == 1 &&
         p.dilation_h == 1 && p.dilation_w == 1 && p.groups == 1 && zero_or_one(p.pad_top) &&
         zero_or_one(p.pad_left) && zero_or_one(p.pad_bottom) && zero_or_one(p.pad_right);
}

class WinogradConv final : public Kernel {
 public:
  WinogradConv(const ConvParams& params, int m, const ConvConstants& constants, PackCache& packs)
      : params_(params),
        plan_(MakePlan(params, m)),
        operands_(PackEpilogue(params.epilogue, constants.bias.get(), constants.slope.get(),
                               params.out_channels, plan_.out.blocks * plan_.out.lanes)) {
    weights_ =
        packs.Get<AlignedBuffer>(constants.weights, StrCat(name(), " ", plan_.out.lanes), [&] {
          return plan_.m == 6 ? PackWeights<6>(*constants.weights, plan_)
                              : PackWeights<4>(*constants.weights, plan_);
        });
  }

  std::string_view name() const override {
    return plan_.m == 6 ? "conv3x3_winograd_f6" : "conv3x3_winograd_f4";
  }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>(plan_.ScratchFloats()) * sizeof(float);
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
        .input = context.inputs[0].data<float>(),
        .addend = params_.epilogue.combine == Combine::kNone
                      ? nullptr
                      : context.inputs[kConvAddend].data<float>(),
        .output = context.outputs[0].data<float>(),
    };
    // As many blocks as keep the threads equally busy, as equal as can be. The cuts do not show in
    // the result, since tiles do not mix.
    const std::int64_t tiles = plan_.NumTiles();
    const std::int64_t threads = context.parallel.num_threads();
    const std::int64_t blocks =
        std::min(tiles, DivideUp(DivideUp(tiles, plan_.block_tiles), threads) * threads);
    const auto run_block = HWY_DYNAMIC_DISPATCH(RunWinogradBlock);
    context.parallel.For(blocks, [&](std::int64_t i, int thread) {
      const std::int64_t first = tiles * i / blocks, end = tiles * (i + 1) / blocks;
      run_block(plan_, data, first, end - first, context.Scratch<float>(thread));
    });
  }

 private:
  ConvParams params_;
  WinogradPlan plan_;
  EpilogueOperands operands_;
  std::shared_ptr<const AlignedBuffer> weights_;
};

}  // namespace

std::unique_ptr<Kernel> MakeWinogradConv(const ConvParams& p, const ConvConstants& constants,
                                         PackCache& packs) {
  const int m = IsPlain3x3(p) && constants.weights != nullptr ? ChooseTile(p) : 0;
  if (m == 0) return nullptr;
  return std::make_unique<WinogradConv>(p, m, constants, packs);
}

}  // namespace tessera
#endif  // HWY_ONCE
