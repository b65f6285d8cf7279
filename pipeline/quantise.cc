#include "pipeline/quantise.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace tessera {
namespace {

std::uint32_t IsBad(float v) {
  constexpr std::uint32_t kExponent = 0x7F800000;
  return (std::bit_cast<std::uint32_t>(v) & kExponent) == kExponent ? 1 : 0;
}

float Clamp(float v) { return v < 0 ? 0.f : v > 1 ? 1.f : v; }

std::int64_t FirstBad(const float* src, std::int64_t begin, std::int64_t end) {
  while (begin < end && !IsBad(src[begin])) ++begin;
  return begin < end ? begin : -1;
}

}  // namespace

template <typename T>
std::int64_t Quantise(const float* src, std::int64_t count, T* dst, int dst_step) {
  // Chunks, so that the intermediate integers stay in the cache and both loops vectorise.
  constexpr std::int64_t kChunk = 256;
  constexpr float kMax = std::numeric_limits<T>::max();
  // Floats from 2^23 on are whole numbers: adding 1.5 * 2^23 rounds as the hardware does, ties to
  // even, and leaves the integer in the low bits.
  constexpr float kRound = 0x1.8p23f;
  std::uint32_t integers[kChunk];
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t n = std::min(kChunk, count - start);
    std::uint32_t bad = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const float v = src[start + i];
      bad |= IsBad(v);
      integers[i] = std::bit_cast<std::uint32_t>(Clamp(v) * kMax + kRound);
    }
    if (bad != 0) return FirstBad(src, start, start + n);
    T* out = dst + start * dst_step;
    for (std::int64_t i = 0; i < n; ++i) out[i * dst_step] = static_cast<T>(integers[i]);
  }
  return -1;
}

std::int64_t ClampToUnit(const float* src, std::int64_t count, float* dst) {
  std::uint32_t bad = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    bad |= IsBad(src[i]);
    dst[i] = Clamp(src[i]);
  }
  return bad == 0 ? -1 : FirstBad(src, 0, count);
}

template std::int64_t Quantise(const float*, std::int64_t, std::uint8_t*, int);
template std::int64_t Quantise(const float*, std::int64_t, std::uint16_t*, int);

}  // namespace tessera
