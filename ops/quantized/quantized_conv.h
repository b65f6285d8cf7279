// QuantizedConv: a convolution of uint8 with int8 weights, with sums in int32, that gives uint8 or
// float32. Passes make it of QLinearConv and of DequantizeLinear -> Conv -> QuantizeLinear.
//
//   inputs:     X uint8 [N, C, H, W], or float32, which is quantised first as by QuantizeLinear
//               with "x_scale" and "x_zero_point"; W int8 [M, C / group, KH, KW], W's scales
//               float32 [1] or [M], bias int32 [M] (optional), slope float32 [1] or [M] (kPRelu),
//               addend uint8 of the output's shape (optional)
//   attributes: those of Conv, "activation" and its operands as FusedConv has them
//               (ops/epilogue.h; kNone, kRelu, kLeakyRelu, kPRelu, kClip and kHardSwish alone),
//               "x_scale", "x_zero_point", "addend_scale", "addend_zero_point",
//               "y_scale", "y_zero_point"; without "y_scale" the output is float32
//
// Every kernel computes these numbers, in float32 without fused multiply-adds, to the bit:
//   sum = bias + sum of (x - x_zero_point) * w           int32; x is its zero point outside of X
// To uint8, without addend:
//   v = sum * (sum < 0 ? negative : positive)            positive = x_scale * w_scale / y_scale,
//                                                        negative = positive * slope
//   v = sum * positive * clamp(sum * negative + 0.5, 0, 1)    for kHardSwish, where
//                                                        negative = x_scale * w_scale / 6
//   y = clamp(round(v) + y_zero_point, lowest, highest)  bounds: 0, 255, and those of kRelu, kClip
// Otherwise:
//   r = sum * (sum < 0 ? negative : positive)            the same without y_scale
//   r = clamp(r, alpha, beta) for kRelu and kClip; r * clamp(r * (1 / 6) + 0.5, 0, 1) for
//   kHardSwish r = r + (addend - addend_zero_point) * addend_scale y = r, or clamp(round(r * (1 /
//   y_scale)) + y_zero_point, 0, 255)
// round() is half to even, and clamp() gives the upper bound where it is below the lower one; slope
// is 1 but for kLeakyRelu and kPRelu. Of NaN the byte is the lowest.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "ops/conv.h"
#include "simd/aligned_buffer.h"

namespace tessera {

inline constexpr std::size_t kQuantizedWeights = 1, kQuantizedWeightScale = 2, kQuantizedBias = 3,
                             kQuantizedSlope = 4, kQuantizedAddend = 5;

// Scale and zero point of a uint8 tensor: real = (q - zero_point) * scale.
struct Quantization {
  float scale = 1;
  std::int32_t zero_point = 0;

  bool operator==(const Quantization&) const = default;
};

// Attributes PREFIX_scale (1) and PREFIX_zero_point (0). Throws Error for a zero point that is no
// uint8.
Quantization ReadQuantization(const OpNode& node, std::string_view prefix);
void WriteQuantization(const Quantization& q, std::string_view prefix, Attributes& attributes);

// Whether QuantizedConv has it.
bool IsIntegerActivation(Activation activation);

struct QuantizedConvParams {
  ConvParams conv;  // with the activation
  Quantization x, y, addend;
  bool from_float = false;  // x is float32
  bool to_float = false;    // y is float32
  bool has_addend = false;
};

// Throws Error for what does not fit together and for activations other than those above.
QuantizedConvParams ReadQuantizedConv(const OpNode& node, const Shape& x, const Shape& w,
                                      bool has_addend);

// Whether kernels quantise a float32 X, row-major, as they read it: where it has up to 4 channels.
bool CanQuantizeInput(const ConvParams& conv);

// Constant operands; bias and slope may be null.
struct QuantizedConvConstants {
  std::shared_ptr<const Tensor> weights, weight_scale, bias, slope;
};

// What a kernel does to its sums: the cases that kernels are compiled for.
enum class QuantizedForm : std::uint8_t {
  kLinear,         // to bytes, without slope; saturation alone bounds them
  kOffset,         // the same with a zero point of 0, of sums that begin at kSumOffset
  kSlope,          // to bytes, with slopes or other bounds
  kHardSwish,      // to bytes; saturation alone bounds them
  kWideHardSwish,  // to bytes, with multipliers of 1 and more
  kGeneral,        // with an addend or to float32: the second way above
};

// The bits of 2^23 as a float. Up to 2^23, a sum of integers that begins with them is, as a float,
// 2^23 + sum; one below 0 is some number below 2^23.
inline constexpr std::int32_t kSumOffset = 0x4B000000;

// What a kernel does to its sums, from the parameters above. Channels from M to `padded_channels`
// are 0.
struct QuantizedEpilogue {
  QuantizedEpilogue(const QuantizedConvParams& params, const QuantizedConvConstants& constants,
                    std::int64_t padded_channels);

