// Tensors of int8 and uint8, for tests of the quantised operators.
#pragma once

#include <cstdint>
#include <random>

#include "ops/tensor.h"

namespace tessera {

// `type` is int8 or uint8; all of its values.
inline Tensor RandomBytes(const Shape& shape, DType type, std::mt19937& random) {
  Tensor t(type, shape);
  for (auto& v : t.values<std::uint8_t>()) v = static_cast<std::uint8_t>(random());
  return t;
}

inline std::int64_t Element(const Tensor& t, std::int64_t i) {
  return t.dtype() == DType::kInt8 ? t.data<std::int8_t>()[i] : t.data<std::uint8_t>()[i];
}

}  // namespace tessera
