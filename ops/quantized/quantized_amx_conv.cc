// QuantizedConv on Intel AMX.
//
// A row of a tile A is 64 bytes of what one output pixel is the sum of: with the channels of a
// pixel side by side, the taps of a kernel's row lie one after the other in memory, so a tile is
// loaded from the picture itself, whatever the kernel. A block of 32 output pixels times 32 output
// channels takes four tiles of sums, two of pixels and two of weights. Sums go through a small
// buffer, where vectors make bytes of them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/quantized/quantized_conv.h"
#include "ops/window.h"
#include "simd/amx.h"
#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_amx_conv.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantized/quantized_epilogue-inl.h"

#ifndef TESSERA_QUANTIZED_AMX_CONV_ONCE
#define TESSERA_QUANTIZED_AMX_CONV_ONCE
namespace tessera {
namespace {

constexpr std::int64_t kTileRows = 16, kTileBytes = 64, kBlockPixels = 2 * kTileRows;
constexpr std::int64_t kTileChannels = 16, kGroupTiles = 4;
// Of the buffer of sums.
constexpr std::int64_t kSumsRow = kGroupTiles * kTileChannels;

// Output channels of one round: four tiles in quad order, or fewer in the order of the channels.
struct ChannelGroup {
  std::int64_t first_tile, tiles;
};

struct AmxConvPlan {
  std::int64_t kernel_rows, row_step;      // of the kernel; bytes from one to the next
  std::int64_t segments;                   // of 64 bytes, in each row of the kernel
  std::int64_t pixel_step;                 // bytes from one output pixel's input to the next's
  std::int64_t out_stride, addend_stride;  // bytes from pixel to pixel
  std::int64_t plane_stride = 0;           // floats, from block to block of a float result
  std::vector<ChannelGroup> groups;
  std::shared_ptr<const AlignedBuffer> weights;  // [tile][kernel row][segment][1024]
  std::shared_ptr<const QuantizedEpilogue> epilogue;
  AlignedBuffer bias, positive, negative;  // [tile][16], in the order of the tile's lanes

  std::int64_t TileWeights() const { return kernel_rows * segments * kTileRows * kTileBytes; }
};

// A run of output pixels of one row.
struct AmxRun {
  const std::uint8_t* in;  // first byte of the first pixel's window
  std::int64_t pixels;
  const std::uint8_t* addend;
  void* out;
  std::int32_t* sums;  // [32][64]
};

}  // namespace
}  // namespace tessera
#endif

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// Sums of kPixelTiles * 16 pixels for kChannelTiles tiles of channels from `tile` on.
template <int kPixelTiles, int kChannelTiles>
HWY_INLINE void SumTiles(const AmxConvPlan& plan, const std::uint8_t* in, std::int64_t tile,
                         std::int32_t* sums) {
  constexpr std::int64_t kTile = kTileRows * kTileBytes;
  const std::int32_t* bias = plan.bias.As<std::int32_t>() + tile * kTileChannels;
  LoadTile<0>(bias, 0);
  if (kChannelTiles > 1) LoadTile<1>(bias + kTileChannels, 0);
  if (kPixelTiles > 1) LoadTile<2>(bias, 0);
  if (kPixelTiles > 1 && kChannelTiles > 1) LoadTile<3>(bias + kTileChannels, 0);
  const auto* w = plan.weights->As<std::int8_t>() + tile * plan.TileWeights();
  const std::int64_t next_tile = plan.TileWeights();
  const std::int64_t half = kTileRows * plan.pixel_step;
  for (std::int64_t ky = 0; ky < plan.kernel_rows; ++ky) {
    for (std::int64_t s = 0; s < plan.segments; ++s, w += kTile) {
      const std::uint8_t* a = in + ky * plan.row_step + s * kTileBytes;
      LoadTile<4>(a, plan.pixel_step);
      LoadTile<6>(w, kTileBytes);
      MultiplyTiles<0, 4, 6>();
      if (kChannelTiles > 1) {
        LoadTile<7>(w + next_tile, kTileBytes);
        MultiplyTiles<1, 4, 7>();
      }
      if (kPixelTiles > 1) {
        LoadTile<5>(a + half, plan.pixel_step);
        MultiplyTiles<2, 5, 6>();
        if (kChannelTiles > 1) MultiplyTiles<3, 5, 7>();
      }
    }
  }
  constexpr std::int64_t kStride = kSumsRow * sizeof(std::int32_t);
  StoreTile<0>(sums, kStride);
  if (kChannelTiles > 1) StoreTile<1>(sums + kTileChannels, kStride);
  if (kPixelTiles > 1) StoreTile<2>(sums + kTileRows * kSumsRow, kStride);
  if (kPixelTiles > 1 && kChannelTiles > 1) {
    StoreTile<3>(sums + kTileRows * kSumsRow + kTileChannels, kStride);
  }
}

