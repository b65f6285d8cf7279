// Runs a network on samples node by node, so that what a node gives on all samples is seen, and may
// be changed, before the next one runs.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/quantizer.h"

namespace tessera {

// A node and its outputs, outputs[sample][i], row-major.
using NodeVisitor = std::function<void(const Node& node, std::span<Outputs> outputs)>;

// Throws Error if the samples do not fit the graph's inputs. Memory is that of the live values of
// all samples.
void RunNodes(const Graph& graph, std::span<const Sample> samples, Parallel& parallel,
              const NodeVisitor& visit);

// Runs the whole network on each sample, planned and fused.
std::vector<Outputs> RunSamples(const Graph& graph, std::span<const Sample> samples,
                                Parallel* parallel);

// Throws Error unless there are samples and each fits the inputs of the graph.
void CheckSamples(const Graph& graph, std::span<const Sample> samples);

}  // namespace tessera
