// Softmax: over one axis since opset 13, over everything from an axis on before.
// https://onnx.ai/onnx/operators/onnx__Softmax.html
#include <algorithm>
#include <cmath>

#include "ops/elements.h"
#include "ops/elementwise.h"
#include "ops/op.h"

namespace tessera {
namespace {

void InferSoftmax(const InferContext& context) {
  const TensorInfo& in = context.Input(0);
  RequireType(in.dtype, FloatTypes());
  // A scalar has no axis; the one that older versions default to is then out of range as well.
  NormalizeAxis(context.node.attributes.Int("axis", context.node.opset < 13 ? 1 : -1),
                in.shape.rank());
  InferSameAsInput0(context);
}

// The tensor is seen as [outer, count, inner], with a sum over count.
template <typename T>
class SoftmaxKernel final : public Kernel {
 public:
  explicit SoftmaxKernel(const PrepareContext& context) : vector_(!context.reference) {
    const Shape& x = context.inputs[0].shape;
    const bool flattens = context.node.opset < 13;
    const int axis =
        NormalizeAxis(context.node.attributes.Int("axis", flattens ? 1 : -1), x.rank());
    outer_ = x.NumElements(0, axis);
    count_ = flattens ? x.NumElements(axis, x.rank()) : x[axis];
    inner_ = flattens ? 1 : x.NumElements(axis + 1, x.rank());
  }
  std::string_view name() const override { return "softmax"; }
  bool CanOverwriteInput(std::size_t) const override { return true; }
  void Run(const RunContext& context) const override {
    const T* in = context.inputs[0].data<const T>();
    T* out = context.outputs[0].data<T>();
    const std::int64_t groups = (inner_ + kGroup - 1) / kGroup;
    if (count_ == 0) return;
    context.parallel.For(outer_ * groups, [&](std::int64_t task, int) {
      const std::int64_t first = task % groups * kGroup;
      const std::int64_t offset = task / groups * count_ * inner_ + first;
      if (inner_ == 1) {
        Row(in + offset, out + offset);
      } else {
        Columns(in + offset, out + offset, std::min(kGroup, inner_ - first));
      }
    });
  }

 private:
  static constexpr std::int64_t kGroup = 64;  // columns that are summed side by side
  using C = ComputeType<T>;

  void Row(const T* in, T* out) const {
    C highest = static_cast<C>(in[0]);
    for (std::int64_t i = 1; i < count_; ++i) highest = std::max(highest, static_cast<C>(in[i]));
    if constexpr (std::is_same_v<T, float>) {
      if (vector_) {
        ApplyBinary(BinaryFn::kSub, {in}, {&highest, RowOperand::kScalar}, out, count_);
        ApplyUnary({UnaryFn::kExp}, out, out, count_);
        double sum = 0;
        for (std::int64_t i = 0; i < count_; ++i) sum += static_cast<double>(out[i]);
        const auto factor = static_cast<float>(1 / sum);
        ApplyBinary(BinaryFn::kMul, {out}, {&factor, RowOperand::kScalar}, out, count_);
        return;
      }
    }
    double sum = 0;
    for (std::int64_t i = 0; i < count_; ++i) {
      sum += std::exp(static_cast<double>(static_cast<C>(in[i]) - highest));
    }
    for (std::int64_t i = 0; i < count_; ++i) {
      const double e = std::exp(static_cast<double>(static_cast<C>(in[i]) - highest));
      out[i] = static_cast<T>(static_cast<C>(e / sum));
    }
  }

  void Columns(const T* in, T* out, std::int64_t n) const {
    C highest[kGroup];
    double sums[kGroup] = {};
    for (std::int64_t j = 0; j < n; ++j) highest[j] = static_cast<C>(in[j]);
    for (std::int64_t i = 1; i < count_; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        highest[j] = std::max(highest[j], static_cast<C>(in[i * inner_ + j]));
      }
    }
    for (std::int64_t i = 0; i < count_; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const C e = std::exp(static_cast<C>(in[i * inner_ + j]) - highest[j]);
        sums[j] += static_cast<double>(e);
        out[i * inner_ + j] = static_cast<T>(e);
      }
    }
    for (std::int64_t i = 0; i < count_; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        T& y = out[i * inner_ + j];
        y = static_cast<T>(static_cast<C>(static_cast<double>(static_cast<C>(y)) / sums[j]));
      }
    }
  }

  bool vector_;
  std::int64_t outer_, count_, inner_;
};

std::unique_ptr<Kernel> PrepareSoftmax(const PrepareContext& context) {
  return Dispatch(context.inputs[0].dtype, FloatTypes(), [&](auto tag) -> std::unique_ptr<Kernel> {
    return std::make_unique<SoftmaxKernel<typename decltype(tag)::type>>(context);
  });
}

}  // namespace

extern const OpDef kSoftmaxOp;
const OpDef kSoftmaxOp = {
    .type = "Softmax",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = InferSoftmax,
    .prepare = PrepareSoftmax,
};

}  // namespace tessera
