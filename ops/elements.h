// C++ types for tensor elements, and the choice of a template by element type at plan time.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/error.h"
#include "ops/tensor.h"

namespace tessera {

// An IEEE 754 binary16 number in memory; arithmetic converts it to float and back.
class Half {
 public:
  Half() = default;
  Half(float value) : bits_(FloatToHalf(value)) {}       // NOLINT: implicit like the built-in types
  operator float() const { return HalfToFloat(bits_); }  // NOLINT

 private:
  std::uint16_t bits_;
};

template <>
constexpr DType DTypeOf<Half>() {
  return DType::kFloat16;
}

// The type that values of an element type are computed in.
template <typename T>
using ComputeType = std::conditional_t<std::is_same_v<T, Half>, float, T>;

template <typename... Ts>
struct TypeList {};

using FloatTypes = TypeList<float, double, Half>;
using NumberTypes =
    TypeList<float, double, Half, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
             std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
using AllTypes =
    TypeList<float, double, Half, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
             std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>;
// One type for every element size: for operators that only move data.
using SizeTypes = TypeList<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;

template <typename T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>()) for the T of the list that has type `dtype`. Throws Error if there is none.
template <typename First, typename... Rest, typename F>
auto Dispatch(DType dtype, TypeList<First, Rest...>, F&& f) {
  if (dtype == DTypeOf<First>()) return f(TypeTag<First>());
  if constexpr (sizeof...(Rest) == 0) {
    throw Error(StrCat("element type ", dtype, " is not supported"));
  } else {
    return Dispatch(dtype, TypeList<Rest...>(), f);
  }
}

// The same by the size of the element.
template <typename F>
auto DispatchSize(DType dtype, F&& f) {
  switch (SizeOf(dtype)) {
    case 1:
      return f(TypeTag<std::uint8_t>());
    case 2:
      return f(TypeTag<std::uint16_t>());
    case 4:
      return f(TypeTag<std::uint32_t>());
    default:
      return f(TypeTag<std::uint64_t>());
  }
}

// Throws Error unless `dtype` is in the list.
template <typename List>
void RequireType(DType dtype, List list) {
  Dispatch(dtype, list, [](auto) {});
}

}  // namespace tessera
