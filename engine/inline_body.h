// Puts the body of an If into the graph around it.
#pragma once

#include <cstddef>

#include "engine/graph.h"

namespace tessera {

// Replaces node `n`, whose `body` is known to be the one that runs and reads the node's inputs from
// `first_input` on, by the nodes of that body.
void InlineBody(Graph& graph, std::size_t n, std::size_t body, std::size_t first_input);

}  // namespace tessera
