// Range: start, start + delta, ... up to a limit, which is left out.
// https://onnx.ai/onnx/operators/onnx__Range.html
#include <cmath>
#include <type_traits>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

using RangeTypes = TypeList<float, double, std::int16_t, std::int32_t, std::int64_t>;

// Throws Error for a delta of 0, and for numbers whose count is no number.
template <typename T>
std::int64_t Count(T start, T limit, T delta) {
  Require(delta != 0, "delta is 0");
  if constexpr (std::is_integral_v<T>) {
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    // Differences that int64 need not hold.
    const auto from = static_cast<std::uint64_t>(start), to = static_cast<std::uint64_t>(limit);
    const auto step = static_cast<std::uint64_t>(delta);
    const std::uint64_t distance = delta > 0 ? to - from : from - to;
    const std::uint64_t count = (distance - 1) / (delta > 0 ? step : 0 - step) + 1;
    Require(count <= INT64_MAX, "a range of ", count, " numbers");
    return static_cast<std::int64_t>(count);
  } else {
    const double count = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                   static_cast<double>(delta));
    Require(count < 0x1p62, "a range of ", count, " numbers");  // NaN too
    return count > 0 ? static_cast<std::int64_t>(count) : 0;
  }
}

void InferRange(const InferContext& context) {
  const DType dtype = context.Input(0).dtype;
  for (std::size_t i = 0; i < 3; ++i) {
    const TensorInfo& in = context.Input(i);
    Require(in.dtype == dtype && in.shape.NumElements() == 1, "input ", i, " is ", in.dtype, " ",
            in.shape, " instead of a ", dtype);
  }
  const std::int64_t count = Dispatch(dtype, RangeTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto value = [&](std::size_t i) { return *context.Constant(i).data<const T>(); };
    return Count<T>(value(0), value(1), value(2));
  });
  context.SetOutput(0, dtype, Shape{count});
}

class RangeKernel final : public Kernel {
 public:
  std::string_view name() const override { return "range"; }
  void Run(const RunContext& context) const override {
    const TensorView& out = context.outputs[0];
    Dispatch(out.dtype, RangeTypes(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      // Integers wrap around on the way to results that they hold; floats are rounded once.
      using C = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
      const auto start = static_cast<C>(*context.inputs[0].data<const T>());
      const auto delta = static_cast<C>(*context.inputs[2].data<const T>());
      for (std::int64_t i = 0; i < out.size(); ++i) {
        out.data<T>()[i] = static_cast<T>(start + static_cast<C>(i) * delta);
      }
    });
  }
};

std::unique_ptr<Kernel> PrepareRange(const PrepareContext&) {
  return std::make_unique<RangeKernel>();
}

}  // namespace

extern const OpDef kRangeOp;
const OpDef kRangeOp = {
    .type = "Range",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = InferRange,
    .prepare = PrepareRange,
    .first_opset = 11,
};

}  // namespace tessera
