// Cast and CastLike between all element types. Floats are truncated to integers (see
// ConvertElement for what the specification leaves open) and rounded to nearest even to other
// floats; integers keep their low bits.
// https://onnx.ai/onnx/operators/onnx__Cast.html
// https://onnx.ai/onnx/operators/onnx__CastLike.html
#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

DType TargetType(const OpNode& node) {
  const std::int64_t to = node.attributes.Int("to", 0);
  const auto dtype = DTypeFromOnnx(to);
  Require(dtype.has_value(), "cannot cast to ONNX element type ", to);
  return *dtype;
}

void InferCast(const InferContext& context) {
  context.SetOutput(0, TargetType(context.node), context.Input(0).shape);
}

// CastLike takes the type of its second input.
void InferCastLike(const InferContext& context) {
  context.SetOutput(0, context.Input(1).dtype, context.Input(0).shape);
}

// The float that lies next to `value` and has an odd last bit, unless a float is equal to it. What
// is rounded to nearest from that is as if it were rounded once: float has more than two bits more
// than half.
float RoundToOdd(double value) {
  const auto near = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(near);
  const auto exact = static_cast<double>(near);
  if (exact == value || std::isnan(value) || (bits & 1) != 0) return near;
  return std::bit_cast<float>(std::abs(exact) > std::abs(value) ? bits - 1 : bits + 1);
}

template <typename From, typename To>
void ConvertRange(const void* in, void* out, std::int64_t begin, std::int64_t end) {
  const From* from = static_cast<const From*>(in);
  To* to = static_cast<To*>(out);
  for (std::int64_t i = begin; i < end; ++i) {
    if constexpr (std::is_same_v<From, double> && std::is_same_v<To, Half>) {
      to[i] = RoundToOdd(from[i]);
    } else {
      const auto value = static_cast<ComputeType<From>>(from[i]);
      to[i] = static_cast<To>(ConvertElement<ComputeType<To>>(value));
    }
  }
}

class CastKernel final : public Kernel {
 public:
  using Function = void (*)(const void*, void*, std::int64_t, std::int64_t);
  CastKernel(Function function, bool same_size) : function_(function), same_size_(same_size) {}
  std::string_view name() const override { return "cast"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0 && same_size_; }
  void Run(const RunContext& context) const override {
    constexpr std::int64_t kGrain = 16384;
    const std::int64_t n = context.outputs[0].size();
    context.parallel.For((n + kGrain - 1) / kGrain, [&](std::int64_t task, int) {
      function_(context.inputs[0].bytes, context.outputs[0].bytes, task * kGrain,
                std::min(n, (task + 1) * kGrain));
    });
  }

 private:
  Function function_;
  bool same_size_;
};

std::unique_ptr<Kernel> PrepareCast(const PrepareContext& context) {
  const DType from = context.inputs[0].dtype, to = context.outputs[0].dtype;
  const auto function = Dispatch(from, AllTypes(), [&](auto source) {
    return Dispatch(to, AllTypes(), [](auto target) -> CastKernel::Function {
      // GCC does not vectorise loads of bool, which is a byte of 0 or 1.
      using From = typename decltype(source)::type;
      using Byte = std::conditional_t<std::is_same_v<From, bool>, std::uint8_t, From>;
      return ConvertRange<Byte, typename decltype(target)::type>;
    });
  });
  return std::make_unique<CastKernel>(function, SizeOf(from) == SizeOf(to));
}

}  // namespace

extern const OpDef kCastLikeOp, kCastOp;
const OpDef kCastLikeOp = {
    .type = "CastLike",
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = InferCastLike,
    .prepare = PrepareCast,
    .field = BroadcastField,
    .first_opset = 15,
};
const OpDef kCastOp = {
    .type = "Cast",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferCast,
    .prepare = PrepareCast,
    .field = PointwiseField,
};

}  // namespace tessera
