// C++ types for tensor elements, and the choice of a template by element type at plan time.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
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
using IntegerTypes = TypeList<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                              std::uint16_t, std::uint32_t, std::uint64_t>;
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

// Whether `dtype` is in the list.
template <typename... Ts>
constexpr bool Contains(TypeList<Ts...>, DType dtype) {
  return ((dtype == DTypeOf<Ts>()) || ...);
}

// Throws Error unless `dtype` is in the list.
template <typename List>
void RequireType(DType dtype, List list) {
  Dispatch(dtype, list, [](auto) {});
}

// The same for an operator that takes more types from opset `since` on: those of `list`, and those
// of `before` until then. `opset` is the model's.
template <typename Before, typename List>
void RequireType(DType dtype, int opset, Before before, int since, List list) {
  RequireType(dtype, list);
  Require(opset >= since || Contains(before, dtype), "element type ", dtype,
          " is not supported before opset ", since);
}

// `value` as another type. Floats are truncated to integers; those out of range saturate, and NaN
// becomes 0.
template <typename To, typename From>
To ConvertElement(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    using Limits = std::numeric_limits<To>;
    // 2^digits is exact in every float type, unlike the greatest integer itself.
    const From end = std::ldexp(From{1}, Limits::digits);
    if (value >= end) return Limits::max();
    if (value > static_cast<From>(Limits::lowest()) - 1) return static_cast<To>(value);
    if (std::isnan(value)) return To{0};
    return Limits::lowest();
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace tessera
