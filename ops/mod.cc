// Mod: the remainder of a division, with the sign of the divisor (fmod = 0, integers only) or, as
// in C, of the dividend (fmod = 1). What integers leave when they are divided by 0 is 0 here.
// https://onnx.ai/onnx/operators/onnx__Mod.html
#include <cmath>
#include <type_traits>

#include "ops/elements.h"
#include "ops/op.h"
#include "ops/pair_kernel.h"

namespace tessera {
namespace {

struct TruncatedRemainder {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fmod(a, b);
    } else {
      if (b == 0) return 0;
      // The lowest integer by -1 would trap.
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
      return static_cast<T>(a % b);
    }
  }
};

struct FlooredRemainder {
  template <typename T>
  T operator()(T a, T b) const {
    const T rest = TruncatedRemainder()(a, b);
    if constexpr (std::is_signed_v<T>) {
      if (rest != 0 && (rest < 0) != (b < 0)) return static_cast<T>(rest + b);
    }
    return rest;
  }
};

bool Truncates(const OpNode& node) { return node.attributes.Int("fmod", 0) != 0; }

void InferMod(const InferContext& context) {
  InferPair<NumberTypes>(context);
  const DType dtype = context.Input(0).dtype;
  Require(Truncates(context.node) || !Contains(FloatTypes(), dtype), "fmod has to be 1 for ",
          dtype);
}

std::unique_ptr<Kernel> PrepareMod(const PrepareContext& context) {
  return Truncates(context.node) ? PreparePair<TruncatedRemainder, NumberTypes>(context)
                                 : PreparePair<FlooredRemainder, IntegerTypes>(context);
}

}  // namespace

extern const OpDef kModOp;
const OpDef kModOp = {
    .type = "Mod",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferMod,
    .prepare = PrepareMod,
    .field = BroadcastField,
    .first_opset = 10,
};

}  // namespace tessera
