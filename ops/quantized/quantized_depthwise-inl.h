// The vector code of quantized_depthwise.h: interleaving, sums, and what becomes of them. A strip
// of a row at a time, so that all of it stays in the L1 cache. Included once per target.
#if defined(TESSERA_OPS_QUANTIZED_DEPTHWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_DEPTHWISE_INL_H_
#undef TESSERA_OPS_QUANTIZED_DEPTHWISE_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_DEPTHWISE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/quantized/quantized_depthwise.h"
#include "ops/quantized/quantized_epilogue-inl.h"
#include "simd/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// Without vectors there is nothing to interleave for.
inline void RunDepthwiseBandPlainly(const QuantizedDepthwisePlan& plan,
                                    const QuantizedDepthwiseBand& band) {
  const ConvParams& p = plan.params;
  const QuantizedEpilogue& e = plan.epilogue;
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  for (std::int64_t y = band.rows.begin; y < band.rows.end; ++y) {
    for (std::int64_t x = 0; x < p.out_width; ++x) {
      const std::int64_t at = (y - band.rows.begin) * plan.output.row_stride +  //
                              x * plan.output.pixel_stride;
      for (std::int64_t c = 0; c < p.out_channels; ++c) {
        const auto* w = plan.weights->data<const std::int8_t>() + c * taps;
        std::int32_t sum = e.Bias()[c];
        for (std::int64_t ky = 0; ky < p.kernel_h; ++ky) {
          const std::int64_t iy = y * p.stride_h - p.pad_top + ky * p.dilation_h;
          for (std::int64_t kx = 0; kx < p.kernel_w; ++kx, ++w) {
            const std::int64_t ix = x * p.stride_w - p.pad_left + kx * p.dilation_w;
            const bool inside = iy >= 0 && iy < p.in_height && ix >= 0 && ix < p.in_width;
            sum += *w *
                   (inside ? band.in[iy * plan.input.row_stride + ix * plan.input.pixel_stride + c]
                           : plan.x_zero_point);
          }
        }
        const std::uint8_t addend = band.addend == nullptr ? std::uint8_t{0} : band.addend[at + c];
        if (e.to_float) {
          const BlockedLayout& real = plan.real_output;  // of one lane
          band.real_out[c * real.plane_stride + y * real.row_stride + x] =
              e.ToFloat(sum, c, addend);
        } else {
          band.out[at + c] = e.ToByte(sum, c, addend);
        }
      }
    }
  }
}

#else  // HWY_TARGET

// The strip of one block of channels that is being computed.
struct DepthwiseStrip {
  const QuantizedDepthwisePlan& plan;
  const QuantizedDepthwiseBand& band;
  std::int64_t channel, channels;  // of the block
  std::int64_t x, pixels;          // output columns
  std::int64_t tiles;
  const std::uint8_t* weights;   // of the block
  const std::int32_t* operands;  // of the block
  std::uint8_t* zero_point;      // a pixel outside of the image
  std::uint8_t* quads;           // [slot][4 planes]
  std::int32_t* sums;            // [tile][4][4 vectors]

  std::int64_t quad_bytes() const { return channels; }  // in each plane
};

// Bytes of a plane.
template <class D>
constexpr std::int64_t PlaneBytes(D) {
  return kDepthwisePlaneVectors * static_cast<std::int64_t>(hn::MaxLanes(D()) * sizeof(int32_t));
}

