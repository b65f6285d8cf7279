// onnx-bench --passes: the rewrites of networks, and how often they fire in one.
#pragma once

#include <string>
#include <vector>

#include "apps/bench_input.h"
#include "engine/session.h"

namespace tessera {

// "NAME  WHAT IT DOES" for each pass that can be disabled, in the order in which they run.
std::string PassList();

// "COUNT  NAME  WHAT IT DOES" for each, in `session` with inputs of the given shapes or, where none
// is given, the declared ones. Throws Error if a size is open, or as Session::PassCounts does.
std::string PassTable(Session& session, const std::vector<BenchInput>& inputs);

}  // namespace tessera
