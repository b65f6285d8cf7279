// How often a piece of code allocates. A test program that lists count_allocations.cc among its
// sources has its malloc and the like replaced.
#pragma once

#include <functional>
#include <optional>

namespace tessera {

// Allocations of the whole process, by all of its threads, while `work` runs. Nothing where a
// sanitizer owns the allocator.
std::optional<int> CountAllocations(const std::function<void()>& work);

}  // namespace tessera
