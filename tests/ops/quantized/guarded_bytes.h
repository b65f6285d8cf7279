// Memory for tests that ends where the process may neither read nor write.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "ops/tensor.h"

namespace tessera {

class GuardedBytes {
 public:
  // Filled with 0xA5.
  explicit GuardedBytes(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    size_ = RoundUp(bytes, page) + page;
    void* const memory =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    EXPECT_EQ(mprotect(memory_ + size_ - page, page, PROT_NONE), 0);
    begin_ = memory_ + (size_ - page - bytes);
    std::memset(begin_, 0xA5, bytes);
  }
  // A copy of a tensor's memory, if it has any.
  explicit GuardedBytes(const Tensor& t) : GuardedBytes(t.view().present() ? t.bytes() : 0) {
    if (t.view().present()) std::memcpy(begin_, t.data<std::byte>(), t.bytes());
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(memory_, size_); }

  // The same tensor here.
  TensorView ViewOf(const Tensor& t) const {
    TensorView view = t.view();
    if (view.present()) view.bytes = begin_;
    return view;
  }
  std::byte* data() const { return begin_; }

 private:
  std::byte* memory_ = nullptr;
  std::byte* begin_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tessera
