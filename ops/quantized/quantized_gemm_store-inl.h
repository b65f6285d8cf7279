// What becomes of the sums of a tile (quantized_gemm-inl.h): bytes or floats, in memory.
// Included once per target.
#if defined(TESSERA_OPS_QUANTIZED_GEMM_STORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_OPS_QUANTIZED_GEMM_STORE_INL_H_
#undef TESSERA_OPS_QUANTIZED_GEMM_STORE_INL_H_
#else
#define TESSERA_OPS_QUANTIZED_GEMM_STORE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "ops/quantized/quantized_epilogue-inl.h"
#include "ops/quantized/quantized_gemm-inl.h"
#include "ops/quantized/quantized_gemm.h"

HWY_BEFORE_NAMESPACE();
namespace tessera::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Pixels [first, first + pixels) of `row`, whose sums are [pixel][vector][lane].
struct TileSums {
  const QuantizedGemm& gemm;
  const QuantizedGroup& group;
  const QuantizedPixels& row;
  std::int64_t first;
  int pixels;
  const std::int32_t* sums;

  SumVector Sum(std::int64_t pixel, std::int64_t vector) const {
    return hn::LoadU(SumTag(), sums + (pixel * group.vectors + vector) * kSumLanes);
  }
  auto Factor(const float* of, std::int64_t vector) const {
    return hn::LoadU(hn::Rebind<float, SumTag>(), of + group.first_channel + vector * kSumLanes);
  }
  auto Positive(std::int64_t vector) const { return Factor(gemm.epilogue.Positive(), vector); }
  auto Negative(std::int64_t vector) const { return Factor(gemm.epilogue.Negative(), vector); }
  // In natural order; 0 if there is none.
  SumVector Addend(std::int64_t pixel, std::int64_t vector) const {
    if (row.addend == nullptr) return hn::Zero(SumTag());
    const std::uint8_t* at = row.addend + (first + pixel) * row.addend_stride;
    const std::int64_t channel = group.first_channel + vector * kSumLanes;
    if (gemm.out_channels > 4) return LoadBytes(SumTag(), at + channel);
    std::uint8_t few[16] = {};
    if (channel < 4) std::memcpy(few, at + channel, static_cast<std::size_t>(4 - channel));
    return LoadBytes(SumTag(), few);
  }
  std::uint8_t* Bytes(std::int64_t pixel) const {
    return static_cast<std::uint8_t*>(row.out) + (first + pixel) * row.out_stride +
           group.first_channel;
  }
};

// Groups of four vectors, in quad order.
template <QuantizedForm kForm>
void StoreQuads(const TileSums& t) {
  const SumTag d;
  const QuantizedOutput<kForm> output(t.gemm.epilogue);
  const auto p0 = t.Positive(0), p1 = t.Positive(1), p2 = t.Positive(2), p3 = t.Positive(3);
  const auto n0 = t.Negative(0), n1 = t.Negative(1), n2 = t.Negative(2), n3 = t.Negative(3);
  SumVector a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  for (int i = 0; i < t.pixels; ++i) {
    if (kForm == QuantizedForm::kGeneral && t.row.addend != nullptr) {
      LoadQuad(d, t.row.addend + (t.first + i) * t.row.addend_stride + t.group.first_channel, a0,
               a1, a2, a3);
    }
    output.StoreQuad(d, output.Round(d, t.Sum(i, 0), p0, n0, a0),
                     output.Round(d, t.Sum(i, 1), p1, n1, a1),
                     output.Round(d, t.Sum(i, 2), p2, n2, a2),
                     output.Round(d, t.Sum(i, 3), p3, n3, a3), t.Bytes(i));
  }
}

#if HWY_TARGET == HWY_AVX3
// Up to three vectors, in natural order.
template <QuantizedForm kForm>
void StoreFours(const TileSums& t) {
  const SumTag d;
  const QuantizedOutput<kForm> output(t.gemm.epilogue);
  const std::int64_t stride = t.row.out_stride;
  const bool has_addend = kForm == QuantizedForm::kGeneral && t.row.addend != nullptr;
  for (int v = 0; v < t.group.vectors; ++v) {
    const auto positive = t.Positive(v), negative = t.Negative(v);
    std::uint8_t* const out = t.Bytes(0) + v * kSumLanes;
    const std::uint8_t* const addend = has_addend ? t.row.addend + t.first * t.row.addend_stride +
                                                        t.group.first_channel + v * kSumLanes
                                                  : nullptr;
    const auto round = [&](int i) HWY_ATTR {
      return output.Round(
          d, t.Sum(i, v), positive, negative,
          has_addend ? LoadBytes(d, addend + i * t.row.addend_stride) : hn::Zero(d));
    };
    for (int i = 0; i < t.pixels; i += 4) {
      if (t.pixels < 4) {
        for (int j = 0; j < t.pixels; ++j) output.Store(d, round(j), out + j * stride);
        break;
      }
      i = std::min(i, t.pixels - 4);  // the last four may repeat pixels
      output.StoreFour(d, round(i), round(i + 1), round(i + 2), round(i + 3), out + i * stride,
                       stride);
    }
  }
}
#endif

