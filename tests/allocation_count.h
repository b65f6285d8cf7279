// How often something allocates, and what it does when it cannot.
#pragma once

#include <functional>

namespace tessera {

// GCC has macros of its own for this. __has_feature is no word to it, so that it needs an #if
// alone.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TESSERA_OWN_ALLOCATOR 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define TESSERA_OWN_ALLOCATOR 0
#endif
#endif
#ifndef TESSERA_OWN_ALLOCATOR
#define TESSERA_OWN_ALLOCATOR 1
#endif

// False in builds with a sanitizer, which owns the allocator.
inline constexpr bool kCountsAllocations = TESSERA_OWN_ALLOCATOR != 0;

// Calls `work` and returns how many allocations the process made meanwhile, in whatever thread; 0
// where they are not counted.
int CountAllocations(const std::function<void()>& work);

struct FailedAllocation {
  bool happened = false;  // there were so many
  int left = 0;           // allocations of the work that it has not freed
};

// Calls `work`, whose allocation number `n` (from 0; those of this thread count) finds no memory.
// Nothing happens where allocations are not counted.
FailedAllocation FailAllocation(int n, const std::function<void()>& work);

}  // namespace tessera
