// Threads that take tiles one by one.
#pragma once

#include <cstdint>

#include "ops/parallel.h"
#include "pipeline/tile_plan.h"

namespace tessera {

// Calls body(tile, worker, parallel) for every tile of the plan, from plan.workers threads (the
// caller is one of them), each with its own share of plan.threads as `parallel`. An Error of a
// body is rethrown here; no further tiles are begun then.
void ForEachTile(const TilePlan& plan,
                 FunctionRef<void(const Tile& tile, int worker, Parallel& parallel)> body);

}  // namespace tessera
