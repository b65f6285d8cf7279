// A graph in two parts that run one after the other.
#pragma once

#include <cstddef>

#include "engine/graph.h"

namespace tessera {

// `first` computes what inputs[input] alone decides. Its outputs, in the order of `first`'s nodes,
// come after the other inputs as inputs of `rest`, which has the outputs of the whole.
struct GraphParts {
  Graph first, rest;
};

// All shapes of the graph have to be known. Inputs of the parts are declared with them.
GraphParts SplitAfterInput(const Graph& graph, std::size_t input);

}  // namespace tessera
