// Operators that take bytes as well as floats.
#pragma once

#include <cstddef>

#include "engine/graph.h"

namespace tessera {

// Whether a node moves elements of its first inputs without computing, or takes the largest of
// some: rounding before or after it is the same, as it keeps the order of numbers.
bool IsMover(const Node& node);

// How many of its first inputs are moved; what follows are shapes, axes and the like.
std::size_t NumDataInputs(const Node& mover);

}  // namespace tessera
