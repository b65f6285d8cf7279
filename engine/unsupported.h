// The Error about what is right but not supported.
#pragma once

#include "ops/error.h"

namespace tessera {

// Valid as far as the program can tell, but of a kind that it does not have: an operator, an
// element type, a version of ONNX.
class Unsupported : public Error {
 public:
  using Error::Error;
};

// Throws Unsupported(StrCat(args...)) unless `condition` holds.
template <typename... Args>
void RequireSupported(bool condition, const Args&... args) {
  if (!condition) [[unlikely]]
    throw Unsupported(StrCat(args...));
}

}  // namespace tessera
