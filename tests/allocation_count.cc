#include "tests/allocation_count.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

}  // namespace

#if TESSERA_OWN_ALLOCATOR
namespace {

void Count() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t n) {
  Count();
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  Count();
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t n) {
  Count();
  return __libc_realloc(p, n);
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  Count();
  return __libc_memalign(alignment, n);
}
int posix_memalign(void** p, std::size_t alignment, std::size_t n) {
  Count();
  *p = __libc_memalign(alignment, n);
  return *p == nullptr ? 12 : 0;
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

}  // namespace tessera
