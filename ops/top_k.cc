// TopK: the k highest or lowest elements along an axis, in order, and where they were. Of equal
// elements the one with the smaller index comes first.
// https://onnx.ai/onnx/operators/onnx__TopK.html
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/axis_view.h"
#include "ops/elements.h"
#include "ops/op.h"

namespace tessera {
namespace {

int Axis(const OpNode& node, int rank) {
  return NormalizeAxis(node.attributes.Int("axis", -1), rank);
}

void InferTopK(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  const OpNode& node = context.node;
  RequireType(in.dtype, node.opset, FloatTypes(), 11, NumberTypes());
  const int axis = Axis(node, in.shape.rank());
  std::int64_t k = -1;
  if (node.opset < 10) {
    Require(!context.HasInput(1), "input K is of later opsets");
    Require(node.attributes.Has("k"), "attribute k is missing");
    k = node.attributes.Int("k", 0);
  } else {
    RequireType(context.Input(1).dtype, TypeList<std::int64_t>());
    const std::vector<std::int64_t> values = ToInt64s(context.Constant(1).view());
    Require(values.size() == 1, "K has ", values.size(), " elements");
    k = values[0];
  }
  Require(k >= 0 && k <= in.shape[axis], "cannot take the top ", k, " along axis ", axis, " of ",
          in.shape);
  Shape out = in.shape;
  out[axis] = k;
  context.SetOutput(0, in.dtype, out);
  if (context.outputs.size() > 1) context.SetOutput(1, DType::kInt64, out);
}

template <typename T>
class TopKKernel final : public Kernel {
 public:
  TopKKernel(const PrepareContext& context, std::int64_t k)
      : view_(context.inputs[0].shape, Axis(context.node, context.inputs[0].shape.rank())),
        k_(k),
        largest_(context.node.attributes.Int("largest", 1) != 0) {}
  std::string_view name() const override { return "top_k"; }
  std::size_t ScratchBytesPerThread() const override {
    return static_cast<std::size_t>(view_.count) * sizeof(Entry);
  }
  void Run(const RunContext& context) const override {
    if (k_ == 0) return;
    view_.ForLines(context.parallel,
                   [&](std::int64_t o, std::int64_t column, std::int64_t n, int thread) {
                     for (std::int64_t j = column; j < column + n; ++j) Line(context, o, j, thread);
                   });
  }

 private:
  using C = ComputeType<T>;
  struct Entry {
    C value;
    std::int64_t index;
  };

  // NaN is above everything.
  static bool IsLess(C a, C b) {
    if constexpr (std::is_floating_point_v<C>) {
      if (std::isnan(b)) return !std::isnan(a);
    }
    return a < b;
  }

  void Line(const RunContext& context, std::int64_t o, std::int64_t column, int thread) const {
    const T* in = context.inputs[0].data<const T>() + view_.Offset(o, column);
    Entry* entries = context.Scratch<Entry>(thread);
    for (std::int64_t i = 0; i < view_.count; ++i) {
      entries[i] = {static_cast<C>(in[i * view_.inner]), i};
    }
    const auto before = [this](const Entry& a, const Entry& b) {
      if (IsLess(a.value, b.value)) return !largest_;
      if (IsLess(b.value, a.value)) return largest_;
      return a.index < b.index;
    };
    if (k_ < view_.count) std::nth_element(entries, entries + k_, entries + view_.count, before);
    std::sort(entries, entries + k_, before);
    const std::int64_t start = o * k_ * view_.inner + column;
    const bool wants_values = context.HasOutput(0);
    const bool wants_indices = context.HasOutput(1);
    for (std::int64_t i = 0; i < k_; ++i) {
      const std::int64_t at = start + i * view_.inner;
      if (wants_values) context.outputs[0].data<T>()[at] = static_cast<T>(entries[i].value);
      if (wants_indices) context.outputs[1].data<std::int64_t>()[at] = entries[i].index;
    }
  }

  AxisView view_;
  std::int64_t k_;
  bool largest_;
};

std::unique_ptr<Kernel> PrepareTopK(const PrepareContext& context) {
  const TensorInfo& out = context.outputs[context.outputs[0].present ? 0 : 1];
  const std::int64_t k = out.shape[Axis(context.node, out.shape.rank())];
  return Dispatch(context.inputs[0].dtype, NumberTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<TopKKernel<typename decltype(tag)::type>>(context, k);
  });
}

}  // namespace

extern const OpDef kTopKOp;
const OpDef kTopKOp = {
    .type = "TopK",
    .min_inputs = 1,
    .max_inputs = 2,
    .infer = InferTopK,
    .prepare = PrepareTopK,
    .can_omit_output0 = true,
};

}  // namespace tessera
