// Planar convolution: a vector holds neighbouring pixels of one channel. It wastes nothing on
// convolutions with few output channels (last layers) or few channels a group, which would leave
// most of a block of channels empty. Included once per target.

#if defined(TESSERA_OPS_PLANAR_CONV_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_PLANAR_CONV_INL_H_
#undef TESSERA_OPS_PLANAR_CONV_INL_H_
#else
#define TESSERA_OPS_PLANAR_CONV_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "hwy/highway.h"
#include "ops/epilogue-inl.h"
#include "ops/planar_conv.h"
#include "ops/reorder-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of pixels for 1, 2, 3, 4 output channels: all sums, the inputs of one tap and one
// broadcast weight fit into the registers.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr std::array<int, kPlanarChannels> kPlanarVectors = {6, 6, 6, 5};
#else
inline constexpr std::array<int, kPlanarChannels> kPlanarVectors = {5, 4, 3, 2};
#endif

struct PlanarTile {
  const float* in;             // the first pixel of the first channel at tap (0, 0)
  const std::ptrdiff_t* taps;  // from there to each tap
  std::size_t num_taps;
  std::size_t channels;
  std::size_t plane_stride;
  const float* weights;
  const float* bias;  // [kChannels]
  float* out;         // vector v of channel c goes to out + c * out_stride + v * lanes
  std::size_t out_stride;
};

