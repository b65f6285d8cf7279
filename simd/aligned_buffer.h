// Memory for tensors and packed weights: aligned for every vector width, sized once.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace tessera {

// Covers a cache line and the widest vector (AVX-512).
inline constexpr std::size_t kAlignment = 64;

constexpr std::size_t RoundUp(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Uninitialised memory, to be given to std::free. Large blocks lie in huge pages where the system
// has them: kernels that jump from row to row and plane to plane touch hundreds of pages at a time.
// Throws std::bad_alloc.
std::byte* AllocateAligned(std::size_t bytes);

// An owned, uninitialised block of bytes aligned to kAlignment. Throws std::bad_alloc.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes) : size_(bytes) {
    if (bytes != 0) data_ = AllocateAligned(bytes);
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBuffer() { std::free(data_); }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  template <typename T>
  T* As() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tessera
