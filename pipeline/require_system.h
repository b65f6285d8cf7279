// Errors of system calls.
#pragma once

#include <cerrno>
#include <cstring>

#include "ops/error.h"

namespace tessera {

// Throws Error("what: reason of the system") unless `done`. errno is read here, after the call. As
// an argument of Require it would be read before the call or after it, as the compiler likes.
inline void RequireSystem(bool done, const char* what) {
  if (done) return;
  const int reason = errno;
  throw Error(StrCat(what, ": ", std::strerror(reason)));
}

}  // namespace tessera
