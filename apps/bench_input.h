// The inputs that onnx-bench makes for a network.
#pragma once

#include <string>

#include "engine/session.h"
#include "ops/tensor.h"

namespace tessera {

struct BenchInput {
  std::string name;
  Tensor tensor;
};

// NAME:1x3x64x64[:FILE]. FILE holds as many raw little-endian float32 values, row-major, which are
// converted to the type that the session wants for NAME. Without one the values are noise, the same
// on every machine: u = x / 2^32 with x from xorshift32, seeded anew for each input, as
//   float             u
//   signed integer    floor(16 u) - 8
//   unsigned integer  floor(16 u)
//   bool              floor(2 u)
// Throws Error for anything else, for names that the network does not know, and for files of
// another size.
BenchInput MakeBenchInput(const std::string& spec, const Session& session);

}  // namespace tessera
