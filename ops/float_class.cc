// Which elements are not finite numbers.
// https://onnx.ai/onnx/operators/ : IsInf, IsNaN.
#include <cmath>
#include <limits>

#include "ops/elements.h"
#include "ops/map_kernel.h"
#include "ops/op.h"

namespace tessera {
namespace {

template <typename Before, int kSince>
void InferFloatClass(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  RequireType(in.dtype, context.node.opset, Before(), kSince, FloatTypes());
  context.SetOutput(0, DType::kBool, in.shape);
}

std::unique_ptr<Kernel> PrepareIsNan(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) {
    return MakeMapKernel("is_nan", context, [](const void* in, void* out, std::int64_t n) {
      MapElements<typename decltype(tag)::type, bool>([](auto x) { return std::isnan(x); }, in, out,
                                                      n);
    });
  });
}

std::unique_ptr<Kernel> PrepareIsInf(const PrepareContext& context) {
  const bool positive = context.node.attributes.Int("detect_positive", 1) != 0;
  const bool negative = context.node.attributes.Int("detect_negative", 1) != 0;
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) {
    return MakeMapKernel("is_inf", context, [=](const void* in, void* out, std::int64_t n) {
      const auto test = [=](auto x) {
        constexpr auto kInfinity = std::numeric_limits<decltype(x)>::infinity();
        return (positive && x == kInfinity) || (negative && x == -kInfinity);
      };
      MapElements<typename decltype(tag)::type, bool>(test, in, out, n);
    });
  });
}

}  // namespace

extern const OpDef kIsInfOp, kIsNaNOp;
const OpDef kIsInfOp = {
    .type = "IsInf",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferFloatClass<TypeList<float, double>, 20>,
    .prepare = PrepareIsInf,
    .field = PointwiseField,
    .first_opset = 10,
};
const OpDef kIsNaNOp = {
    .type = "IsNaN",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferFloatClass<FloatTypes, 0>,
    .prepare = PrepareIsNan,
    .field = PointwiseField,
    .first_opset = 9,
};

}  // namespace tessera