template <int kPixelTiles>
HWY_INLINE void SumGroup(const AmxConvPlan& plan, const std::uint8_t* in, const ChannelGroup& group,
                         std::int32_t* sums) {
  std::int64_t t = 0;
  for (; t + 2 <= group.tiles; t += 2) {
    SumTiles<kPixelTiles, 2>(plan, in, group.first_tile + t, sums + t * kTileChannels);
  }
  if (t < group.tiles) {
    SumTiles<kPixelTiles, 1>(plan, in, group.first_tile + t, sums + t * kTileChannels);
  }
}

// One tile's sums of `pixels` pixels to bytes.
template <QuantizedForm kForm>
HWY_INLINE void StoreTileBytes(const AmxConvPlan& plan, const QuantizedOutput<kForm>& output,
                               std::int64_t tile, const std::int32_t* sums, std::int64_t pixels,
                               const std::uint8_t* addend, std::uint8_t* out) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::ScalableTag<float> df;
  const auto positive = hn::Load(df, plan.positive.As<float>() + tile * kTileChannels);
  const auto negative = hn::Load(df, plan.negative.As<float>() + tile * kTileChannels);
  const auto round = [&](std::int64_t x) HWY_ATTR {
    const auto a = kForm == QuantizedForm::kGeneral && addend != nullptr
                       ? LoadBytes(d, addend + x * plan.addend_stride)
                       : hn::Zero(d);
    return output.Round(d, hn::Load(d, sums + x * kSumsRow), positive, negative, a);
  };
  std::int64_t x = 0;
  for (; x + 4 <= pixels; x += 4) {
    output.StoreFour(d, round(x), round(x + 1), round(x + 2), round(x + 3),
                     out + x * plan.out_stride, plan.out_stride);
  }
  for (; x < pixels; ++x) output.Store(d, round(x), out + x * plan.out_stride);
}

// Sums of `pixels` pixels to bytes.
template <QuantizedForm kForm>
HWY_INLINE void StoreBytes(const AmxConvPlan& plan, const QuantizedOutput<kForm>& output,
                           const ChannelGroup& group, const std::int32_t* sums, std::int64_t pixels,
                           const std::uint8_t* addend, std::uint8_t* out) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::ScalableTag<float> df;
  using V = hn::Vec<decltype(d)>;
  const float* positive = plan.positive.As<float>() + group.first_tile * kTileChannels;
  const float* negative = plan.negative.As<float>() + group.first_tile * kTileChannels;
  const bool has_addend = kForm == QuantizedForm::kGeneral && addend != nullptr;
  if (group.tiles < kGroupTiles) {
    for (std::int64_t t = 0; t < group.tiles; ++t) {
      const std::int64_t channel = t * kTileChannels;
      StoreTileBytes(plan, output, group.first_tile + t, sums + channel, pixels,
                     has_addend ? addend + channel : nullptr, out + channel);
    }
    return;
  }
  constexpr std::int64_t kLanes = kTileChannels;
  const auto p0 = hn::Load(df, positive), n0 = hn::Load(df, negative);
  const auto p1 = hn::Load(df, positive + kLanes), n1 = hn::Load(df, negative + kLanes);
  const auto p2 = hn::Load(df, positive + 2 * kLanes), n2 = hn::Load(df, negative + 2 * kLanes);
  const auto p3 = hn::Load(df, positive + 3 * kLanes), n3 = hn::Load(df, negative + 3 * kLanes);
  V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  for (std::int64_t x = 0; x < pixels; ++x) {
    const std::int32_t* s = sums + x * kSumsRow;
    if (has_addend) LoadQuad(d, addend + x * plan.addend_stride, a0, a1, a2, a3);
    const V v0 = output.Round(d, hn::Load(d, s), p0, n0, a0);
    const V v1 = output.Round(d, hn::Load(d, s + kLanes), p1, n1, a1);
    const V v2 = output.Round(d, hn::Load(d, s + 2 * kLanes), p2, n2, a2);
    const V v3 = output.Round(d, hn::Load(d, s + 3 * kLanes), p3, n3, a3);
    output.StoreQuad(d, v0, v1, v2, v3, out + x * plan.out_stride);
  }
}

