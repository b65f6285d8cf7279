// From a graph and its input shapes to something that can run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/graph.h"
#include "engine/passes.h"

namespace tessera {

// Where a step finds a tensor when it runs.
struct BufferRef {
  enum class Kind : std::uint8_t { kAbsent, kConstant, kInput, kOutput, kArena };
  Kind kind = Kind::kAbsent;
  std::size_t index = 0;  // of the graph's input or output, or bytes from the arena's start
};

struct Operand {
  BufferRef where;
  TensorView view;  // bytes are set for constants only
};

struct Step {
  std::string name;  // of the node, or of the value that is reordered
  std::string type;
  std::unique_ptr<Kernel> kernel;
  std::vector<Operand> inputs, outputs;
};

// A network ready to run for one set of input shapes. Immutable once made.
struct Plan {
  std::vector<Shape> input_shapes;
  std::vector<DType> input_types;
  std::vector<TensorView> outputs;  // types and shapes, no bytes
  std::vector<Step> steps;
  std::vector<std::shared_ptr<const Tensor>> constants;  // that steps point into
  std::size_t arena_bytes = 0;
  std::size_t scratch_bytes_per_thread = 0;
  RewriteCounts rewrites;  // of the passes of every plan
};

struct PlanOptions {
  std::set<std::string, std::less<>> disabled_passes;
  bool reference = false;
};

// Runs the fast passes, chooses layouts and kernels, and places buffers for a graph all of whose
// shapes are inferred.
Plan MakePlan(Graph graph, const PlanOptions& options, PackCache& packs);

}  // namespace tessera