// Four pixels of a block's channels to the four planes.
template <class D8>
HWY_INLINE void StoreQuadOfPixels(D8 d8, const std::uint8_t* p0, const std::uint8_t* p1,
                                  const std::uint8_t* p2, const std::uint8_t* p3,
                                  std::uint8_t* to) {
  const hn::Repartition<std::uint16_t, D8> d16;
  constexpr std::int64_t kPlane = PlaneBytes(hn::ScalableTag<std::int32_t>());
  const auto v0 = hn::LoadU(d8, p0), v1 = hn::LoadU(d8, p1);
  const auto v2 = hn::LoadU(d8, p2), v3 = hn::LoadU(d8, p3);
  const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, v0, v1));
  const auto high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, v0, v1));
  const auto low23 = hn::BitCast(d16, hn::InterleaveLower(d8, v2, v3));
  const auto high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, v2, v3));
  hn::StoreU(hn::BitCast(d8, hn::InterleaveLower(d16, low01, low23)), d8, to);
  hn::StoreU(hn::BitCast(d8, hn::InterleaveUpper(d16, low01, low23)), d8, to + kPlane);
  hn::StoreU(hn::BitCast(d8, hn::InterleaveLower(d16, high01, high23)), d8, to + 2 * kPlane);
  hn::StoreU(hn::BitCast(d8, hn::InterleaveUpper(d16, high01, high23)), d8, to + 3 * kPlane);
}

// Columns of an input row, for one block: column x is at data + x * step.
struct DepthwiseInputRow {
  const std::uint8_t* data;
  std::int64_t step;
};

inline DepthwiseInputRow InputRow(const DepthwiseStrip& s, std::int64_t y) {
  if (y < 0 || y >= s.plan.params.in_height) return {s.zero_point, 0};
  return {s.band.in + y * s.plan.input.row_stride + s.channel, s.plan.input.pixel_stride};
}

inline const std::uint8_t* InputPixel(const DepthwiseStrip& s, const DepthwiseInputRow& row,
                                      std::int64_t x) {
  return x < 0 || x >= s.plan.params.in_width ? s.zero_point : row.data + x * row.step;
}

// Row `row` of the grid of quads, from the strip's first column on.
template <class D8>
HWY_NOINLINE void InterleaveGridRow(D8 d8, const DepthwiseStrip& s, std::int64_t row,
                                    std::uint8_t* to) {
  const ConvParams& p = s.plan.params;
  const auto vectors = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<std::uint8_t>())) /
                       s.quad_bytes();  // quads in one
  const std::int64_t quads =
      s.tiles * kDepthwiseTile / s.plan.col_phases * vectors + s.plan.cols - 1;
  const std::int64_t y = 2 * row - p.pad_top, x = s.x * p.stride_w - p.pad_left;
  const DepthwiseInputRow r0 = InputRow(s, y), r1 = InputRow(s, y + 1);
  // Both columns of quads [begin, end) are inside of the image.
  const std::int64_t begin = std::clamp<std::int64_t>((1 - x) / 2, 0, quads);
  const std::int64_t end = std::clamp<std::int64_t>((p.in_width - x) / 2, begin, quads);
  const std::int64_t quad_bytes = s.quad_bytes();
  const auto at_border = [&](std::int64_t i) HWY_ATTR {
    const std::int64_t left = x + 2 * i;
    StoreQuadOfPixels(d8, InputPixel(s, r0, left), InputPixel(s, r0, left + 1),
                      InputPixel(s, r1, left), InputPixel(s, r1, left + 1), to + i * quad_bytes);
  };
  for (std::int64_t i = 0; i < begin; ++i) at_border(i);
  const std::uint8_t* a = r0.data + (x + 2 * begin) * r0.step;
  const std::uint8_t* b = r1.data + (x + 2 * begin) * r1.step;
  std::uint8_t* out = to + begin * quad_bytes;
  for (std::int64_t i = begin; i < end; ++i) {
    StoreQuadOfPixels(d8, a, a + r0.step, b, b + r1.step, out);
    a += 2 * r0.step;
    b += 2 * r1.step;
    out += quad_bytes;
  }
  for (std::int64_t i = end; i < quads; ++i) at_border(i);
}

