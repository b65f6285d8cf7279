// Shape inference and constant folding.
#pragma once

#include <span>
#include <vector>

#include "engine/graph.h"

namespace tessera {

// Runs every node whose inputs are all constant (and Shape and Size of known shapes), and makes
// its outputs constants. Values that are not known yet are skipped; dead nodes are removed.
void FoldConstants(Graph& graph);

// Gives every value a type and shape from those of the graph's inputs, folding constants on the
// way (chains like Shape -> Gather -> Concat -> Reshape vanish). Removes what became dead.
// Throws Error, with file, node and shapes, where a node does not accept its inputs.
void InferShapes(Graph& graph, std::span<const Shape> input_shapes);

// The inputs' infos of a node, absent ones as not present.
std::vector<TensorInfo> InputInfos(const Graph& graph, const Node& node);
std::vector<TensorInfo> OutputInfos(const Graph& graph, const Node& node);

}  // namespace tessera
