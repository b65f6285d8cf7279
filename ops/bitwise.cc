// Bits of integers.
// https://onnx.ai/onnx/operators/ : BitShift, BitwiseAnd, BitwiseNot, BitwiseOr, BitwiseXor.
#include <functional>
#include <limits>
#include <string>

#include "ops/elements.h"
#include "ops/map_kernel.h"
#include "ops/op.h"
#include "ops/pair_kernel.h"

namespace tessera {
namespace {

using UnsignedTypes = TypeList<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;

// All bits are out of the way where the shift is as long as the type; C++ leaves that open.
struct ShiftLeft {
  template <typename T>
  T operator()(T value, T bits) const {
    return bits < std::numeric_limits<T>::digits ? static_cast<T>(value << bits) : T{0};
  }
};
struct ShiftRight {
  template <typename T>
  T operator()(T value, T bits) const {
    return bits < std::numeric_limits<T>::digits ? static_cast<T>(value >> bits) : T{0};
  }
};

void InferBitShift(const InferContext& context) {
  const std::string direction = context.node.attributes.String("direction", "");
  Require(direction == "LEFT" || direction == "RIGHT", "unknown direction '", direction, "'");
  InferPair<UnsignedTypes>(context);
}

std::unique_ptr<Kernel> PrepareBitShift(const PrepareContext& context) {
  return context.node.attributes.String("direction", "") == "LEFT"
             ? PreparePair<ShiftLeft, UnsignedTypes>(context)
             : PreparePair<ShiftRight, UnsignedTypes>(context);
}

void InferBitwiseNot(const InferContext& context) {
  RequireType(context.Input(0).dtype, IntegerTypes());
  InferSameAsInput0(context);
}

template <typename Function>
constexpr OpDef BitwiseOp(std::string_view type) {
  return {
      .type = type,
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = InferPair<IntegerTypes>,
      .prepare = PreparePair<Function, IntegerTypes>,
      .field = BroadcastField,
      .first_opset = 18,
  };
}

}  // namespace

extern const OpDef kBitShiftOp, kBitwiseAndOp, kBitwiseNotOp, kBitwiseOrOp, kBitwiseXorOp;
const OpDef kBitShiftOp = {
    .type = "BitShift",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferBitShift,
    .prepare = PrepareBitShift,
    .field = BroadcastField,
    .first_opset = 11,
};
const OpDef kBitwiseAndOp = BitwiseOp<std::bit_and<>>("BitwiseAnd");
const OpDef kBitwiseNotOp = {
    .type = "BitwiseNot",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferBitwiseNot,
    .prepare = PrepareMap<std::bit_not<>, IntegerTypes>,
    .field = PointwiseField,
    .first_opset = 18,
};
const OpDef kBitwiseOrOp = BitwiseOp<std::bit_or<>>("BitwiseOr");
const OpDef kBitwiseXorOp = BitwiseOp<std::bit_xor<>>("BitwiseXor");

}  // namespace tessera
