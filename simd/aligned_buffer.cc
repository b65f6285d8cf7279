#include "simd/aligned_buffer.h"

#include "simd/memory_limit.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tessera {

std::byte* AllocateAligned(std::size_t bytes) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
  const std::size_t rounded = RoundUp(bytes, kAlignment);
  if (rounded < bytes) throw std::bad_alloc();
  MemoryScope::Check(rounded);
  void* data = nullptr;
  if (posix_memalign(&data, alignment, rounded) != 0) throw std::bad_alloc();
#ifdef __linux__
  // Whole huge pages only, so that no memory is taken beyond the block. Advice may be refused.
  if (bytes >= kHugePage) madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(data);
}

}  // namespace tessera
