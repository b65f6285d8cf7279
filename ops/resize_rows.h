// Vector kernels of Resize for rows of float32.
#pragma once

#include <cstdint>

namespace tessera {

// out[i] = sum over k < count of weights[k] * rows[k][i], for i < n.
void BlendRows(const float* const* rows, const float* weights, int count, float* out,
               std::int64_t n);

// out[i] = sum over k < count of weights[k * n + i] * in[first[i] + k], for i < n.
void BlendColumns(const float* in, const std::int32_t* first, const float* weights, int count,
                  float* out, std::int64_t n);

// The same for first[i] = 2 * i. Reads up to one element more than that.
void BlendHalvedColumns(const float* in, const float* weights, int count, float* out,
                        std::int64_t n);

}  // namespace tessera