  // For kernels on AVX-512 whose sums begin with the bias: kLinear becomes kOffset where that gives
  // the same bytes. With 2^23 in all sums, they need no conversion: fma(2^23 + sum, positive, -2^23
  // * positive) is sum * positive, rounded once, as 2^23 * positive is exact. What is below 0 stays
  // there, and saturates.
  void OffsetSums();

  AlignedBuffer bias;                // int32: bias - x_zero_point * sum of the channel's weights,
                                     // so that kernels sum x * w; kOffset: + kSumOffset
  AlignedBuffer positive, negative;  // float32, see above; kOffset: negative = 2^23 * positive
  QuantizedForm form;
  std::int32_t lowest, highest;  // of y, 0 to 255
  float clip_low, clip_high;     // of r, second form
  bool is_hard_swish, to_float, has_addend;
  bool can_offset;        // all sums are far enough from the ends of kOffset's range
  float inverse_y_scale;  // 1 / y_scale
  std::int32_t y_zero_point;
  Quantization addend;

  const std::int32_t* Bias() const { return bias.As<std::int32_t>(); }
  const float* Positive() const { return positive.As<float>(); }
  const float* Negative() const { return negative.As<float>(); }

  // The definition, for one element; `sum` includes bias. Not after OffsetSums.
  std::uint8_t ToByte(std::int32_t sum, std::int64_t channel, std::uint8_t addend_value) const;
  float ToFloat(std::int32_t sum, std::int64_t channel, std::uint8_t addend_value) const;
};

// The order of channels in which four vectors of int32 become bytes without a permutation: within
// each 128 bits of the bytes, four channels of each vector. Gives the channel, from the first of a
// group of 4 * lanes, of lane `lane` of vector `vector` (0 to 3).
constexpr std::int64_t QuadOrder(std::int64_t lanes, std::int64_t vector, std::int64_t lane) {
  const std::int64_t block = lanes < 4 ? lanes : 4;
  return lane / block * 4 * block + vector * block + lane % block;
}

// Kernels. Inputs at run time are those of the operator.

// Plain loops, row-major, every parameter.
std::unique_ptr<Kernel> MakeReferenceQuantizedConv(const QuantizedConvParams& params,
                                                   const QuantizedConvConstants& constants);

// One group, any kernel, stride, dilation and pads: a matrix product of pixels, whose channels lie
// side by side, with packed weights. X and the addend channels-last, float32 X (CanQuantizeInput)
// row-major; Y channels-last, or float32
// in `output_layout`.
std::unique_ptr<Kernel> MakeQuantizedGemmConv(const QuantizedConvParams& params,
                                              const QuantizedConvConstants& constants,
                                              Layout output_layout, PackCache& packs);

// As many groups as channels, in and out; channels-last, a float32 result in Layout::kBlocked.
std::unique_ptr<Kernel> MakeQuantizedDepthwiseConv(const QuantizedConvParams& params,
                                                   const QuantizedConvConstants& constants,
                                                   PackCache& packs);

}  // namespace tessera
