#include "ops/matmul_shapes.h"

#include "ops/error.h"

namespace tessera {

MatMulShapes::MatMulShapes(const Shape& a_shape, const Shape& b_shape) : a(a_shape), b(b_shape) {
  Require(a.rank() >= 1 && b.rank() >= 1, "A ", a, " or B ", b, " is a scalar");
  if (a_shape.rank() == 1) a = Shape{1, a_shape[0]};
  if (b_shape.rank() == 1) b = Shape{b_shape[0], 1};
  Require(a[a.rank() - 1] == b[b.rank() - 2], "A ", a_shape, " and B ", b_shape,
          " do not fit together");
  batch = BroadcastShapes(StackShape(a), StackShape(b));
  out = batch;
  if (a_shape.rank() > 1) out.PushBack(a[a.rank() - 2]);
  if (b_shape.rank() > 1) out.PushBack(b[b.rank() - 1]);
}

Shape StackShape(const Shape& s) {
  return Shape(s.dims().first(static_cast<std::size_t>(s.rank() - 2)));
}

std::int64_t MatrixOffset(const Shape& s, const Shape& batch, std::int64_t index) {
  const auto strides = RowMajorStrides(s);
  std::int64_t offset = 0;
  for (int d = batch.rank(); d-- > 0; index /= batch[d]) {
    const int own = d - (batch.rank() - (s.rank() - 2));
    if (own >= 0 && s[own] != 1)
      offset += index % batch[d] * strides[static_cast<std::size_t>(own)];
  }
  return offset;
}

}  // namespace tessera
