// The convolution of 8-bit integers with sums in int32: what ConvInteger and QLinearConv share.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "ops/op.h"
#include "ops/window.h"
#include "simd/aligned_buffer.h"

namespace tessera {

// X [N, C, spatial...] with W [M, C / group, spatial...], any number of spatial axes.
struct IntegerConvParams {
  std::int64_t batch, in_channels, out_channels, groups;
  // At least one. Neighbours along which nothing but pixels is enumerated (kernel 1, stride 1, no
  // pads) are merged.
  std::vector<WindowAxis> axes;

  std::int64_t in_pixels() const;
  std::int64_t out_pixels() const;
  std::int64_t taps() const;
  // Products that an output element is the sum of.
  std::int64_t depth() const { return in_channels / groups * taps(); }
  double Flops() const;
};

// Throws Error for what does not fit together.
IntegerConvParams ReadIntegerConvParams(const OpNode& node, const Shape& x, const Shape& w);

// sums[n, m, pixel] = sum over channels and taps of (x - x_zero_point) * (w - w_zero_point[m]),
// where x is x_zero_point outside of the picture; int32 that wraps around.
struct IntegerConvOperands {
  TensorView x, w;          // int8 or uint8
  TensorView x_zero_point;  // one element; absent: 0
  TensorView w_zero_point;  // one element, or one for each output channel; absent: 0
};

// Takes n sums, of the pixels from `pixel` on of plane image * M + channel. Called once for each
// output element, from several threads at a time.
using TakeSums = FunctionRef<void(std::int64_t plane, std::int64_t channel, std::int64_t pixel,
                                  const std::int32_t* sums, std::int64_t n)>;

class IntegerConv {
 public:
  virtual ~IntegerConv() = default;
  virtual std::string_view name() const = 0;
  virtual std::size_t ScratchBytesPerThread() const = 0;
  virtual void Run(const IntegerConvOperands& operands, const RunContext& context,
                   TakeSums take) const = 0;
};

// Plain loops in the order of the definition.
std::unique_ptr<IntegerConv> MakeReferenceIntegerConv(const IntegerConvParams& params);

// Products of packed weights with tiles of columns, each holding what an output pixel is the sum of
// (ops/integer_product.h). `w_zero_point` may be null. Both are constants.
std::unique_ptr<IntegerConv> MakeIntegerConv(const IntegerConvParams& params,
                                             const std::shared_ptr<const Tensor>& w,
                                             const std::shared_ptr<const Tensor>& w_zero_point,
                                             PackCache& packs);

}  // namespace tessera
