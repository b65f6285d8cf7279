// Floats to integer samples.
#pragma once

#include <cstdint>

namespace tessera {

// dst[i * dst_step] = clamp(src[i], 0, 1) * maximum of T, rounded to the nearest integer, ties to
// even. T: std::uint8_t or std::uint16_t. Returns the index of the first value that is no finite
// number, or -1 if there is none; what is written for those is unspecified.
template <typename T>
std::int64_t Quantise(const float* src, std::int64_t count, T* dst, int dst_step = 1);

// dst[i] = clamp(src[i], 0, 1). Returns as Quantise does.
std::int64_t ClampToUnit(const float* src, std::int64_t count, float* dst);

extern template std::int64_t Quantise(const float*, std::int64_t, std::uint8_t*, int);
extern template std::int64_t Quantise(const float*, std::int64_t, std::uint16_t*, int);

}  // namespace tessera
