#include <algorithm>

#include "ops/quantized/quantized_binary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/quantized_binary_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"
#include "ops/quantize-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// float(bytes - zero_point)
template <class D>
HWY_INLINE hn::Vec<D> LoadReal(D d, const std::uint8_t* bytes, std::int32_t zero_point) {
  const hn::RebindToSigned<D> di;
  const hn::Rebind<std::uint8_t, D> d8;
  const auto value = hn::PromoteTo(di, hn::LoadU(d8, bytes));
  return hn::ConvertTo(d, hn::Sub(value, hn::Set(di, zero_point)));
}

void AddOfTarget(const QuantizedAddParams& p, const std::uint8_t* a, const std::uint8_t* b,
                 std::uint8_t* out, std::int64_t n) {
  ForVectors(n, [=](auto d, std::int64_t i) HWY_ATTR {
    const Saturation<std::uint8_t, decltype(d)> saturation(d, p.y_zero_point, p.y_min, p.y_max);
    const auto va = hn::Mul(LoadReal(d, a + i, p.a_zero_point), hn::Set(d, p.a_factor));
    const auto vb = hn::Mul(LoadReal(d, b + i, p.b_zero_point), hn::Set(d, p.b_factor));
    saturation.Store(hn::Add(va, vb), out + i);
  });
}

void ScaleOfTarget(const QuantizedScaleParams& p, const std::uint8_t* in, const float* factors,
                   std::int64_t period, std::uint8_t* out, std::int64_t n) {
  for (std::int64_t first = 0; first < n; first += period == 1 ? n : period) {
    const std::int64_t count = period == 1 ? n : std::min(period, n - first);
    ForVectors(count, [=](auto d, std::int64_t i) HWY_ATTR {
      const Saturation<std::uint8_t, decltype(d)> saturation(d, p.y_zero_point);
      const auto factor = period == 1 ? hn::Set(d, *factors) : hn::LoadU(d, factors + i);
      const auto x = LoadReal(d, in + first + i, p.x_zero_point);
      saturation.Store(hn::Mul(x, factor), out + first + i);
    });
  }
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(AddOfTarget);
HWY_EXPORT(ScaleOfTarget);

void AddByteRow(const QuantizedAddParams& p, const std::uint8_t* a, const std::uint8_t* b,
                std::uint8_t* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddOfTarget)(p, a, b, out, n);
}

void ScaleByteRow(const QuantizedScaleParams& p, const std::uint8_t* in, const float* factors,
                  std::int64_t period, std::uint8_t* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(ScaleOfTarget)(p, in, factors, period, out, n);
}

}  // namespace tessera
#endif  // HWY_ONCE
