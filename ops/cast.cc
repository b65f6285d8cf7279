// Cast between all element types.
// https://onnx.ai/onnx/operators/onnx__Cast.html
#include <algorithm>
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

template <typename From, typename To>
void ConvertRange(const void* in, void* out, std::int64_t begin, std::int64_t end) {
  const From* from = static_cast<const From*>(in);
  To* to = static_cast<To*>(out);
  for (std::int64_t i = begin; i < end; ++i) {
    to[i] =
        static_cast<To>(ConvertElement<ComputeType<To>>(static_cast<ComputeType<From>>(from[i])));
  }
}

class CastKernel final : public Kernel {
 public:
  using Function = void (*)(const void*, void*, std::int64_t, std::int64_t);
  CastKernel(Function function, bool same_size) : function_(function), same_size_(same_size) {}
  std::string_view name() const override { return "cast"; }
  bool CanOverwriteInput(std::size_t) const override { return same_size_; }
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

extern const OpDef kCastOp;
const OpDef kCastOp = {
    .type = "Cast",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferCast,
    .prepare = PrepareCast,
    .field = PointwiseField,
};

}  // namespace tessera
