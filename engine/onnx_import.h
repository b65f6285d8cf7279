// From an ONNX file to a Graph.
#pragma once

#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string>

#include "engine/graph.h"

namespace tessera {

// Reads IR versions 3 to 10, opsets 7 to 21 of the default domain. Initializers and constants
// become constants of the graph, in the types that the file gives them; external data is read from
// beside the model. Nodes are sorted; names are made unique; nothing is folded or rewritten yet.
// Throws Error naming the file for anything that is not a valid model, and one Unsupported that
// lists all operators that are not supported.
Graph ImportOnnx(const std::filesystem::path& path);

// The same from memory. External data is looked for in `folder`; refused if that is empty.
Graph ImportOnnx(std::span<const std::byte> model, const std::string& name,
                 const std::filesystem::path& folder);

// A file that holds one tensor (TensorProto, as ONNX's test data does). Throws as above.
Tensor ImportOnnxTensor(const std::filesystem::path& path);

// The operators that a model uses, supported or not, those of its sub-graphs too; "domain.Name" for
// domains other than ONNX's own.
std::set<std::string> OperatorsOfOnnx(const std::filesystem::path& path);

}  // namespace tessera
