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

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Fewer, in natural order: four vectors of one or more pixels are packed at a time, which leaves
// their bytes mixed by fours.
template <QuantizedForm kForm, int kVectors>
void StoreFewVectors(const TileSums& t) {
  const SumTag d;
  const hn::Repartition<std::uint8_t, SumTag> d8;
  const QuantizedOutput<kForm> output(t.gemm.epilogue);
  constexpr std::int64_t kBlocks = kSumLanes / 4;
  alignas(64) std::int32_t order[kSumLanes];
  for (std::int64_t vector = 0; vector < 4; ++vector) {
    for (std::int64_t block = 0; block < kBlocks; ++block) {
      order[vector * kBlocks + block] = static_cast<std::int32_t>(block * 4 + vector);
    }
  }
  const auto indices = hn::SetTableIndices(d, order);
  const bool contiguous = t.row.out_stride == kVectors * kSumLanes;
  const int count = t.pixels * kVectors;
  alignas(64) std::uint8_t bytes[4 * kSumLanes];
  for (int i = 0; i < count; i += 4) {
    const auto round = [&](int j) HWY_ATTR {
      const int at = std::min(i + j, count - 1), pixel = at / kVectors, vector = at % kVectors;
      return output.Round(d, hn::LoadU(d, t.sums + at * kSumLanes), t.Positive(vector),
                          t.Negative(vector),
                          kForm == QuantizedForm::kGeneral ? t.Addend(pixel, vector) : hn::Zero(d));
    };
    output.StoreQuad(d, round(0), round(1), round(2), round(3), bytes);
    const auto sorted =
        hn::BitCast(d8, hn::TableLookupLanes(hn::BitCast(d, hn::Load(d8, bytes)), indices));
    if (contiguous && i + 4 <= count) {
      hn::StoreU(sorted, d8, t.Bytes(0) + i * kSumLanes);
      continue;
    }
    hn::Store(sorted, d8, bytes);
    for (int j = 0; j < std::min(4, count - i); ++j) {
      std::memcpy(t.Bytes((i + j) / kVectors) + (i + j) % kVectors * kSumLanes,
                  bytes + j * kSumLanes, kSumLanes);
    }
  }
}
#endif

// Four bytes a pixel.
template <QuantizedForm kForm>
void StoreFewBytes(const TileSums& t) {
  const SumTag d;
  const QuantizedOutput<kForm> output(t.gemm.epilogue);
  std::uint8_t bytes[16];
  for (int i = 0; i < t.pixels; ++i) {
    for (std::int64_t v = 0; v * kSumLanes < 4 && v < t.group.vectors; ++v) {
      output.Store(d, output.Round(d, t.Sum(i, v), t.Positive(v), t.Negative(v), t.Addend(i, v)),
                   bytes + v * kSumLanes);
    }
    if (t.group.first_channel == 0) std::memcpy(t.Bytes(i), bytes, 4);
  }
}

// float32, natural order.
inline void StoreFloats(const TileSums& t) {
  const SumTag d;
  const hn::Rebind<float, SumTag> df;
  const QuantizedOutput<QuantizedForm::kGeneral> output(t.gemm.epilogue);
  for (int v = 0; v < t.group.vectors; ++v) {
    const std::int64_t channel = t.group.first_channel + v * kSumLanes;
    const std::int64_t channels = std::min(t.gemm.out_channels - channel, kSumLanes);
    if (channels <= 0) break;
    const auto positive = t.Positive(v), negative = t.Negative(v);
    for (int i = 0; i < t.pixels; ++i) {
      const auto real = output.Real(d, t.Sum(i, v), positive, negative, t.Addend(i, v));
      float* out = static_cast<float*>(t.row.out) + (t.first + i) * t.row.out_stride;
      if (t.gemm.store == QuantizedStore::kFloats) {
        hn::StoreU(real, df, out + channel / kSumLanes * t.row.plane_stride);
        continue;
      }
      HWY_ALIGN float lanes[kSumLanes];
      hn::Store(real, df, lanes);
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
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  if (vectors == 2) return StoreFewVectors<kForm, 2>;
#endif
#if HWY_TARGET == HWY_AVX3
  if (vectors == 1) return StoreFewVectors<kForm, 1>;
  if (vectors == 3) return StoreFewVectors<kForm, 3>;
#endif
  static_cast<void>(vectors);
  return StoreQuads<kForm>;
}

inline StoreFn FindStore(const QuantizedGemm& gemm, int vectors) {
  if (gemm.store == QuantizedStore::kFloats || gemm.store == QuantizedStore::kPlanes) {
    return StoreFloats;
  }
  if (!gemm.epilogue.is_linear) {
    return FindStoreOfForm<QuantizedForm::kGeneral>(gemm.store, vectors);
  }
  if (gemm.epilogue.has_slope) {
    return FindStoreOfForm<QuantizedForm::kSlope>(gemm.store, vectors);
  }
  return FindStoreOfForm<QuantizedForm::kLinear>(gemm.store, vectors);
}

}  // namespace tessera::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
