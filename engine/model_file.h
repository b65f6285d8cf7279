// From a file, of whichever format, to a Graph.
#pragma once

#include <filesystem>

#include "engine/graph.h"

namespace tessera {

// Reads an ONNX file, or the two files of an ncnn model. Those lie beside each other; either of
// them may be named, or what their names have in common:
//   foo.onnx   foo.param (with foo.bin)   foo.bin (with foo.param)   foo (one of these)
// A file of another name is what its content says. Throws Error as ImportOnnx and ImportNcnn do.
Graph ImportModel(const std::filesystem::path& path);

// Whether there is a file that ImportModel would read for `path`.
bool ModelExists(const std::filesystem::path& path);

// The file with an ncnn model's weights beside its text, and the other way round.
std::filesystem::path NcnnWeightsFile(std::filesystem::path param);
std::filesystem::path NcnnTextFile(std::filesystem::path bin);

}  // namespace tessera
