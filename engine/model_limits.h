// What a model may be at most. Models come from strangers; beyond these numbers loading or running
// them throws Error. Each is far above what any network in use needs.
#pragma once

#include <cstdint>

namespace tessera {

// Nodes of a model, those of its bodies (If, Loop) too. The largest exports of transformers have
// some ten thousand; rewriting and placing buffers take up to the square of it.
inline constexpr std::int64_t kMaxNodes = 50'000;

// Bodies within bodies: each takes a piece of the stack, and a network of its own.
inline constexpr int kMaxNesting = 8;

// Iterations of all loops of a run together: a loop that goes on is taken for one that never ends.
inline constexpr std::int64_t kMaxLoopIterations = 1'000'000;

}  // namespace tessera
