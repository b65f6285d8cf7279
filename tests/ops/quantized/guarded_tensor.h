// Tensors that end where the process may not read or write any more.
#pragma once

#include <cstring>

#include "ops/tensor.h"
#include "tests/ops/quantized/guarded_bytes.h"

namespace tessera {

class GuardedTensor {
 public:
  // Filled with the byte `fill`.
  GuardedTensor(DType type, const Shape& shape, Layout layout, int fill = 0xFF)
      : memory_(StorageBytes(type, shape, layout)), view_{type, layout, shape, memory_.data()} {
    std::memset(memory_.data(), fill, StorageBytes(type, shape, layout));
  }
  // A copy of `t`.
  explicit GuardedTensor(const Tensor& t) : memory_(t), view_(memory_.ViewOf(t)) {}

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
  GuardedBytes memory_;
  TensorView view_;
};

}  // namespace tessera
