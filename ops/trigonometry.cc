// Functions of angles and hyperbolic functions that networks hardly compute: plain loops. (Sin, Cos
// and Tanh are in ops/unary.cc.)
// https://onnx.ai/onnx/operators/ : Acos, Acosh, Asin, Asinh, Atan, Atanh, Cosh, Sinh, Tan.
#include <cmath>

#include "ops/elements.h"
#include "ops/map_kernel.h"
#include "ops/op.h"

namespace tessera {
namespace {

// The functors of std::acos and the like.
struct Acos {
  auto operator()(auto x) const { return std::acos(x); }
};
struct Acosh {
  auto operator()(auto x) const { return std::acosh(x); }
};
struct Asin {
  auto operator()(auto x) const { return std::asin(x); }
};
struct Asinh {
  auto operator()(auto x) const { return std::asinh(x); }
};
struct Atan {
  auto operator()(auto x) const { return std::atan(x); }
};
struct Atanh {
  auto operator()(auto x) const { return std::atanh(x); }
};
struct Cosh {
  auto operator()(auto x) const { return std::cosh(x); }
};
struct Sinh {
  auto operator()(auto x) const { return std::sinh(x); }
};
struct Tan {
  auto operator()(auto x) const { return std::tan(x); }
};

void InferFloat(const InferContext& context) {
  RequireType(context.Input(0).dtype, FloatTypes());
  InferSameAsInput0(context);
}

template <typename Function>
constexpr OpDef FloatOp(std::string_view type, int first_opset) {
  return {
      .type = type,
      .min_inputs = 1,
      .max_inputs = 1,
      .infer = InferFloat,
      .prepare = PrepareMap<Function, FloatTypes>,
      .layouts = FollowInput0,
      .field = PointwiseField,
      .first_opset = first_opset,
  };
}

}  // namespace

extern const OpDef kAcosOp, kAcoshOp, kAsinOp, kAsinhOp, kAtanOp, kAtanhOp, kCoshOp, kSinhOp,
    kTanOp;
const OpDef kAcosOp = FloatOp<Acos>("Acos", 7);
const OpDef kAcoshOp = FloatOp<Acosh>("Acosh", 9);
const OpDef kAsinOp = FloatOp<Asin>("Asin", 7);
const OpDef kAsinhOp = FloatOp<Asinh>("Asinh", 9);
const OpDef kAtanOp = FloatOp<Atan>("Atan", 7);
const OpDef kAtanhOp = FloatOp<Atanh>("Atanh", 9);
const OpDef kCoshOp = FloatOp<Cosh>("Cosh", 9);
const OpDef kSinhOp = FloatOp<Sinh>("Sinh", 9);
const OpDef kTanOp = FloatOp<Tan>("Tan", 7);

}  // namespace tessera
