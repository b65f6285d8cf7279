// Runs single nodes on tensors that are there: constants, and nodes whose output shapes depend on
// values (Reshape to a computed shape, NonZero, If, Loop).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/graph.h"
#include "engine/planner.h"

namespace tessera {

class Network;
class Profiler;

// The value of a condition. Throws Error unless it is one bool.
bool ConditionHolds(const TensorView& condition);

class NodeRunner {
 public:
  // A node of `graph`; of its values only constants are looked at.
  NodeRunner(const Graph& graph, const Node& node, const PlanOptions& options);
  ~NodeRunner();
  NodeRunner(NodeRunner&&) noexcept;

  const Node& node() const { return node_; }

  // The outputs; not present where the node leaves them out. `inputs` are those of the node, all
  // of them constants, unless the node looks at shapes only. Throws Error about the node. Safe to
  // call from several threads. Adds the iterations of loops to `iterations`; Error beyond
  // kMaxLoopIterations.
  std::vector<Tensor> Run(std::span<const TensorInfo> inputs, Parallel& parallel,
                          std::int64_t& iterations) const;
  // The same outside of any loop.
  std::vector<Tensor> Run(std::span<const TensorInfo> inputs, Parallel& parallel) const {
    std::int64_t iterations = 0;
    return Run(inputs, parallel, iterations);
  }

 private:
  // A sub-graph, and where its inputs come from.
  struct Body {
    std::unique_ptr<Network> network;
    std::vector<std::size_t> arguments;  // for each input of the network, the body's own input
  };

  std::vector<Tensor> RunOperator(std::span<const TensorInfo> inputs, Parallel& parallel) const;
  std::vector<Tensor> RunIf(std::span<const TensorInfo> inputs, Parallel& parallel,
                            std::int64_t& iterations) const;
  std::vector<Tensor> RunLoop(std::span<const TensorInfo> inputs, Parallel& parallel,
                              std::int64_t& iterations) const;
  void RunBody(const Body& body, std::span<const TensorView> inputs, std::vector<Tensor>& outputs,
               Parallel& parallel, std::int64_t& iterations) const;

  std::string file_;
  Node node_;
  bool reference_;
  std::unique_ptr<PackCache> packs_;  // of the bodies' weights
  std::vector<Body> bodies_;
};

}  // namespace tessera
