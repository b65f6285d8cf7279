// Arithmetic on sizes and attributes of models from strangers: what int64 does not hold is an
// Error.
#pragma once

#include <cstdint>

#include "ops/error.h"

namespace tessera {

inline std::int64_t CheckedAdd(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  Require(!__builtin_add_overflow(a, b, &sum), a, " + ", b, " is too large for a size");
  return sum;
}

inline std::int64_t CheckedMul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  Require(!__builtin_mul_overflow(a, b, &product), a, " * ", b, " is too large for a size");
  return product;
}

}  // namespace tessera
