#include "simd/memory_limit.h"

#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <utility>

// Sanitizers own the allocator, and count.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace tessera {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;
// What is asked for between two looks at what there is, which cost some microseconds, and
// milliseconds where the heap is in a hundred thousand pieces.
constexpr std::size_t kCheckEvery = kMegabyte;

// The one place where code as deep as a kernel's finds a limit.
thread_local std::size_t allowed_here = 0;
thread_local std::size_t unchecked = 0;

}  // namespace

MemoryLimitExceeded::MemoryLimitExceeded(std::size_t needed, std::size_t allowed) noexcept {
  const std::size_t megabytes = needed / kMegabyte + (needed % kMegabyte != 0 ? 1 : 0);
  std::snprintf(text_.data(), text_.size(),
                "not enough memory: %zu MB are needed, %zu MB are allowed (--max-memory)",
                megabytes, allowed / kMegabyte);
}

std::string MemoryMessage(const std::bad_alloc& error) {
  const auto* limit = dynamic_cast<const MemoryLimitExceeded*>(&error);
  return limit != nullptr ? limit->what() : "not enough memory";
}

std::size_t AllocatedMemory() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) {
    return __sanitizer_get_current_allocated_bytes();
  }
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

MemoryScope::MemoryScope(std::size_t allowed) : outer_(std::exchange(allowed_here, allowed)) {}
MemoryScope::~MemoryScope() { allowed_here = outer_; }

std::size_t MemoryScope::Allowed() { return allowed_here; }

void MemoryScope::Check(std::size_t bytes) {
  if (allowed_here == 0) return;
  unchecked = bytes > SIZE_MAX - unchecked ? SIZE_MAX : unchecked + bytes;
  if (unchecked < kCheckEvery) return;
  unchecked = 0;
  const std::size_t used = AllocatedMemory();
  const std::size_t needed = bytes > SIZE_MAX - used ? SIZE_MAX : used + bytes;
  if (needed > allowed_here) throw MemoryLimitExceeded(needed, allowed_here);
}

}  // namespace tessera
