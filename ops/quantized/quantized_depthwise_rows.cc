// Depthwise convolution of bytes, row by row; see quantized_depthwise.h.
#include <algorithm>
#include <cstring>

#include "ops/quantized/quantized_depthwise.h"
#include "simd/cpu_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_depthwise_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantized/quantized_depthwise-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

void RunQuantizedDepthwiseBandOfTarget(const QuantizedDepthwisePlan& plan,
                                       const QuantizedDepthwiseBand& band) {
#if HWY_TARGET == HWY_SCALAR
  RunDepthwiseBandPlainly(plan, band);
#else
  if constexpr (kTargetHasVnni) {
    if (HasVnni()) return RunDepthwiseStrips<true>(plan, band);
  }
  RunDepthwiseStrips<false>(plan, band);
#endif
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {
namespace {
HWY_EXPORT(RunQuantizedDepthwiseBandOfTarget);
}  // namespace

void RunQuantizedDepthwiseBand(const QuantizedDepthwisePlan& plan,
                               const QuantizedDepthwiseBand& band) {
  HWY_DYNAMIC_DISPATCH(RunQuantizedDepthwiseBandOfTarget)(plan, band);
}

}  // namespace tessera
#endif  // HWY_ONCE
