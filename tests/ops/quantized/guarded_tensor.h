// Tensors that end where the process may not read or write any more.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "ops/tensor.h"

namespace tessera {

class GuardedTensor {
 public:
  // Filled with the byte `fill`.
  GuardedTensor(DType type, const Shape& shape, Layout layout, int fill = 0xFF) {
    const std::size_t bytes = StorageBytes(type, shape, layout);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable = RoundUp(bytes, page);
    size_ = usable + page;
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    auto* const end = static_cast<std::uint8_t*>(memory_) + usable;
    mprotect(end, page, PROT_NONE);
    std::memset(memory_, fill, usable);
    view_ = {type, layout, shape, end - bytes};
  }
  // A copy of `t`.
  explicit GuardedTensor(const Tensor& t) : GuardedTensor(t.dtype(), t.shape(), t.layout()) {
    std::memcpy(view_.bytes, t.data<std::byte>(), t.bytes());
  }
  ~GuardedTensor() { munmap(memory_, size_); }
  GuardedTensor(const GuardedTensor&) = delete;
  GuardedTensor& operator=(const GuardedTensor&) = delete;

  Tensor Copy() const {
    Tensor t(view_.dtype, view_.shape, view_.layout);
    std::memcpy(t.data<std::byte>(), view_.bytes, t.bytes());
    return t;
  }
  const TensorView& view() const { return view_; }
  template <typename T>
  T* data() const {
    return view_.data<T>();
  }

 private:
  void* memory_;
  std::size_t size_;
  TensorView view_;
};

}  // namespace tessera
