// Rewrites of a graph, each with a name and a switch.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "engine/graph.h"

namespace tessera {

enum class PassStage {
  kRequired,   // once after import, always: without it the kernels could not run the graph
  kQuantized,  // once after import: weights are still 8-bit integers with their scales
  kCanonical,  // once after import: brings graphs of all exporters into one form; shapes unknown
  kFast,       // in every plan: fuses what kernels can do together; all shapes are known
  kPlan,       // done by the planner when it places buffers
};

struct Pass {
  std::string_view name;
  std::string_view what;  // one line for people
  PassStage stage;
  int (*run)(Graph& graph);  // returns the number of rewrites; null for kPlan
};

// In the order in which they run.
std::span<const Pass> AllPasses();

// How often passes fired.
using RewriteCounts = std::map<std::string_view, int>;

// Runs the passes of a stage except those in `disabled` (the required ones run always), and removes
// what became dead. Bodies of nodes, which have no plan of their own, get those that are run once
// after import, but for the quantised ones. Adds to `counts`, where given.
void RunPasses(Graph& graph, PassStage stage, const std::set<std::string, std::less<>>& disabled,
               RewriteCounts* counts = nullptr);

// Names in `names` and in the environment variable TESSERA_DISABLE (comma-separated).
// Throws Error for a name that is no pass.
std::set<std::string, std::less<>> DisabledPasses(std::span<const std::string> names);

}  // namespace tessera
