// From a Graph to a standard ONNX model.
#pragma once

#include <string>

#include "engine/graph.h"

namespace tessera {

// The bytes of an ONNX file that holds an imported graph, before any pass has rewritten it: its
// nodes, constants, inputs and outputs, in its opset. Values whose names are missing or there twice
// get others; inputs and outputs keep theirs. Throws Error if the graph holds an operator that ONNX
// does not have, or takes more than the 2 GB of a file.
std::string ExportOnnx(const Graph& graph);

}  // namespace tessera
