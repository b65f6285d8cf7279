// Comparisons and logic: elementwise with a bool result.
// https://onnx.ai/onnx/operators/ : And, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Not,
// Or, Xor.
#include <functional>

#include "ops/elements.h"
#include "ops/map_kernel.h"
#include "ops/op.h"
#include "ops/pair_kernel.h"

namespace tessera {
namespace {

// Function is a functor type such as std::less<>, Types the element types it is defined for.
template <typename Function, typename Types>
std::unique_ptr<Kernel> PrepareCompare(const PrepareContext& context) {
  return MakePairKernel("compare", context,
                        Dispatch(context.inputs[0].dtype, Types(), [](auto tag) -> PairRow {
                          return PairElements<typename decltype(tag)::type, bool, Function>;
                        }));
}

template <typename Types, typename Before, int kSince>
void InferCompare(const InferContext& context) {
  InferPair<Types, Before, kSince>(context);
  context.outputs[0].dtype = DType::kBool;
}

void InferNot(const InferContext& context) {
  RequireType(context.Input(0).dtype, TypeList<bool>());
  InferSameAsInput0(context);
}

template <typename Function, typename Types, typename Before = Types, int kSince = 0>
constexpr OpDef CompareOp(std::string_view type, int first_opset = 1) {
  return {
      .type = type,
      .min_inputs = 2,
      .max_inputs = 2,
      .infer = InferCompare<Types, Before, kSince>,
      .prepare = PrepareCompare<Function, Types>,
      .field = BroadcastField,
      .first_opset = first_opset,
  };
}

using OldEqualTypes = TypeList<bool, std::int32_t, std::int64_t>;

}  // namespace

extern const OpDef kAndOp, kEqualOp, kGreaterOp, kGreaterOrEqualOp, kLessOp, kLessOrEqualOp, kNotOp,
    kOrOp, kXorOp;
const OpDef kAndOp = CompareOp<std::logical_and<>, TypeList<bool>>("And");
const OpDef kEqualOp = CompareOp<std::equal_to<>, AllTypes, OldEqualTypes, 11>("Equal");
const OpDef kGreaterOp = CompareOp<std::greater<>, NumberTypes, FloatTypes, 9>("Greater");
const OpDef kGreaterOrEqualOp = CompareOp<std::greater_equal<>, NumberTypes>("GreaterOrEqual", 12);
const OpDef kLessOp = CompareOp<std::less<>, NumberTypes, FloatTypes, 9>("Less");
const OpDef kLessOrEqualOp = CompareOp<std::less_equal<>, NumberTypes>("LessOrEqual", 12);
const OpDef kNotOp = {
    .type = "Not",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferNot,
    .prepare = PrepareMap<std::logical_not<>, TypeList<bool>>,
    .field = PointwiseField,
};
const OpDef kOrOp = CompareOp<std::logical_or<>, TypeList<bool>>("Or");
const OpDef kXorOp = CompareOp<std::not_equal_to<>, TypeList<bool>>("Xor");

}  // namespace tessera
