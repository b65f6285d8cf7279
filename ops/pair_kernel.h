// The kernel of operators that compute each element of output 0 from one element of either of two
// inputs of one type, which are broadcast; row-major. (Arithmetic, which has vector kernels and
// blocked layouts, is in ops/binary.cc.)
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {

// Computes n elements. a_step and b_step are 1 for an operand that moves along the row, 0 for one
// that stays.
using PairRow = void (*)(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step,
                         void* out, std::int64_t n);

// `name` is a literal.
std::unique_ptr<Kernel> MakePairKernel(std::string_view name, const PrepareContext& context,
                                       PairRow row);

// The PairRow of a Function without state, from pairs of T to To.
template <typename T, typename To, typename Function>
void PairElements(const void* a, std::int64_t a_step, const void* b, std::int64_t b_step, void* out,
                  std::int64_t n) {
  using C = ComputeType<T>;
  const Function function;
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  To* to = static_cast<To*>(out);
  // Loops of their own, which the compiler vectorises.
  if (b_step == 0) {
    const C other = *y;
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<To>(function(static_cast<C>(x[i * a_step]), other));
    }
  } else if (a_step == 0) {
    const C other = *x;
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<To>(function(other, static_cast<C>(y[i])));
    }
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<To>(function(static_cast<C>(x[i]), static_cast<C>(y[i])));
    }
  }
}

// Output 0 has the inputs' type and the shape that they are broadcast to; other types than those of
// the list (before opset kSince: of Before), or two of them, are an Error.
template <typename Types, typename Before = Types, int kSince = 0>
void InferPair(const InferContext& context) {
  const TensorInfo& a = context.Input(0);
  const TensorInfo& b = context.Input(1);
  RequireType(a.dtype, context.node.opset, Before(), kSince, Types());
  Require(a.dtype == b.dtype, "operands of types ", a.dtype, " and ", b.dtype);
  context.SetOutput(0, a.dtype, BroadcastShapes(a.shape, b.shape));
}

// The kernel for results of the inputs' type, which is one of the list.
template <typename Function, typename Types>
std::unique_ptr<Kernel> PreparePair(const PrepareContext& context) {
  return MakePairKernel("pair", context,
                        Dispatch(context.inputs[0].dtype, Types(), [](auto tag) -> PairRow {
                          using T = typename decltype(tag)::type;
                          return PairElements<T, T, Function>;
                        }));
}

}  // namespace tessera
