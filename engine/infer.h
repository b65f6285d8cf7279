// Shape inference and constant folding.
#pragma once

#include <span>
#include <vector>

#include "engine/graph.h"

namespace tessera {

// Runs every node whose inputs are all constant (and Shape and Size of known shapes), and makes
// its outputs constants; puts the branch of an If whose condition is constant in its place. Values
// that are not known yet are skipped; dead nodes are removed. Bodies of nodes are folded too.
void FoldConstants(Graph& graph);
// The same but for every DequantizeLinear: weights stay 8-bit integers with their scales.
void FoldIntegerConstants(Graph& graph);

// Gives every value a type and shape from those of the graph's inputs, folding constants on the
// way (chains like Shape -> Gather -> Concat -> Reshape vanish). Removes what became dead.
// Where an output's shape depends on values that only the run knows, it stays unknown, as does
// what follows from it (see ShapesAreKnown).
// Throws Error, with file, node and shapes, where a node does not accept its inputs.
void InferShapes(Graph& graph, std::span<const TensorInfo> inputs);
// The same for inputs of the declared types.
void InferShapes(Graph& graph, std::span<const Shape> input_shapes);

// Whether all outputs of a node, of all nodes, have a type and shape.
bool ShapesAreKnown(const Graph& graph, const Node& node);
bool ShapesAreKnown(const Graph& graph);

}  // namespace tessera