// Sums of `pixels` pixels to floats in blocks of 16 channels.
HWY_INLINE void StoreFloats(const AmxConvPlan& plan,
                            const QuantizedOutput<QuantizedForm::kGeneral>& output,
                            const ChannelGroup& group, const std::int32_t* sums,
                            std::int64_t pixels, const std::uint8_t* addend, float* out) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::ScalableTag<float> df;
  for (std::int64_t t = 0; t < group.tiles; ++t) {
    const std::int64_t tile = group.first_tile + t;
    const auto positive = hn::Load(df, plan.positive.As<float>() + tile * kTileChannels);
    const auto negative = hn::Load(df, plan.negative.As<float>() + tile * kTileChannels);
    for (std::int64_t x = 0; x < pixels; ++x) {
      const auto a = addend == nullptr
                         ? hn::Zero(d)
                         : LoadBytes(d, addend + x * plan.addend_stride + t * kTileChannels);
      const auto sum = hn::Load(d, sums + x * kSumsRow + t * kTileChannels);
      hn::Store(output.Real(d, sum, positive, negative, a), df,
                out + t * plan.plane_stride + x * kTileChannels);
    }
  }
}

template <QuantizedForm kForm>
void RunForm(const AmxConvPlan& plan, const AmxRun& run) {
  const QuantizedOutput<kForm> output(*plan.epilogue);
  for (const ChannelGroup& group : plan.groups) {
    const std::int64_t channel = group.first_tile * kTileChannels;
    for (std::int64_t x = 0; x < run.pixels; x += kBlockPixels) {
      const std::int64_t n = std::min(kBlockPixels, run.pixels - x);
      const std::uint8_t* in = run.in + x * plan.pixel_step;
      if (n > kTileRows) {
        SumGroup<2>(plan, in, group, run.sums);
      } else {
        SumGroup<1>(plan, in, group, run.sums);
      }
      const std::uint8_t* addend =
          run.addend == nullptr ? nullptr : run.addend + x * plan.addend_stride + channel;
      if constexpr (kForm == QuantizedForm::kGeneral) {
        if (plan.epilogue->to_float) {
          StoreFloats(plan, output, group, run.sums, n, addend,
                      static_cast<float*>(run.out) + group.first_tile * plan.plane_stride +
                          x * kTileChannels);
          continue;
        }
      }
      StoreBytes(plan, output, group, run.sums, n, addend,
                 static_cast<std::uint8_t*>(run.out) + x * plan.out_stride + channel);
    }
  }
}

void RunAmxOfTarget(const AmxConvPlan& plan, const AmxRun& run) {
  if (!plan.epilogue->is_linear) return RunForm<QuantizedForm::kGeneral>(plan, run);
  if (plan.epilogue->has_slope) return RunForm<QuantizedForm::kSlope>(plan, run);
  RunForm<QuantizedForm::kLinear>(plan, run);
}

#else

void RunAmxOfTarget(const AmxConvPlan&, const AmxRun&) {}  // never called