// All quads of output row y, one slot for each four taps.
template <class D8>
HWY_NOINLINE void InterleaveTaps(D8 d8, const DepthwiseStrip& s, std::int64_t y) {
  const ConvParams& p = s.plan.params;
  constexpr std::int64_t kPlane = PlaneBytes(hn::ScalableTag<std::int32_t>());
  const std::int64_t taps = p.kernel_h * p.kernel_w;
  for (std::int64_t slot = 0; slot < s.plan.rows; ++slot) {
    for (std::int64_t i = 0; i < s.pixels; ++i) {
      const std::uint8_t* pixels[4];
      for (std::int64_t k = 0; k < 4; ++k) {
        const std::int64_t tap = std::min(4 * slot + k, taps - 1);  // others have zero weights
        const std::int64_t iy = y * p.stride_h - p.pad_top + tap / p.kernel_w * p.dilation_h;
        const std::int64_t ix =
            (s.x + i) * p.stride_w - p.pad_left + tap % p.kernel_w * p.dilation_w;
        pixels[k] = InputPixel(s, InputRow(s, iy), ix);
      }
      StoreQuadOfPixels(d8, pixels[0], pixels[1], pixels[2], pixels[3],
                        s.quads + slot * 4 * kPlane + i * s.quad_bytes());
    }
  }
}

// A row of windows in rows of quads.
struct QuadWindows {
  const std::uint8_t* quads;  // [slot][plane][quad]
  std::int64_t slot_bytes, plane_bytes, quad_bytes;
  std::int64_t first_slot;  // of the windows, which go on in the next one and, after the last, in 0
  std::int64_t rows, cols;  // of a window
  std::int64_t planes;
  std::int64_t tiles;           // kDepthwiseTile vectors of windows
  const std::uint8_t* weights;  // [plane][row][col phase][col][vector]
  const std::int32_t* bias;     // [plane][lane]
  std::int32_t* sums;           // [tile][kDepthwiseTile][plane][lane]
};

