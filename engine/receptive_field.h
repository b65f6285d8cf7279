// Which input pixels an output pixel depends on, from the graph alone.
#pragma once

#include <optional>

#include "engine/graph.h"

namespace tessera {

// The field of output 0 on input 0 of a graph whose shapes are inferred; nullopt where an operator
// on the way has none or paths disagree about the scale. Goes back from a block of output pixels
// through the operators' own fields (OpDef::field); where paths meet, all their pixels count.
std::optional<ReceptiveField> FindReceptiveField(const Graph& graph);

// Whether a Resize is told the size of its output: then the field is the one for the graph's sizes,
// and may be another for others.
bool ResizesToSizes(const Graph& graph);

}  // namespace tessera
