// A limit to the memory of the process, kept by whoever makes AlignedBuffers: tensors, packed
// weights, buffers of runs. Models come from strangers; what they ask for is refused before it is
// allocated.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <string>

namespace tessera {

// Thrown in place of an allocation that would go beyond a limit.
class MemoryLimitExceeded : public std::bad_alloc {
 public:
  MemoryLimitExceeded(std::size_t needed, std::size_t allowed) noexcept;
  // "not enough memory: 4096 MB are needed, 1228 MB are allowed (--max-memory)"
  const char* what() const noexcept override { return text_.data(); }

 private:
  std::array<char, 128> text_{};
};

// For messages: the numbers of a MemoryLimitExceeded, else "not enough memory".
std::string MemoryMessage(const std::bad_alloc& error);

// Bytes that the process has allocated and not freed, touched or not (0 where nobody counts them).
std::size_t AllocatedMemory();

// As long as it lives, its thread makes no AlignedBuffer with which the process would have more
// than `allowed` bytes. Of scopes within each other the inmost counts. It is the process that is
// limited, so that nobody has to keep account: of several networks, that what all of them take.
class MemoryScope {
 public:
  explicit MemoryScope(std::size_t allowed);
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;
  ~MemoryScope();

  // The limit of this thread's inmost scope; 0 if there is none.
  static std::size_t Allowed();

  // Throws MemoryLimitExceeded if `bytes` more are more than that. Small ones are looked at once
  // there are enough of them.
  static void Check(std::size_t bytes);

 private:
  const std::size_t outer_;
};

}  // namespace tessera
