// The norm of order p, for an integer p >= 1: (sum of |x|^p)^(1/p).
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/op.h"

namespace tessera {

// The attribute p of LpPool and its kin, 2 by default. Throws Error if it is below 1.
inline std::int64_t ReadNormOrder(const OpNode& node) {
  const std::int64_t p = node.attributes.Int("p", 2);
  Require(p >= 1, "p ", p, " is below 1");
  return p;
}

// |x|^p.
template <typename T>
T PowerOfMagnitude(T x, std::int64_t p) {
  if (p == 1) return std::abs(x);
  if (p == 2) return x * x;
  return std::pow(std::abs(x), static_cast<T>(p));
}

// sum^(1/p).
template <typename T>
T RootOfSum(T sum, std::int64_t p) {
  if (p == 1) return sum;
  if (p == 2) return std::sqrt(sum);
  return std::pow(sum, T{1} / static_cast<T>(p));
}

}  // namespace tessera
