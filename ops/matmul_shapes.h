// How the operands of numpy's matrix product fit together: stacks of matrices that are broadcast.
// https://onnx.ai/onnx/operators/onnx__MatMul.html
#pragma once

#include <cstdint>

#include "ops/tensor.h"

namespace tessera {

// The operands as stacks of matrices: a vector gets a dimension of 1, which the output loses again.
// Throws Error for shapes that do not fit.
struct MatMulShapes {
  MatMulShapes(const Shape& a_shape, const Shape& b_shape);

  Shape a, b, batch, out;
};

// All dimensions but the last two.
Shape StackShape(const Shape& s);

// Offset of the matrix of a stack (shape `s`) that belongs to matrix `index` of the whole batch.
std::int64_t MatrixOffset(const Shape& s, const Shape& batch, std::int64_t index);

}  // namespace tessera
