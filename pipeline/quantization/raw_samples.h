// Raw numbers as inputs of a network, to calibrate it with.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/quantization/quantizer.h"
#include "engine/session.h"

namespace tessera {

// Whether a text means raw numbers: a file that ends with .f32, perhaps with NAME:SHAPE: in front.
bool IsRawSpec(const std::string& text);

// Samples from files of little-endian float32 values, row-major. Each text is
//
//   FILE.f32                    for networks with one input whose declared shape is fixed
//   NAME:1x3x64x64:FILE.f32     for the input of that name
//
// A file may hold several samples, one after the other; so may several files of one input. Sample k
// is made of the k-th of each input. Throws Error, which names the file or text, if these do not go
// together.
std::vector<Sample> ReadRawSamples(const Session& network, std::span<const std::string> texts);

}  // namespace tessera
