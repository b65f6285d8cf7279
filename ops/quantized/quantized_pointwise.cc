#include "ops/quantized/quantized_pointwise.h"

#include "ops/quantized/quantized_gemm.h"

namespace tessera {

struct QuantizedPointwisePlan {
  QuantizedGemm gemm;
};

std::shared_ptr<const QuantizedPointwisePlan> MakeQuantizedPointwisePlan(
    const QuantizedConvParams& params, const QuantizedConvConstants& constants, PackCache& packs) {
  const ConvParams& p = params.conv;
  Require(p.groups * p.kernel_h * p.kernel_w == 1, "a convolution that is not pointwise");
  Require(!params.to_float, "a pointwise convolution to float32");
  const auto store = p.out_channels <= 4 ? QuantizedStore::kFewBytes : QuantizedStore::kBytes;
  const std::int64_t quads = (p.in_channels + 3) / 4;
  return std::make_shared<QuantizedPointwisePlan>(QuantizedPointwisePlan{
      QuantizedGemm(params, constants, store, {1, quads, 1, quads * 4}, packs)});
}

void RunQuantizedPointwise(const QuantizedPointwisePlan& plan, const std::uint8_t* in,
                           std::int64_t in_pixel_stride, std::int64_t pixels,
                           const std::uint8_t* addend, std::uint8_t* out,
                           std::int64_t out_pixel_stride) {
  constexpr std::ptrdiff_t kSegment = 0;
  RunQuantizedPixels(plan.gemm, {
                                    .in = in,
                                    .in_stride = in_pixel_stride,
                                    .segments = &kSegment,
                                    .count = pixels,
                                    .addend = addend,
                                    .addend_stride = out_pixel_stride,
                                    .out = out,
                                    .out_stride = out_pixel_stride,
                                    .plane_stride = 0,
                                });
}

}  // namespace tessera
