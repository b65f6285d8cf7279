// The one exception type of the library.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace tessera {

// Something outside the program is wrong: a file, a model, an argument. The message is one line
// that names the file or node and the reason; callers that know more put it in front
// ("x4v3.onnx: node 'Conv_0' (Conv): ..."). Broken invariants of our own code are not Errors.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Concatenates anything streamable: StrCat("axis ", 5, " of rank ", 4).
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
}

// Throws Error(StrCat(args...)) unless `condition` holds. Arguments are formatted on failure only.
template <typename... Args>
void Require(bool condition, const Args&... args) {
  if (!condition) [[unlikely]]
    throw Error(StrCat(args...));
}

}  // namespace tessera