#endif

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {

HWY_EXPORT(RunAmxOfTarget);

// Channel of lane `lane` of a tile; at least `channels` where there is none.
std::int64_t ChannelOf(const AmxConvPlan& plan, std::int64_t tile, std::int64_t lane) {
  for (const ChannelGroup& group : plan.groups) {
    if (tile >= group.first_tile + group.tiles) continue;
    if (group.tiles < kGroupTiles || plan.plane_stride > 0) return tile * kTileChannels + lane;
    return group.first_tile * kTileChannels +
           QuadOrder(kTileChannels, tile - group.first_tile, lane);
  }
  return -1;
}

AlignedBuffer PackWeights(const AmxConvPlan& plan, const ConvParams& p, const Tensor& weights,
                          std::int64_t tiles, std::int64_t in_stride) {
  AlignedBuffer packed(static_cast<std::size_t>(tiles * plan.TileWeights()));
  auto* out = packed.As<std::int8_t>();
  std::memset(out, 0, static_cast<std::size_t>(tiles * plan.TileWeights()));
  const auto* w = weights.data<const std::int8_t>();
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    for (std::int64_t lane = 0; lane < kTileChannels; ++lane) {
      const std::int64_t m = ChannelOf(plan, tile, lane);
      if (m >= p.out_channels) continue;
      for (std::int64_t ky = 0; ky < p.kernel_h; ++ky) {
        std::int8_t* row = out + tile * plan.TileWeights() +
                           ky * plan.segments * kTileRows * kTileBytes + lane * 4;
        for (std::int64_t kx = 0; kx < p.kernel_w; ++kx) {
          for (std::int64_t c = 0; c < p.in_channels; ++c) {
            const std::int64_t k = kx * in_stride + c;
            row[k / 4 * kTileBytes + k % 4] =
                w[((m * p.in_channels + c) * p.kernel_h + ky) * p.kernel_w + kx];
          }
        }
      }
    }
  }
  return packed;
}

class AmxConv final : public Kernel {
 public:
  AmxConv(const QuantizedConvParams& params, const QuantizedConvConstants& constants,
          PackCache& packs)
      : p_(params.conv),
        zero_point_(static_cast<std::uint8_t>(params.x.zero_point)),
        in_({p_.batch, p_.in_channels, p_.in_height, p_.in_width}),
        out_({p_.batch, p_.out_channels, p_.out_height, p_.out_width}),
        to_float_(params.to_float) {
    const std::int64_t tiles = (p_.out_channels + kTileChannels - 1) / kTileChannels;
    is_pointwise_ = p_.kernel_h == 1 && p_.kernel_w == 1 && p_.stride_h == 1 && p_.stride_w == 1 &&
                    p_.out_height == p_.in_height && p_.out_width == p_.in_width &&
                    p_.pad_top == 0 && p_.pad_left == 0;
    plan_.kernel_rows = p_.kernel_h;
    plan_.segments = (p_.kernel_w * in_.pixel_stride + kTileBytes - 1) / kTileBytes;
    plan_.pixel_step = p_.stride_w * in_.pixel_stride;
    plan_.out_stride = plan_.addend_stride = out_.pixel_stride;
    if (to_float_) plan_.plane_stride = Blocked().plane_stride;
    for (std::int64_t t = 0; t < tiles;) {
      const std::int64_t n = std::min(kGroupTiles, tiles - t);
      plan_.groups.push_back({t, n});
      t += n;
    }
    const std::string kind = StrCat("amx_", in_.pixel_stride, to_float_ ? "_float" : "");
    plan_.weights = packs.Get<AlignedBuffer>(constants.weights, kind, [&] {
      return PackWeights(plan_, p_, *constants.weights, tiles, in_.pixel_stride);
    });
    plan_.epilogue = std::make_shared<QuantizedEpilogue>(params, constants, tiles * kTileChannels);
    PackChannels(tiles);
    ChooseBands();
    name_ = StrCat("quantized_conv", p_.kernel_h, "x", p_.kernel_w, "_amx");
  }

