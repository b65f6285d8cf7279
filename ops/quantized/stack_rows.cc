#include "ops/quantized/stack_rows.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantized/stack_rows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A vector of each row.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void StoreStacked(D d, V v0, V v1, V v2, std::uint32_t* out) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(v0) == 64) {
    // Of 16 lanes of the result each: two rows first, then the third; lanes of the second operand
    // are 16 and more.
    constexpr auto store = [](V a, V b, V c, __m512i order, __m512i third,
                              std::uint32_t* to) HWY_ATTR {
      const __m512i two = _mm512_permutex2var_epi32(a.raw, order, b.raw);
      _mm512_storeu_si512(to, _mm512_permutex2var_epi32(two, third, c.raw));
    };
    store(v0, v1, v2, _mm512_setr_epi32(0, 16, 0, 1, 17, 0, 2, 18, 0, 3, 19, 0, 4, 20, 0, 5),
          _mm512_setr_epi32(0, 1, 16, 3, 4, 17, 6, 7, 18, 9, 10, 19, 12, 13, 20, 15), out);
    store(v0, v1, v2, _mm512_setr_epi32(21, 0, 6, 22, 0, 7, 23, 0, 8, 24, 0, 9, 25, 0, 10, 26),
          _mm512_setr_epi32(0, 21, 2, 3, 22, 5, 6, 23, 8, 9, 24, 11, 12, 25, 14, 15), out + 16);
    store(v0, v1, v2, _mm512_setr_epi32(0, 11, 27, 0, 12, 28, 0, 13, 29, 0, 14, 30, 0, 15, 31, 0),
          _mm512_setr_epi32(26, 1, 2, 27, 4, 5, 28, 7, 8, 29, 10, 11, 30, 13, 14, 31), out + 32);
    return;
  }
#endif
  hn::StoreInterleaved3(v0, v1, v2, d, out);
}

void StackOfTarget(const std::uint8_t* const (&rows)[StackedRows::kRows], std::int64_t pixels,
                   std::uint8_t* out) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (pixels < lanes) {
    for (std::int64_t x = 0; x < pixels; ++x) {
      for (const std::uint8_t* row : rows) {
        std::memcpy(out, row + x * StackedRows::kPixelBytes, StackedRows::kPixelBytes);
        out += StackedRows::kPixelBytes;
      }
    }
    return;
  }
  for (std::int64_t x = 0; x < pixels; x += lanes) {
    x = std::min(x, pixels - lanes);  // the last vectors may repeat pixels
    const auto load = [&](int row) HWY_ATTR {
      return hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(rows[row]) + x);
    };
    StoreStacked(d, load(0), load(1), load(2),
                 reinterpret_cast<std::uint32_t*>(out + x * StackedRows::kBytes));
  }
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera {

HWY_EXPORT(StackOfTarget);

void StackRows(const std::uint8_t* const (&rows)[StackedRows::kRows], std::int64_t pixels,
               std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(StackOfTarget)(rows, pixels, out);
}

}  // namespace tessera
#endif  // HWY_ONCE