#if HWY_TARGET == HWY_AVX2
// Two vectors, in natural order.
template <QuantizedForm kForm>
void StorePairs(const TileSums& t) {
  const SumTag d;
  const hn::Repartition<std::uint8_t, SumTag> d8;
  const hn::Half<decltype(d8)> half;
  const QuantizedOutput<kForm> output(t.gemm.epilogue);
  const auto p0 = t.Positive(0), p1 = t.Positive(1), n0 = t.Negative(0), n1 = t.Negative(1);
  // Two pixels are packed at a time, which leaves their bytes mixed by fours.
  alignas(32) constexpr std::int32_t kOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  const auto order = hn::SetTableIndices(d, kOrder);
  alignas(32) std::uint8_t bytes[32];
  for (int i = 0; i < t.pixels; i += 2) {
    const int j = std::min(i + 1, t.pixels - 1);
    output.StoreQuad(d, output.Round(d, t.Sum(i, 0), p0, n0, t.Addend(i, 0)),
                     output.Round(d, t.Sum(i, 1), p1, n1, t.Addend(i, 1)),
                     output.Round(d, t.Sum(j, 0), p0, n0, t.Addend(j, 0)),
                     output.Round(d, t.Sum(j, 1), p1, n1, t.Addend(j, 1)), bytes);
    const auto sorted =
        hn::BitCast(d8, hn::TableLookupLanes(hn::BitCast(d, hn::Load(d8, bytes)), order));
    hn::StoreU(hn::LowerHalf(half, sorted), half, t.Bytes(i));
    hn::StoreU(hn::UpperHalf(half, sorted), half, t.Bytes(j));
  }
}
#endif

// Four bytes a pixel.
template <QuantizedForm kForm>
void StoreFewBytes(const TileSums& t) {
  const SumTag d;
  const QuantizedOutput<kForm> output(t.gemm.epilogue);
  std::uint8_t bytes[16] = {};
  for (int i = 0; i < t.pixels; ++i) {
    for (std::int64_t v = 0; v * kSumLanes < 4 && v < t.group.vectors; ++v) {
      output.Store(d, output.Round(d, t.Sum(i, v), t.Positive(v), t.Negative(v), t.Addend(i, v)),
                   bytes + v * kSumLanes);
    }
    if (t.group.first_channel == 0) std::memcpy(t.Bytes(i), bytes, 4);
  }
}

// float32, natural order; in vectors.
template <bool kHasAddend>
void StoreFloats(const TileSums& t) {
  const SumTag d;
  const hn::Rebind<float, SumTag> df;
  const QuantizedOutput<QuantizedForm::kGeneral> output(t.gemm.epilogue);
  const std::int64_t stride = t.row.out_stride;
  for (int v = 0; v < t.group.vectors; ++v) {
    const std::int64_t channel = t.group.first_channel + v * kSumLanes;
    if (channel >= t.gemm.out_channels) break;
    const auto positive = t.Positive(v), negative = t.Negative(v);
    float* out = static_cast<float*>(t.row.out) + t.first * stride +
                 channel / kSumLanes * t.row.plane_stride;
    for (int i = 0; i < t.pixels; ++i, out += stride) {
      const auto addend = kHasAddend ? t.Addend(i, v) : hn::Zero(d);
      hn::StoreU(output.Real(d, t.Sum(i, v), positive, negative, addend), df, out);
    }
  }
}

// The same in planes.
inline void StorePlanes(const TileSums& t) {
  const SumTag d;
  const hn::Rebind<float, SumTag> df;
  const QuantizedOutput<QuantizedForm::kGeneral> output(t.gemm.epilogue);
  for (int v = 0; v < t.group.vectors; ++v) {
    const std::int64_t channel = t.group.first_channel + v * kSumLanes;
    const std::int64_t channels = std::min(t.gemm.out_channels - channel, kSumLanes);
    if (channels <= 0) break;
    const auto positive = t.Positive(v), negative = t.Negative(v);
    for (int i = 0; i < t.pixels; ++i) {
      HWY_ALIGN float lanes[kSumLanes];
      hn::Store(output.Real(d, t.Sum(i, v), positive, negative, t.Addend(i, v)), df, lanes);
      float* out = static_cast<float*>(t.row.out) + (t.first + i) * t.row.out_stride;
      for (std::int64_t c = 0; c < channels; ++c) {
        out[(channel + c) * t.row.plane_stride] = lanes[c];
      }
    }
  }
}

using StoreFn = void (*)(const TileSums&);

template <QuantizedForm kForm>
StoreFn FindStoreOfForm(QuantizedStore store, int vectors) {
  if (store == QuantizedStore::kFewBytes) return StoreFewBytes<kForm>;
#if HWY_TARGET == HWY_AVX2
  if (vectors == 2) return StorePairs<kForm>;
#endif
#if HWY_TARGET == HWY_AVX3
  if (vectors < 4) return StoreFours<kForm>;
#endif
  static_cast<void>(vectors);
  return StoreQuads<kForm>;
}

inline StoreFn FindStore(const QuantizedGemm& gemm, int vectors) {
  if (gemm.store == QuantizedStore::kPlanes) return StorePlanes;
  if (gemm.store == QuantizedStore::kFloats) {
    return gemm.epilogue.has_addend ? StoreFloats<true> : StoreFloats<false>;
  }
  return WithForm(gemm.epilogue, [&](auto form) -> StoreFn {
    return FindStoreOfForm<decltype(form)::value>(gemm.store, vectors);
  });
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
