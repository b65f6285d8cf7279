// OneHot: indices become vectors along a new axis, with one value at the index and another value
// everywhere else. Indices may be negative; those out of range give vectors of the other value
// only. https://onnx.ai/onnx/operators/onnx__OneHot.html
#include <algorithm>
#include <limits>
#include <type_traits>

#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

// Indices and depth are of any number type.
template <typename T>
std::int64_t ToInt64(T value) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
  } else {
    return ConvertElement<std::int64_t>(static_cast<ComputeType<T>>(value));
  }
}

int NewAxis(const OpNode& node, const Shape& indices) {
  return NormalizeAxis(node.attributes.Int("axis", -1), indices.rank() + 1);
}

void InferOneHot(const InferContext& context) {
  const TensorInfo& indices = context.Input(0);
  const TensorInfo& depth = context.Input(1);
  const TensorInfo& values = context.Input(2);
  RequireType(indices.dtype, NumberTypes());
  Require(depth.shape.NumElements() == 1, "depth is ", depth.shape, " instead of one number");
  Require(values.shape == Shape{2}, "values are ", values.shape, " instead of two");
  const int axis = NewAxis(context.node, indices.shape);
  const std::int64_t n = Dispatch(depth.dtype, NumberTypes(), [&](auto tag) {
    return ToInt64(*context.Constant(1).data<const typename decltype(tag)::type>());
  });
  Require(n >= 1, "depth ", n, " is less than 1");
  Shape out;
  for (int d = 0; d < axis; ++d) out.PushBack(indices.shape[d]);
  out.PushBack(n);
  for (int d = axis; d < indices.shape.rank(); ++d) out.PushBack(indices.shape[d]);
  context.SetOutput(0, values.dtype, out);
}

class OneHotKernel final : public Kernel {
 public:
  explicit OneHotKernel(const PrepareContext& context) {
    const Shape& indices = context.inputs[0].shape;
    const int axis = NewAxis(context.node, indices);
    outer_ = indices.NumElements(0, axis);
    inner_ = indices.NumElements(axis, indices.rank());
    depth_ = context.outputs[0].shape[axis];
  }
  std::string_view name() const override { return "one_hot"; }
  void Run(const RunContext& context) const override {
    DispatchSize(context.outputs[0].dtype, [&](auto value_tag) {
      using T = typename decltype(value_tag)::type;
      const T* values = context.inputs[2].data<const T>();
      T* out = context.outputs[0].data<T>();
      const T off = values[0], on = values[1];
      Dispatch(context.inputs[0].dtype, NumberTypes(), [&](auto index_tag) {
        const auto* indices = context.inputs[0].data<const typename decltype(index_tag)::type>();
        context.parallel.For(outer_, [&](std::int64_t o, int) {
          T* to = out + o * depth_ * inner_;
          std::fill_n(to, depth_ * inner_, off);
          for (std::int64_t i = 0; i < inner_; ++i) {
            const std::int64_t index = ToInt64(indices[o * inner_ + i]);
            if (index < -depth_ || index >= depth_) continue;
            to[(index < 0 ? index + depth_ : index) * inner_ + i] = on;
          }
        });
      });
    });
  }

 private:
  std::int64_t outer_, inner_, depth_;
};

}  // namespace

extern const OpDef kOneHotOp;
const OpDef kOneHotOp = {
    .type = "OneHot",
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = InferOneHot,
    .prepare = PrepareKernel<OneHotKernel>,
    .first_opset = 9,
};

}  // namespace tessera
