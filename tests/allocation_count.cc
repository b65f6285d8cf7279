#include "tests/allocation_count.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

// Of FailAllocation, for its thread alone.
thread_local bool failing = false;
thread_local int until_failure = 0, balance = 0;

}  // namespace

#if TESSERA_OWN_ALLOCATOR
namespace {

// Counts an allocation; true if it is to fail.
bool Fails() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
  return failing && until_failure-- == 0;
}

void* Counted(void* p) {
  if (failing && p != nullptr) ++balance;
  return p;
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
void* malloc(std::size_t n) { return Fails() ? nullptr : Counted(__libc_malloc(n)); }
void* calloc(std::size_t n, std::size_t size) {
  return Fails() ? nullptr : Counted(__libc_calloc(n, size));
}
void* realloc(void* p, std::size_t n) {
  if (Fails()) return nullptr;
  void* const moved = __libc_realloc(p, n);
  return p == nullptr ? Counted(moved) : moved;
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  return Fails() ? nullptr : Counted(__libc_memalign(alignment, n));
}
int posix_memalign(void** p, std::size_t alignment, std::size_t n) {
  *p = Fails() ? nullptr : Counted(__libc_memalign(alignment, n));
  return *p == nullptr ? 12 : 0;
}
void free(void* p) {
  if (failing && p != nullptr) --balance;
  __libc_free(p);
}
}
#endif

namespace tessera {

int CountAllocations(const std::function<void()>& work) {
  const struct Counting {
    Counting() {
      allocations = 0;
      counting = true;
    }
    ~Counting() { counting = false; }
  } until_the_end;
  work();
  return allocations;
}

FailedAllocation FailAllocation(int n, const std::function<void()>& work) {
  until_failure = n;
  balance = 0;
  failing = true;
  work();  // throws nothing
  failing = false;
  return {.happened = until_failure < 0, .left = balance};
}

}  // namespace tessera