// kRows and kCols: size of a window, or 0 if that is known at run time only.
template <bool kVnni, int kRows, int kCols, int kPhases>
HWY_NOINLINE void SumRow(const QuadWindows& s) {
  const hn::ScalableTag<std::int32_t> d;
  using V = hn::Vec<decltype(d)>;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr std::int64_t kBytes = 4 * kLanes;
  constexpr int kSteps = static_cast<int>(kDepthwiseTile) / kPhases;
  const std::int64_t rows = kRows != 0 ? kRows : s.rows;
  const std::int64_t cols = kCols != 0 ? kCols : s.cols;
  const std::int64_t quad_bytes = s.quad_bytes;
  const auto load = [&](const void* from)
                        HWY_ATTR { return hn::LoadU(d, static_cast<const std::int32_t*>(from)); };
  const auto row_of = [&](std::int64_t r) {
    const std::int64_t slot = s.first_slot + r;
    return s.quads + (slot < rows ? slot : slot - rows) * s.slot_bytes;
  };
  const std::int64_t next_sum = s.planes * kLanes;
  for (std::int64_t j = 0; j < s.planes; ++j) {
    const V bias = hn::Load(d, s.bias + j * kLanes);
    const std::uint8_t* w = s.weights + j * rows * kPhases * cols * kBytes;
    std::int32_t* sums = s.sums + j * kLanes;
    if constexpr (kRows != 0) {
      V taps[kRows][kPhases][kCols];
      const std::uint8_t* in[kRows];
      for (int r = 0; r < kRows; ++r) {
        in[r] = row_of(r) + j * s.plane_bytes;
        for (int i = 0; i < kPhases; ++i) {
          for (int c = 0; c < kCols; ++c, w += kBytes) taps[r][i][c] = load(w);
        }
      }
      for (std::int64_t tile = 0; tile < s.tiles; ++tile) {
        V sum[kSteps][kPhases];
#pragma GCC unroll 4
        for (int k = 0; k < kSteps; ++k) {
#pragma GCC unroll 2
          for (int i = 0; i < kPhases; ++i) sum[k][i] = bias;
        }
#pragma GCC unroll 3
        for (int r = 0; r < kRows; ++r) {
          const std::uint8_t* from = in[r] + tile * kSteps * kBytes;
#pragma GCC unroll 3
          for (int c = 0; c < kCols; ++c, from += quad_bytes) {
#pragma GCC unroll 4
            for (int k = 0; k < kSteps; ++k) {
              const V v = load(from + k * kBytes);
#pragma GCC unroll 2
              for (int i = 0; i < kPhases; ++i) {
                sum[k][i] = DotBytes<kVnni>(d, sum[k][i], v, taps[r][i][c]);
              }
            }
          }
        }
#pragma GCC unroll 4
        for (int k = 0; k < kSteps; ++k) {
#pragma GCC unroll 2
          for (int i = 0; i < kPhases; ++i, sums += next_sum) hn::Store(sum[k][i], d, sums);
        }
      }
    } else {
      for (std::int64_t tile = 0; tile < s.tiles; ++tile, sums += kDepthwiseTile * next_sum) {
        V sum[kSteps][kPhases];
        for (int k = 0; k < kSteps; ++k) {
          for (int i = 0; i < kPhases; ++i) sum[k][i] = bias;
        }
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::uint8_t* from = row_of(r) + j * s.plane_bytes + tile * kSteps * kBytes;
          for (std::int64_t c = 0; c < cols; ++c, from += quad_bytes) {
#pragma GCC unroll 2
            for (int i = 0; i < kPhases; ++i) {
              const V tap = load(w + ((r * kPhases + i) * cols + c) * kBytes);
#pragma GCC unroll 4
              for (int k = 0; k < kSteps; ++k) {
                sum[k][i] = DotBytes<kVnni>(d, sum[k][i], load(from + k * kBytes), tap);
              }
            }
          }
        }
        for (int k = 0; k < kSteps; ++k) {
          for (int i = 0; i < kPhases; ++i) {
            hn::Store(sum[k][i], d, sums + (k * kPhases + i) * next_sum);
          }
        }
      }
    }
  }
}

