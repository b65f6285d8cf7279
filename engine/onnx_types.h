// Element types as ONNX numbers them.
#pragma once

#include <cstdint>

#include "ops/tensor.h"

namespace tessera {

// The number in onnx.TensorProto.DataType: the reverse of DTypeFromOnnx.
inline std::int64_t DTypeToOnnx(DType type) {
  // Every DType has a number, and they begin with 1.
  std::int64_t number = 1;
  while (DTypeFromOnnx(number) != type) ++number;
  return number;
}

}  // namespace tessera