template <int kVectors, int kChannels>
void RunPlanarTile(const PlanarTile& t) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  V sums[kChannels][kVectors];
#pragma GCC unroll 8
  for (int c = 0; c < kChannels; ++c) {
    const V bias = hn::Set(d, t.bias[c]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[c][v] = bias;
  }
  const float* w = t.weights;
  for (std::size_t tap = 0; tap < t.num_taps; ++tap) {
    const float* x = t.in + t.taps[tap];
    for (std::size_t i = 0; i < t.channels; ++i, x += t.plane_stride, w += kChannels) {
      V inputs[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) inputs[v] = hn::LoadU(d, x + v * kLanes);
#pragma GCC unroll 8
      for (int c = 0; c < kChannels; ++c) {
        const V weight = hn::Set(d, w[c]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[c][v] = hn::MulAdd(inputs[v], weight, sums[c][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < kChannels; ++c) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[c][v], d, t.out + c * t.out_stride + v * kLanes);
    }
  }
}

using PlanarTileFn = void (*)(const PlanarTile&);

template <int kChannels, int... kVectors>
PlanarTileFn PlanarTileOf(int vectors, std::integer_sequence<int, kVectors...>) {
  static constexpr PlanarTileFn kTable[] = {&RunPlanarTile<kVectors + 1, kChannels>...};
  return kTable[vectors - 1];
}

inline PlanarTileFn FindPlanarTile(int vectors, int channels) {
  switch (channels) {
    case 1:
      return PlanarTileOf<1>(vectors, std::make_integer_sequence<int, kPlanarVectors[0]>());
    case 2:
      return PlanarTileOf<2>(vectors, std::make_integer_sequence<int, kPlanarVectors[1]>());
    case 3:
      return PlanarTileOf<3>(vectors, std::make_integer_sequence<int, kPlanarVectors[2]>());
    default:
      return PlanarTileOf<4>(vectors, std::make_integer_sequence<int, kPlanarVectors[3]>());
  }
}

// One tile of one group of one image.
class PlanarTask {
 public:
  PlanarTask(const PlanarPlan& plan, const RunContext& run, std::int64_t task, int thread)
      : plan_(plan), p_(plan.params), run_(run), scratch_(run.Scratch<float>(thread)) {
    const ConvTiling& t = plan.tiling;
    x0_ = task % t.col_tiles * t.cols;
    task /= t.col_tiles;
    y0_ = task % t.row_tiles * t.rows;
    task /= t.row_tiles;
    group_ = task % p_.groups;
    image_ = task / p_.groups;
    rows_ = std::min(t.rows, p_.out_height - y0_);
    cols_ = std::min(t.cols, p_.out_width - x0_);
  }

  void Run() {
    if (rows_ <= 0 || cols_ <= 0) return;
    const std::int64_t top = y0_ * p_.stride_h - p_.pad_top;
    const std::int64_t in_rows = plan_.tiling.in_rows;
    std::int64_t copied = 0;  // input rows, counted from `top`
    for (std::int64_t y = 0; y < rows_; ++y) {
      const std::int64_t first = y * p_.stride_h;
      for (copied = std::max(copied, first); copied < first + in_rows; ++copied) {
        CopyRow(top + copied, copied % in_rows);
      }
      for (std::int64_t c = 0; c < plan_.out_group; c += kPlanarChannels) {
        RunRow(y0_ + y, c, first % in_rows);
      }
    }
  }

 private:
  static constexpr hn::ScalableTag<float> kTag{};
  static constexpr std::int64_t kLanes = hn::MaxLanes(kTag);

  // Copies input row `y` to row `slot` of the copy; see conv_tiling.h.
  void CopyRow(std::int64_t y, std::int64_t slot) {
    if (y < 0 || y >= p_.in_height) return;  // such taps are left out by ValidTaps
    const std::int64_t count = plan_.tiling.phase_cols;
    for (std::int64_t phase = 0; phase < p_.stride_w; ++phase) {
      if (!PhaseIsRead(p_, phase)) continue;
      const PhaseColumns columns = ColumnsOfPhase(p_, x0_, phase, count);
      const Range inside = columns.inside;
      float* to = scratch_ + slot * plan_.row_stride + phase * count;
      for (std::int64_t c = 0; c < plan_.in_group; ++c) {
        float* plane = to + c * plan_.plane_stride;
        std::memset(plane, 0, inside.begin * sizeof(float));
        std::memset(plane + inside.end, 0, (count - inside.end) * sizeof(float));
      }
      const std::int64_t x = columns.first + inside.begin * p_.stride_w;
      const std::int64_t plane = p_.in_height * p_.in_width;
      const float* from = run_.inputs[0].data<float>() +
                          (image_ * p_.in_channels + group_ * plan_.in_group) * plane +
                          y * p_.in_width + x;
      to += inside.begin;
      for (std::int64_t c = 0; c < plan_.in_group; ++c, from += plane, to += plan_.plane_stride) {
        CopyStrided(kTag, from, p_.stride_w, inside.size(), to);
      }
    }
  }

  // Output row `y` of the channels of the group from `first` on, kPlanarChannels at most. The
  // first tap lies in row `slot` of the copy, whether inside of the image or not.
  void RunRow(std::int64_t y, std::int64_t first, std::int64_t slot) {
    const int channels =
        static_cast<int>(std::min<std::int64_t>(kPlanarChannels, plan_.out_group - first));
    const std::int64_t channel = group_ * plan_.out_group + first;
    const std::int64_t num_taps = p_.kernel_h * p_.kernel_w;
    float* sums = scratch_ + plan_.input_floats;

    const Range taps =
        ValidTaps(y, p_.stride_h, p_.pad_top, p_.dilation_h, p_.kernel_h, p_.in_height);
    PlanarTile tile;
    tile.taps = plan_.taps.data() + slot * num_taps + taps.begin * p_.kernel_w;
    tile.num_taps = taps.size() * p_.kernel_w;
    tile.channels = plan_.in_group;
    tile.plane_stride = plan_.plane_stride;
    tile.weights = plan_.weights->As<float>() + channel * num_taps * plan_.in_group +
                   taps.begin * p_.kernel_w * plan_.in_group * channels;
    tile.bias = plan_.operands.Bias() + channel;
    tile.out_stride = plan_.sums_stride;

    const std::int64_t vectors = (cols_ + kLanes - 1) / kLanes;
    const std::int64_t most = kPlanarVectors[channels - 1];
    const std::int64_t parts = (vectors + most - 1) / most;
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t v = vectors * i / parts;
      tile.in = scratch_ + v * kLanes;
      tile.out = sums + v * kLanes;
      FindPlanarTile(static_cast<int>(vectors * (i + 1) / parts - v), channels)(tile);
    }

    const bool add = p_.epilogue.combine != Combine::kNone;
    for (int c = 0; c < channels; ++c) {
      const std::int64_t offset =
          ((image_ * p_.out_channels + channel + c) * p_.out_height + y) * p_.out_width + x0_;
      FinishRow(kTag, p_.epilogue, hn::Set(kTag, plan_.operands.Slope()[channel + c]),
                sums + c * plan_.sums_stride,
                add ? run_.inputs[kConvAddend].data<float>() + offset : nullptr,
                run_.outputs[0].data<float>() + offset, cols_);
    }
  }

  const PlanarPlan& plan_;
  const ConvParams& p_;
  const RunContext& run_;
  float* scratch_;
  std::int64_t x0_, y0_, group_, image_, rows_, cols_;
};

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