// The sums of output row y, to bytes or to floats.
template <QuantizedForm kForm>
HWY_NOINLINE void FinishRow(const DepthwiseStrip& s, std::int64_t y) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<float, decltype(d)> df;
  using V = hn::Vec<decltype(d)>;
  using VF = hn::Vec<decltype(df)>;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const QuantizedDepthwisePlan& plan = s.plan;
  const QuantizedOutput<kForm> output(plan.epilogue);
  const std::int64_t phases = plan.col_phases;
  const std::int64_t pixels = kLanes > 4 ? 4 * kLanes / s.channels : 1;  // in one vector
  const std::int64_t at =
      (y - s.band.rows.begin) * plan.output.row_stride + s.x * plan.output.pixel_stride + s.channel;
  const auto* reals = reinterpret_cast<const float*>(s.operands);
  VF positive[4], negative[4];
  for (int j = 0; j < 4; ++j) {
    positive[j] = hn::Load(df, reals + (4 + j) * kLanes);
    negative[j] = hn::Load(df, reals + (8 + j) * kLanes);
  }
  // Copies the pixels of one vector from or to their places. `first` is the first one's column,
  // from the strip's.
  const auto each_pixel = [&](std::int64_t first, const auto& body) {
    for (std::int64_t u = 0; u < pixels; ++u) {
      const std::int64_t x = first + u * phases;
      if (x < s.pixels) body(x, u * s.channels);
    }
  };
  const auto copy = [&](const std::uint8_t* from, std::uint8_t* to) {
    if constexpr (kLanes > 8) {
      if (s.channels == 32) {
        std::memcpy(to, from, 32);
        return;
      }
    }
    std::memcpy(to, from, 16);
  };
  const std::int64_t count = s.tiles * kDepthwiseTile;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = i / phases * pixels * phases + i % phases;
    if (first >= s.pixels) continue;
    const std::int64_t place = at + first * plan.output.pixel_stride;
    HWY_ALIGN std::uint8_t bytes[4 * kLanes];
    V addend[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    if (kForm == QuantizedForm::kGeneral && s.band.addend != nullptr) {
      const std::uint8_t* from = s.band.addend + place;
      if (pixels > 1) {
        each_pixel(first, [&](std::int64_t x, std::int64_t j) {
          copy(s.band.addend + at + x * plan.output.pixel_stride, bytes + j);
        });
        from = bytes;
      }
      LoadQuad(d, from, addend[0], addend[1], addend[2], addend[3]);
    }
    const std::int32_t* sums = s.sums + i * 4 * kLanes;
    if (kForm == QuantizedForm::kGeneral && plan.epilogue.to_float) {
      HWY_ALIGN float values[4 * kLanes];
      for (int j = 0; j < 4; ++j) {
        hn::Store(
            output.Real(d, hn::Load(d, sums + j * kLanes), positive[j], negative[j], addend[j]), df,
            values + j * kLanes);
      }
      // Four channels at a time, which lie side by side in both orders.
      const BlockedLayout& real = plan.real_output;
      const std::int64_t channels = real.blocks * kLanes;
      for (std::int64_t k = 0; k < kLanes; ++k) {
        const std::int64_t plane = k % 4, part = k / 4, at_channel = 16 * part + 4 * plane;
        const std::int64_t c = s.channel + at_channel % s.channels;
        const std::int64_t x = first + at_channel / s.channels * phases;
        if (c >= channels || x >= s.pixels) continue;
        std::memcpy(s.band.real_out + c / kLanes * real.plane_stride + y * real.row_stride +
                        (s.x + x) * kLanes + c % kLanes,
                    values + plane * kLanes + part * 4, 4 * sizeof(float));
      }
      continue;
    }
    V v[4];
    for (int j = 0; j < 4; ++j) {
      v[j] = output.Round(d, hn::Load(d, sums + j * kLanes), positive[j], negative[j], addend[j]);
    }
    if (pixels == 1) {
      output.StoreQuad(d, v[0], v[1], v[2], v[3], s.band.out + place);
      continue;
    }
    output.StoreQuad(d, v[0], v[1], v[2], v[3], bytes);
    each_pixel(first, [&](std::int64_t x, std::int64_t j) {
      copy(bytes + j, s.band.out + at + x * plan.output.pixel_stride);
    });
  }
}

using DepthwiseSumRow = void (*)(const QuadWindows&);

template <bool kVnni>
DepthwiseSumRow ChooseSumRow(const QuantizedDepthwisePlan& plan) {
  const auto with_phases = [&](auto phases) -> DepthwiseSumRow {
    constexpr int kPhases = decltype(phases)::value;
    if (plan.rows == 2 && plan.cols == 2) return SumRow<kVnni, 2, 2, kPhases>;
    if (plan.rows == 3 && plan.cols == 3) return SumRow<kVnni, 3, 3, kPhases>;
    return SumRow<kVnni, 0, 0, kPhases>;
  };
  return plan.col_phases == 2 ? with_phases(std::integral_constant<int, 2>())
                              : with_phases(std::integral_constant<int, 1>());
}

inline void (*ChooseFinishRow(const QuantizedEpilogue& e))(const DepthwiseStrip&, std::int64_t) {
  return WithForm(e, [](auto form) { return &FinishRow<decltype(form)::value>; });
}

