// How often something allocates.
#pragma once

#include <functional>

namespace tessera {

// False in builds with a sanitizer, which owns the allocator.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kCountsAllocations = false;
#else
inline constexpr bool kCountsAllocations = true;
#endif

// Calls `work` and returns how many allocations the process made meanwhile, in whatever thread; 0
// where they are not counted.
int CountAllocations(const std::function<void()>& work);

}  // namespace tessera
