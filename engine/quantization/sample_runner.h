// Runs a network on samples node by node, so that what a node gives on all samples is seen, and may
// be changed, before the next one runs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/graph.h"
#include "engine/quantization/quantizer.h"

namespace tessera {

// A node and its inputs, inputs[sample][i], whose values are there (TensorInfo::constant), before
// it runs; they may be replaced.
using InputVisitor =
    std::function<void(const Node& node, std::span<std::vector<TensorInfo>> inputs)>;
// A node and its outputs, outputs[sample][i], row-major; they may be changed.
using OutputVisitor = std::function<void(const Node& node, std::span<Outputs> outputs)>;

// Goes through a graph node by node. Memory is that of the live values of all samples, which have
// to outlive this, as the graph has to.
class NodeWalk {
 public:
  NodeWalk(const Graph& graph, std::span<const Sample> samples);

  // Runs the next node on all samples; false if there is none. Either visitor may be empty.
  bool Step(const InputVisitor& before, const OutputVisitor& after, Parallel& parallel);

 private:
  // The value of each id that is live.
  using Values = std::vector<std::shared_ptr<const Tensor>>;

  const Graph& graph_;
  std::vector<std::size_t> last_reader_;
  std::vector<Values> values_;  // of each sample
  std::size_t next_ = 0;
};

// All steps.
void RunNodes(const Graph& graph, std::span<const Sample> samples, Parallel& parallel,
              const InputVisitor& before, const OutputVisitor& after);

// Runs the whole network on each sample, planned and fused. float16 outputs become float32.
std::vector<Outputs> RunSamples(const Graph& graph, std::span<const Sample> samples,
                                Parallel* parallel);

// Throws Error unless there are samples and each fits the inputs of the graph.
void CheckSamples(const Graph& graph, std::span<const Sample> samples);

}  // namespace tessera