// The band's rows of one strip.
template <class D8>
void RunDepthwiseStrip(D8 d8, const DepthwiseStrip& s, DepthwiseSumRow sum_row,
                       void (*finish_row)(const DepthwiseStrip&, std::int64_t)) {
  constexpr std::int64_t kPlane = PlaneBytes(hn::ScalableTag<std::int32_t>());
  const QuantizedDepthwisePlan& plan = s.plan;
  QuadWindows windows = {.quads = s.quads,
                         .slot_bytes = 4 * kPlane,
                         .plane_bytes = kPlane,
                         .quad_bytes = s.quad_bytes(),
                         .first_slot = 0,
                         .rows = plan.rows,
                         .cols = plan.cols,
                         .planes = 4,
                         .tiles = s.tiles,
                         .weights = s.weights,
                         .bias = s.operands,
                         .sums = s.sums};
  if (!plan.grid) {
    for (std::int64_t y = s.band.rows.begin; y < s.band.rows.end; ++y) {
      InterleaveTaps(d8, s, y);
      sum_row(windows);
      finish_row(s, y);
    }
    return;
  }
  std::int64_t next = s.band.rows.begin * plan.params.stride_h / 2;  // row of the grid
  for (std::int64_t y = s.band.rows.begin; y < s.band.rows.end; ++y) {
    const std::int64_t first = y * plan.params.stride_h / 2;
    for (next = std::max(next, first); next < first + plan.rows; ++next) {
      InterleaveGridRow(d8, s, next, s.quads + next % plan.rows * 4 * kPlane);
    }
    const std::int64_t phase = y * plan.params.stride_h % 2;
    windows.weights = s.weights + phase * plan.PhaseWeightBytes();
    windows.first_slot = first % plan.rows;
    sum_row(windows);
    finish_row(s, y);
  }
}

template <bool kVnni>
void RunDepthwiseStrips(const QuantizedDepthwisePlan& plan, const QuantizedDepthwiseBand& band) {
  const hn::ScalableTag<std::uint8_t> d8;
  constexpr auto kBytes = static_cast<std::int64_t>(hn::MaxLanes(d8));
  const DepthwiseSumRow sum_row = ChooseSumRow<kVnni>(plan);
  const auto finish_row = ChooseFinishRow(plan.epilogue);

  auto* scratch = reinterpret_cast<std::uint8_t*>(band.scratch);
  std::uint8_t* const zero_point = scratch;
  std::memset(zero_point, plan.x_zero_point, kBytes);
  scratch += kAlignment;
  auto* const sums = reinterpret_cast<std::int32_t*>(scratch);
  scratch += plan.strip_tiles * kDepthwiseTile * 4 * kBytes;

  const std::int64_t width = plan.params.out_width;
  for (std::size_t b = 0; b < plan.blocks.size(); ++b) {
    const auto [channel, channels] = plan.blocks[b];
    const std::int64_t tile = kDepthwiseTile * kBytes / channels;  // pixels
    for (std::int64_t x = 0; x < width; x += plan.strip_tiles * tile) {
      const std::int64_t pixels = std::min(width - x, plan.strip_tiles * tile);
      const auto block = static_cast<std::int64_t>(b);
      const DepthwiseStrip strip = {
          .plan = plan,
          .band = band,
          .channel = channel,
          .channels = channels,
          .x = x,
          .pixels = pixels,
          .tiles = (pixels + tile - 1) / tile,
          .weights = plan.packed_weights->As<const std::uint8_t>() +
                     block * plan.row_phases * plan.PhaseWeightBytes(),
          .operands = plan.operands.As<const std::int32_t>() + block * 3 * kBytes,
          .zero_point = zero_point,
          .quads = scratch,
          .sums = sums};
      if (channels == kBytes) {
        RunDepthwiseStrip(d8, strip, sum_row, finish_row);
      } else if (channels == 32) {
        RunDepthwiseStrip(hn::CappedTag<std::uint8_t, 32>(), strip, sum_row, finish_row);
      } else {
        RunDepthwiseStrip(hn::CappedTag<std::uint8_t, 16>(), strip, sum_row, finish_row);
      }
    }
  }
}

#endif  // HWY_TARGET

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
