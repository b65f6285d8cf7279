// The files that networks are calibrated with.
#pragma once

#include <string>
#include <vector>

#include "engine/quantization/quantizer.h"
#include "pipeline/display_name.h"
#include "pipeline/video/frame_source.h"

namespace tessera {

// Files, with the pictures or the .f32 files in it in the place of a folder. Throws FileError for
// folders that hold neither, and what cannot be read.
std::vector<std::string> ListInputs(const std::vector<std::string>& inputs);

// About `count` tiles of pictures and videos together, of so many files at most. Throws FileError
// for a file that cannot be read.
std::vector<Sample> SampleInputs(const std::vector<std::string>& inputs, const Shape& tile,
                                 int count);

// Returns f(). Its Errors, which name the clip already, become FileErrors.
template <typename F>
auto NamingClip(const std::string& input, F&& f) {
  try {
    return f();
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    const std::string name = ShownInput(input), reason = error.what();
    throw FileError(reason.find(name) == std::string::npos ? StrCat(name, ": ", reason) : reason);
  }
}

}  // namespace tessera
