// Two trainings of one network mixed.
#pragma once

#include "engine/graph.h"

namespace tessera {

// `a` with the weights (1 - t) * a + t * b, t in [0, 1]: exactly those of `a` at 0 and those of `b`
// at 1. The graphs are as they were imported and have to be equal but for names: the same operators
// in the same order, with the same attributes, wiring and opset, and constants of the same types
// and shapes. Weights are the floating-point constants; those of float16 are computed in float32
// and rounded. Constants that are integers or say how large something is have to have equal values.
//
// Throws Error, which names both files and the first difference, for graphs that are not equal.
Graph BlendWeights(Graph a, const Graph& b, float t);

}  // namespace tessera
