// The float network in the form that is quantised.
#pragma once

#include "engine/graph.h"

namespace tessera {

// Constants folded, BatchNormalization, scales, shifts and pads folded into convolutions, x *
// clip(x + 3, 0, 6) / 6 as HardSwish, and in a version of ONNX that can hold 8-bit weights with a
// scale for each channel (RaiseOpset). Only operators of ONNX are left. Throws Error as RaiseOpset
// does, and for networks with If or Loop or that are quantised already.
Graph PrepareForQuantizing(Graph imported);

// Rewrites a graph without sub-graphs into one of opset `opset` (13 or 14) that means the same, if
// its own is older. Throws Error, naming the node, for operators that changed in a way that this
// does not handle. Source: onnx/docs/Changelog.md.
void RaiseOpset(Graph& graph, int opset);

// x * clip(x + 3, 0, 6) / 6, however its factors are ordered, becomes HardSwish. Returns how many.
int FuseHardSwish(Graph& graph);

}  // namespace tessera
