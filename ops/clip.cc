// Clip: min(max(x, lo), hi). The bounds are attributes before opset 11, optional inputs since;
// those that are left out are the least and the greatest finite number.
// https://onnx.ai/onnx/operators/onnx__Clip.html
#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/element_loops.h"
#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op.h"

namespace tessera {
namespace {

void InferClip(const InferContext& context) {
  const TensorInfo& x = context.Input(0);
  RequireType(x.dtype, context.node.opset, FloatTypes(), 12, NumberTypes());
  Require(context.node.opset >= 11 || context.inputs.size() == 1,
          "bounds are attributes before opset 11, not inputs");
  for (std::size_t i = 1; i < context.inputs.size(); ++i) {
    if (!context.HasInput(i)) continue;
    Require(context.inputs[i].dtype == x.dtype, "a bound of type ", context.inputs[i].dtype,
            " for values of type ", x.dtype);
    Require(context.inputs[i].shape.NumElements() == 1, "a bound has shape ",
            context.inputs[i].shape, " instead of one element");
  }
  InferSameAsInput0(context);
}

template <typename T>
class ClipKernel final : public Kernel {
 public:
  // `lo` and `hi` hold where the inputs 1 and 2 are absent.
  ClipKernel(ElementLoops loops, T lo, T hi, bool vector)
      : loops_(loops), lo_(lo), hi_(hi), vector_(vector) {}

  std::string_view name() const override { return vector_ ? "clip_vector" : "clip_plain"; }
  bool CanOverwriteInput(std::size_t i) const override { return i == 0; }
  void Run(const RunContext& context) const override {
    const auto bound = [&](std::size_t i, T fallback) {
      return context.HasInput(i) ? *context.inputs[i].data<const T>() : fallback;
    };
    using C = ComputeType<T>;
    const C lo = bound(1, lo_), hi = bound(2, hi_);
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    loops_.Run(context.parallel, [&](const ElementLoops::Offsets& at, std::int64_t n) {
      const T* from = in + at[1];
      T* to = out + at[0];
      if constexpr (std::is_same_v<T, float>) {
        if (vector_) return ApplyUnary({UnaryFn::kClip, lo, hi}, from, to, n);
      }
      for (std::int64_t i = 0; i < n; ++i) {
        to[i] = static_cast<T>(std::min(std::max(static_cast<C>(from[i]), lo), hi));
      }
    });
  }

 private:
  ElementLoops loops_;
  T lo_, hi_;
  bool vector_;
};

std::unique_ptr<Kernel> PrepareClip(const PrepareContext& context) {
  const TensorInfo& in = context.inputs[0];
  const ElementLoops loops = ElementLoops::Same(in.shape, in.layout);
  return Dispatch(in.dtype, NumberTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    using T = typename decltype(tag)::type;
    using Limits = std::numeric_limits<ComputeType<T>>;
    T lo = Limits::lowest(), hi = Limits::max();
    if constexpr (std::is_floating_point_v<ComputeType<T>>) {
      if (context.node.opset < 11) {
        const Attributes& a = context.node.attributes;
        lo = static_cast<T>(a.Float("min", static_cast<float>(lo)));
        hi = static_cast<T>(a.Float("max", static_cast<float>(hi)));
      }
    }
    return std::make_unique<ClipKernel<T>>(loops, lo, hi, !context.reference);
  });
}

}  // namespace

extern const OpDef kClipOp;
const OpDef kClipOp = {
    .type = "Clip",
    .min_inputs = 1,
    .max_inputs = 3,
    .infer = InferClip,
    .prepare = PrepareClip,
    .layouts = FollowInput0,
    .field = PointwiseField,
};

}  // namespace tessera