  std::string_view name() const override { return name_; }
  double Flops() const override { return p_.Flops(); }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>(SumsBytes() + rows_bytes_);
  }

  void Run(const RunContext& run) const override {
    run.parallel.For(p_.batch * bands_, [&](std::int64_t task, int thread) {
      const std::int64_t image = task / bands_, band = task % bands_;
      auto* scratch = run.Scratch<std::uint8_t>(thread);
      BeginAmx();
      if (is_pointwise_) {
        RunPixels(run, image, band, scratch);
      } else {
        RunRows(run, image, band, scratch);
      }
      EndAmx();
    });
  }

 private:
  BlockedLayout Blocked() const {
    return BlockedLayout({p_.batch, p_.out_channels, p_.out_height, p_.out_width});
  }
  static std::int64_t SumsBytes() { return kBlockPixels * kSumsRow * 4; }

  void PackChannels(std::int64_t tiles) {
    const auto n = static_cast<std::size_t>(tiles * kTileChannels);
    plan_.bias = AlignedBuffer(n * sizeof(std::int32_t));
    plan_.positive = AlignedBuffer(n * sizeof(float));
    plan_.negative = AlignedBuffer(n * sizeof(float));
    for (std::int64_t t = 0; t < tiles; ++t) {
      for (std::int64_t lane = 0; lane < kTileChannels; ++lane) {
        const std::int64_t to = t * kTileChannels + lane, from = ChannelOf(plan_, t, lane);
        plan_.bias.As<std::int32_t>()[to] = plan_.epilogue->Bias()[from];
        plan_.positive.As<float>()[to] = plan_.epilogue->Positive()[from];
        plan_.negative.As<float>()[to] = plan_.epilogue->Negative()[from];
      }
    }
  }

  // Tasks of about as many pixels as make good use of the weights that are loaded for each.
  void ChooseBands() {
    constexpr std::int64_t kBandPixels = 512;
    if (is_pointwise_) {
      band_ = kBandPixels;
      bands_ = (p_.out_height * p_.out_width + band_ - 1) / band_;
      rows_bytes_ = band_ * in_.pixel_stride + kTileBytes;
      return;
    }
    // A tile reads whole segments, of 16 pixels.
    const std::int64_t pixels = (p_.out_width + kTileRows - 1) / kTileRows * kTileRows;
    const std::int64_t padded = p_.in_width + p_.pad_left + p_.pad_right;
    plan_.row_step = 0;
    row_bytes_ = std::max(padded * in_.pixel_stride,
                          (pixels - 1) * plan_.pixel_step + plan_.segments * kTileBytes);
    row_bytes_ = (row_bytes_ + kTileBytes - 1) / kTileBytes * kTileBytes;
    if (row_bytes_ % 4096 == 0) row_bytes_ += kTileBytes;
    plan_.row_step = p_.dilation_h * row_bytes_;
    band_ = std::clamp<std::int64_t>(kBandPixels / std::max<std::int64_t>(1, p_.out_width), 1,
                                     p_.out_height);
    bands_ = (p_.out_height + band_ - 1) / band_;
    rows_bytes_ = InputRows(band_) * row_bytes_;
  }
  std::int64_t InputRows(std::int64_t out_rows) const {
    return (out_rows - 1) * p_.stride_h + (p_.kernel_h - 1) * p_.dilation_h + 1;
  }

  // Output pixels from `first` on of an image, which follow each other in memory.
  AmxRun Output(const RunContext& run, std::int64_t image, std::int64_t y, std::int64_t x,
                std::int64_t pixels, std::uint8_t* scratch) const {
    AmxRun r{};
    const std::int64_t at = image * out_.image_stride + y * out_.row_stride + x * out_.pixel_stride;
    if (plan_.epilogue->has_addend) {
      r.addend = run.inputs[kQuantizedAddend].data<const std::uint8_t>() + at;
    }
    if (to_float_) {
      const BlockedLayout b = Blocked();
      r.out = run.outputs[0].data<float>() + image * b.image_stride + y * b.row_stride +
              x * kTileChannels;
    } else {
      r.out = run.outputs[0].data<std::uint8_t>() + at;
    }
    r.pixels = pixels;
    r.sums = reinterpret_cast<std::int32_t*>(scratch);
    return r;
  }

  void RunPixels(const RunContext& run, std::int64_t image, std::int64_t band,
                 std::uint8_t* scratch) const {
    const std::int64_t all = p_.out_height * p_.out_width;
    const std::int64_t first = band * band_, pixels = std::min(band_, all - first);
    const std::uint8_t* in = run.inputs[0].data<const std::uint8_t>() + image * in_.image_stride;
    // Tiles read beyond their pixels; at the end of the tensor that has to be other memory.
    const std::int64_t last = first + (pixels + kTileRows - 1) / kTileRows * kTileRows;
    const std::int64_t end = (last - 1) * in_.pixel_stride + plan_.segments * kTileBytes;
    const std::uint8_t* from = in + first * in_.pixel_stride;
    if (end > (p_.batch - image) * in_.image_stride) {
      std::uint8_t* copy = scratch + SumsBytes();
      std::memcpy(copy, from, static_cast<std::size_t>(pixels * in_.pixel_stride));
      from = copy;
    }
    if (to_float_) {  // rows of a blocked tensor have gaps
      for (std::int64_t at = first; at < first + pixels;) {
        const std::int64_t y = at / p_.out_width, x = at % p_.out_width;
        const std::int64_t n = std::min(first + pixels - at, p_.out_width - x);
        AmxRun r = Output(run, image, y, x, n, scratch);
        r.in = from + (at - first) * in_.pixel_stride;
        HWY_DYNAMIC_DISPATCH(RunAmxOfTarget)(plan_, r);
        at += n;
      }
      return;
    }
    AmxRun r = Output(run, image, 0, first, pixels, scratch);
    r.in = from;
    HWY_DYNAMIC_DISPATCH(RunAmxOfTarget)(plan_, r);
  }

  void RunRows(const RunContext& run, std::int64_t image, std::int64_t band,
               std::uint8_t* scratch) const {
    const Range rows{band * band_, std::min(p_.out_height, (band + 1) * band_)};
    std::uint8_t* copy = scratch + SumsBytes();
    const std::uint8_t* in = run.inputs[0].data<const std::uint8_t>() + image * in_.image_stride;
    CopyRows(in, rows.begin * p_.stride_h - p_.pad_top, InputRows(rows.size()), copy);
    for (std::int64_t y = rows.begin; y < rows.end; ++y) {
      AmxRun r = Output(run, image, y, 0, p_.out_width, scratch);
      r.in = copy + (y - rows.begin) * p_.stride_h * row_bytes_;
      HWY_DYNAMIC_DISPATCH(RunAmxOfTarget)(plan_, r);
    }
  }

  // Input rows from `first` on, with pads. What lies beyond them on the right is read, but does not
  // count.
  void CopyRows(const std::uint8_t* in, std::int64_t first, std::int64_t n,
                std::uint8_t* out) const {
    const std::int64_t stride = in_.pixel_stride;
    for (std::int64_t y = first; y < first + n; ++y, out += row_bytes_) {
      const auto fill = [&](std::int64_t from, std::int64_t pixels) {
        std::memset(out + from * stride, zero_point_, static_cast<std::size_t>(pixels * stride));
      };
      if (y < 0 || y >= p_.in_height) {
        fill(0, p_.pad_left + p_.in_width + p_.pad_right);
        continue;
      }
      fill(0, p_.pad_left);
      std::memcpy(out + p_.pad_left * stride, in + y * in_.row_stride,
                  static_cast<std::size_t>(in_.row_stride));
      fill(p_.pad_left + p_.in_width, p_.pad_right);
    }
  }

  ConvParams p_;
  std::uint8_t zero_point_;
  ChannelsLastLayout in_, out_;
  bool to_float_, is_pointwise_ = false;
  AmxConvPlan plan_;
  std::int64_t band_ = 0, bands_ = 0;            // pixels or rows; how many for an image
  std::int64_t row_bytes_ = 0, rows_bytes_ = 0;  // of the copy of the input
  std::string name_;
};

}  // namespace

std::unique_ptr<Kernel> MakeQuantizedAmxConv(const QuantizedConvParams& params,
                                             const QuantizedConvConstants& constants,
                                             Layout output_layout, PackCache& packs) {
  const ConvParams& p = params.conv;
  const bool layout = output_layout == (params.to_float ? Layout::kBlocked : Layout::kChannelsLast);
  // Fewer output channels do not fill a tile, nor do bytes of a pixel; one tile of pixels is full
  // if there are 16.
  if (!HasAmx() || !layout || p.groups != 1 || p.dilation_w != 1 || p.out_channels < 8 ||
      p.out_height * p.out_width < kTileRows || p.in_height * p.in_width < kTileRows) {
    return nullptr;
  }
  return std::make_unique<AmxConv>(params, constants, packs);
}

}  // namespace tessera
#endif  // HWY_ONCE
