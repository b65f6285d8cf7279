// A graph that can be run on tensors: a plan for each set of input shapes, and, where shapes depend
// on values that appear only in the run, stages.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/graph.h"
#include "engine/planner.h"
#include "engine/session.h"

namespace tessera {

// Adds what happens in a run to a profile.
class Profiler {
 public:
  // `profile` is emptied; null: nothing is recorded.
  explicit Profiler(RunProfile* profile);

  bool enabled() const { return profile_ != nullptr; }
  double ElapsedMs() const;
  // A step that began at `start_ms` and ends now.
  void Add(RunProfile::Step step, double start_ms);

 private:
  RunProfile* profile_;
  std::chrono::steady_clock::time_point begin_;
};

// Safe to run from several threads at once.
class Network {
 public:
  // A canonical graph. Inputs that are declared (Graph::input_decls) take tensors of the declared
  // type, float16 and float32 for each other; those that are not, as the inputs of a loop's body,
  // take any. `packs` has to outlive the network.
  Network(Graph graph, PlanOptions options, PackCache& packs, int max_plans);
  ~Network();

  const Graph& graph() const { return graph_; }

  // Types and shapes of the outputs; makes the plan. Throws Error where the graph does not accept
  // the inputs, or if an output's shape depends on values.
  std::vector<TensorView> InferOutputs(std::span<const TensorView> inputs);

  // Bytes of intermediate buffers of one run (of the first stage, if there are several).
  std::size_t ArenaBytes(std::span<const TensorView> inputs);

  // How often the passes of every plan fired for these inputs (in the first stage, if there are
  // several).
  RewriteCounts PlanRewrites(std::span<const TensorView> inputs);

  // Inputs in the order of graph().inputs, row-major. Outputs that have the right type and shape
  // are written in place if shapes do not depend on values, others replaced. Threads come from
  // `parallel`, if it is null from the CPU budget. Adds the iterations of loops to `iterations`.
  void Run(std::span<const TensorView> inputs, std::vector<Tensor>& outputs, Parallel* parallel,
           Profiler& profiler, std::int64_t& iterations);
  // The same outside of any loop.
  void Run(std::span<const TensorView> inputs, std::vector<Tensor>& outputs, Parallel* parallel,
           Profiler& profiler) {
    std::int64_t iterations = 0;
    Run(inputs, outputs, parallel, profiler, iterations);
  }

 private:
  struct Program;

  std::shared_ptr<Program> ProgramFor(std::span<const TensorView> inputs);
  std::shared_ptr<Program> MakeProgram(std::span<const TensorView> inputs);
  void Split(Graph graph, Program& program);
  void RunLater(Program& program, std::span<void* const> input_bytes, std::vector<Tensor> known,
                std::vector<Tensor>& outputs, Parallel& parallel, Profiler& profiler,
                std::int64_t& iterations);
  // Leaves few buffers of earlier runs, those of the last ones.
  void DropIdleStates();
  // Throws Error if output i is declared otherwise.
  void CheckOutputType(std::size_t i, DType dtype) const;

  const Graph graph_;
  const PlanOptions options_;
  PackCache& packs_;
  const std::size_t max_plans_;
  std::mutex mutex_;
  std::list<std::shared_ptr<Program>> programs_;  // most recently used first
};

}  // namespace tessera
